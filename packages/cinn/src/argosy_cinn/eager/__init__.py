"""The native build of eager execution: machine code for what a small application costs.

`layout` says what the code must know of the interpreter's and the library's objects, `objects` makes and frees them,
`arithmetic` computes, `application` applies Python's operators, `signatures` reads the arguments of calls, `views`
shows memory of other payloads, `calls` does what plans of calls say, `recording` leaves nodes, `backward_loop` goes
back over them, by compiled `derivatives` where there are some, `entries` is what Python enters, and `build` puts all of
it in one shared object, which the disk cache keeps. `eager.native` decides whether it is used, loads it and tells it
what it may do.
"""
