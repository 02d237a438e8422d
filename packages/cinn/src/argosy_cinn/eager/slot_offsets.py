"""What native code must know of objects: where their slots are, and which words it shares with Python."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "API", "BACK_WORDS", "CALLED", "GRADIENTS", "LEAST", "LIMIT", "METHOD", "OPERANDS",
    "OPERATORS", "PACKED", "PLANS", "PLAN_WORDS", "RECIPES", "SCRATCH", "SIZES", "SLOTS", "STATE", "TABLE", "WORDS",
    "SlotOffsets",
]  # fmt: skip

OPERATORS = ("add", "subtract", "multiply", "divide")
"""The operators that Python's operators enter, and that have kernels from the start."""

CALLED = ("matmul", "pow")
"""Operators that Python's operators enter as calls: they have no kernels of their own."""

SLOTS = ("negative", "getitem", *(f"compare{i}" for i in range(6)))
"""Other ways in which Python calls operators of tensors; comparisons in the order of <, <=, ==, !=, >, >=."""

TABLE = 16
"""Addresses that a compiled program takes at most to be run from here."""

SIZES = (64, 256, 1024, 4096, 16384, 65536)
"""Bytes of the memory of results, by class."""

LIMIT, LEAST = 512, 4
"""Objects that are kept for reuse: of each type, and of payloads of the smallest class; of the others fewer, and so
many at least."""

WORDS, OPERANDS, RECIPES = 48, 8, 4
"""How many words, tensors and recipes a call has at most."""

PLANS = 4096
"""Places for addresses of plans; each may be at two of them, which are neighbours."""
PLAN_WORDS = (
    "left", "right", "operator", "kernel", "table", "output", "type", "dtype", "shape", "ndim", "elements", "class",
    "plan", "hash", "length", "words", "operands", "numbers", "unrecorded", "strides", "contiguous", "distance",
    "itemsize", "bounds", "generator", "draws", "several", "recipes", *(f"recipes{i}" for i in range(1, 4 * RECIPES)),
)  # fmt: skip
"""What the plan of an application says: for a call of this ``operator`` whose arguments read as these ``words`` (see
`signatures`), ``length`` of them, this kernel makes so many elements, and its result is of this type, in memory of this
class. Python's operators find it where their operands are of the types (of arrays, or of Python's numbers) ``left`` and
``right``: the kernel takes their data, and ``length`` is zero where one is a number, of any value.

There are so many ``operands``. ``numbers`` has a word for each of them, zero for a tensor, else the number, which is a
constant of the kernel. With a ``table`` of addresses the kernel is a compiled program, which takes the table
filled in, its result at ``output``. With ``strides`` the result is a view of the first operand, ``distance`` bytes from
its start. From ``recipes`` on are :data:`RECIPES` times (operands that want gradients as bits, the tape's recipe, its
name, a bit for each operand and the result that the derivative reads), of two operands in the order of their bits;
nothing is recorded where ``unrecorded`` is set. ``bounds`` are a number of indices to be looked at, and for
each its operand, its elements, their bytes, the least and the greatest allowed. A ``generator`` of random numbers has
its state in the array ``draws``, which the program reads after the tensors; each run is counted there. ``several`` is
how many results there are, and for each the address of a plan of it alone; the program writes them from ``output``
on. ``plan`` is the object of Python's that all of this belongs to."""

SCRATCH, PACKED = 1 << 18, 1 << 18
"""Bytes for intermediate values of a compiled program at most, and for copies of its operands that are not contiguous:
one runs at a time, as the global lock is held."""

BACK_WORDS = ("kernel", "table", "output", "saved", "places", "reads", "gradients", "outputs")
"""What the record of a compiled derivative says: this kernel takes a table of addresses, filled in, with the data of
``saved`` entries of what the node saved at these ``places``, then the result's gradient where it ``reads`` that, and
from ``output`` on so many ``gradients``. ``outputs`` has for each its operand's number, its shape and its dtype."""

GRADIENTS = 4
"""How many gradients a compiled derivative has at most to be run from here."""

API = (
    "PyType_GenericAlloc", "PyByteArray_FromStringAndSize", "PyObject_GC_Track", "PyObject_GC_UnTrack",
    "PyObject_Vectorcall", "PyTuple_New", "PyIter_Next", "PyGC_Disable", "PyGC_Enable", "_Py_Dealloc",
    "PyMem_RawRealloc", "PyLong_AsLongLong", "PyLong_FromVoidPtr", "PyLong_AsVoidPtr", "PyLong_FromLongLong",
    "PyDict_GetItemWithError", "PyDict_SetItem", "PyDict_Next", "PyList_New", "PyList_GetItem", "PyList_SetItem",
    "PyList_Append", "PyObject_GetAttr", "PyThread_get_thread_ident", "PyErr_Occurred", "PyMethod_New",
    "PyMem_RawFree", "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
"""Functions of the interpreter that are called, all of them exported."""

STATE = (
    "tensor", "payload", "node", "storage", "ndarray", "bytearray", "tuple", "list", "slice", "float", "int",  # types
    "true", "false", "none", "zero", "one", "empty",  # objects
    "ambient", "context", "counter", "sequence", "new_array", "call",  # what calling an operator did before
    "heap", "heap.count", "heap.capacity",  # of the backward pass that runs
    "backward_loop.running", "backward_loop.limit", "backward_loop.rest", "backward_loop.leaves",
    "backward_loop.pull", "backward_loop.add",
    *(f"{name}.{what}" for name in (*OPERATORS, *CALLED) for what in ("operator", "method", "reflected")),
    *(f"{name}.{what}" for name in SLOTS for what in ("operator", "before")),
    "tensor.dealloc", "payload.dealloc", "node.dealloc",  # what the types had
    "tensor.slow", "payload.slow", "node.slow",  # how many of these run now
    "node.pending", "node.freeing",  # nodes to be freed, and whether somebody does it now
    "tensor.free", "node.free", *(f"payload{i}.free" for i in range(len(SIZES))),  # free lists
    "tensor.kept", "node.kept", *(f"payload{i}.kept" for i in range(len(SIZES))),  # and their lengths
    *API,
)  # fmt: skip
"""The words that native code and Python share; objects among them are kept alive by Python."""

METHOD = {"vectorcall": 16, "operator": 24, "before": 32, "dictionary": 40}
"""Where a method (`argosy_phi_ops.eager.native.methods`) keeps what native code knows of it."""


class SlotOffsets:
    """Where slots are, in bytes from the start of their object: ``layout["tensor.payload"]``."""

    def __init__(self, offsets: Mapping[str, int]) -> None:
        self.offsets = dict(offsets)

    def __getitem__(self, name: str) -> int:
        return self.offsets[name]

    def slots(self, kind: str) -> list[int]:
        """The slots of a type, in the order of their places."""
        return sorted(place for name, place in self.offsets.items() if name.startswith(kind + "."))

    @property
    def key(self) -> str:
        """All of it as a string."""
        return repr(sorted(self.offsets.items()))
