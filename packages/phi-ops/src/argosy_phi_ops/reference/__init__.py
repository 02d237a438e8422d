"""The reference: numpy kernels of all primitives, the interpreter over them, and the compiler made of it.

This is the oracle that compilers, passes and devices are tested against: plain numpy, obviously right. Its
kernels are also what runs plain eager mode.
"""
