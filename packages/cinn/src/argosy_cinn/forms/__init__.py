"""Forms: what kernels compute. A form has what it reads, the buffers it needs, its cost and a key; it knows no target.

`form` says what all of them have; `indices` and `expressions` are what elements are described by.
"""
