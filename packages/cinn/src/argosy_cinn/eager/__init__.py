"""The native build of eager execution: machine code for what a small application costs.

`layout` says what the code must know of the interpreter's and the library's objects, `objects` makes and frees them,
`arithmetic` computes, `application` applies an operator, `entries` is what Python's operators and calls enter, and
`build` puts all of it in one shared object, which the disk cache keeps. `argosy_phi_ops.native` decides whether it is
used, loads it and tells it what it may do.
"""
