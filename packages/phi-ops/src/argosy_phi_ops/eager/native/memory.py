"""Reading and writing the interpreter's own memory: where slots of objects and of types are.

The offsets are those of CPython's headers for a release build with the global lock; :func:`check` compares all of them
with what objects show before anything relies on them.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

__all__ = [
    "NUMBER_SLOTS", "NativeError", "call_of", "compare_slot", "dealloc_of", "number_slot", "offsets", "peek", "poke",
    "subscript_slot",
]  # fmt: skip

_DEALLOC, _AS_NUMBER, _CALL = 48, 96, 128  # tp_dealloc, tp_as_number, tp_call
_NUMBER, _DIGIT = 16, 24  # of a float: its value; of an int: how many digits, and the first of them
_AS_MAPPING, _COMPARE = 112, 200  # tp_as_mapping, tp_richcompare
NUMBER_SLOTS = {"add": 0, "subtract": 1, "multiply": 2, "pow": 5, "negative": 6, "divide": 30, "matmul": 34}
"""Places in ``PyNumberMethods``."""
_METHODS = {
    "add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "pow": "__pow__", "negative": "__neg__",
    "divide": "__truediv__", "matmul": "__matmul__",
}  # fmt: skip
_FIXED = {"ndarray.data": 16, "ndarray.strides": 40, "ndarray.flags": 64, "bytearray.size": 16, "bytearray.start": 40}
_DESCRIBED, _OFFSET, _ATTRIBUTES = 40, 16, -24  # d_member; offset; where a managed dictionary is
_VALUES = -32  # its values without a dictionary, in 3.11; in 3.12 their address less one is in its place

_TENSOR = (
    "payload", "stop_gradient", "_node", "_slot", "_gradient_blockers", "_grad", "_hooks", "_name", "persistable",
    "is_parameter",
)  # fmt: skip
_PAYLOAD = (
    "_memory", "_storage", "address", "array_type", "contiguous", "dtype", "nbytes", "ndarray", "ndim", "offset",
    "shape", "size", "strides",
)  # fmt: skip
_NODE = (
    "before", "edges", "hooks", "name", "on_tensors", "other", "recipe", "results", "retained", "saved", "sequence",
    "waiting",
)  # fmt: skip


class NativeError(RuntimeError):
    """The interpreter or its objects are not as expected."""


def peek(address: int) -> int:
    """The 64-bit word at an address."""
    return int(ctypes.c_uint64.from_address(address).value)


def poke(address: int, value: int) -> None:
    """Write a 64-bit word."""
    ctypes.c_uint64.from_address(address).value = value


def dealloc_of(cls: type) -> int:
    """The address of the word that says how instances are freed."""
    return id(cls) + _DEALLOC


def call_of(cls: type) -> int:
    """The address of the word that says what calling an instance does."""
    return id(cls) + _CALL


def number_slot(cls: type, operator: str) -> int:
    """The address of the word that says what ``x + y`` calls. Raises NativeError when it is not where it should be."""
    return _own_methods(cls, _AS_NUMBER) + 8 * NUMBER_SLOTS[operator]


def subscript_slot(cls: type) -> int:
    """The address of the word that says what ``x[i]`` calls. Raises NativeError when it is not where it should be."""
    return _own_methods(cls, _AS_MAPPING) + 8


def compare_slot(cls: type) -> int:
    """The address of the word that says what ``x < y`` and the other comparisons call."""
    return id(cls) + _COMPARE


def _own_methods(cls: type, place: int) -> int:
    """The table of methods that a class holds itself."""
    methods, size = peek(id(cls) + place), type.__sizeof__(cls)
    if not id(cls) < methods < id(cls) + size:
        raise NativeError(f"{cls.__name__} does not hold its own methods")
    return methods


def offsets(
    tensor: type,
    payload: type,
    dtype: type,
    storage: type,
    ambient: type,
    context: type,
    generator: type,
    node: type | None,
    recipe: type | None,
) -> dict[str, int]:
    """Where the slots are that native code uses, by names like ``"tensor.payload"``, checked."""
    found = {**_FIXED, "python": sys.version_info[1]}
    for kind, cls, names in (
        ("tensor", tensor, _TENSOR),
        ("payload", payload, _PAYLOAD),
        ("dtype", dtype, ("itemsize",)),
        ("storage", storage, ("_buffer", "_owner", "_source", "nbytes", "version")),
        ("ambient", ambient, ("word", "quiet", "silent", "silenced", "cut")),
        ("context", context, ("_generator",)),
        ("generator", generator, ("_state",)),
        ("node", node, _NODE),
        ("recipe", recipe, ("back", "code")),
    ):
        for name in names:
            found[f"{kind}.{name}"] = 0 if cls is None else _slot(cls, name)
    found["tensor.weak"] = tensor.__weakrefoffset__
    found["node.weak"] = 0 if node is None else node.__weakrefoffset__
    _check_types(tensor)
    _check_fixed()
    return found


def _slot(cls: type, name: str) -> int:
    """Where a slot of instances is, by its descriptor; an instance shows whether that is so."""
    descriptor = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)
    if type(descriptor).__name__ != "member_descriptor":
        raise NativeError(f"{cls.__name__}.{name} is no slot")
    place = peek(peek(id(descriptor) + _DESCRIBED) + _OFFSET)
    if not 16 <= place <= cls.__basicsize__ - 8 or place % 8:
        raise NativeError(f"{cls.__name__}.{name} seems to be at {place}")
    sample: Any = object.__new__(cls)
    if peek(id(sample) + place):
        raise NativeError(f"{cls.__name__}.{name} is not empty at first")
    mark = object()
    object.__setattr__(sample, name, mark)
    if peek(id(sample) + place) != id(mark):
        raise NativeError(f"{cls.__name__}.{name} is not at {place}")
    return place


def _check_types(tensor: Any) -> None:
    for operator, method in _METHODS.items():
        sample = type("Sample", (), {method: lambda x, y: x})
        filled = [name for name in NUMBER_SLOTS if peek(number_slot(sample, name))]
        if filled != [operator]:
            raise NativeError(f"a class with {method} has {filled}")
    for slot, method in ((subscript_slot, "__getitem__"), (compare_slot, "__lt__")):
        samples = [type("Sample", (), {method: each}) for each in (len, repr)]
        found, others = {peek(slot(each)) for each in samples}, {peek(slot(sample)), peek(slot(type("Sample", (), {})))}
        if len(found) != 1 or found & {0, *others}:
            raise NativeError(f"a class with {method} does not say so where expected")
    if peek(dealloc_of(tensor)) != peek(dealloc_of(sample)):
        raise NativeError("tensors are not freed as objects of other classes are")
    called = [peek(call_of(type("Sample", (), {"__call__": method}))) for method in (len, repr)]
    if not called[0] or called[0] != called[1] or peek(call_of(sample)):
        raise NativeError("a type does not say where expected what calling does")
    if _attributes(object.__new__(tensor)):
        raise NativeError("a new tensor has attributes")
    _check_attributes()


def _attributes(x: Any) -> int:
    """How many attributes an object keeps for a class such as ``Tensor``, with slots and a dictionary; as native code
    finds out."""
    held = peek(id(x) + _ATTRIBUTES)
    if sys.version_info >= (3, 13) or (held and not held & 1):
        return len(x.__dict__) if held else 0
    values = peek(id(x) + _VALUES) if sys.version_info < (3, 12) else held and held + 1
    return ctypes.c_uint8.from_address(values - 2).value if values else 0


def _check_attributes() -> None:
    """Of a new class: after many instances Python has no room in line for names that tensors did not have before."""
    x: Any = type("Sample", (), {"__slots__": ("some_slot", "__dict__", "__weakref__")})()
    found = [_attributes(x)]
    x.some_slot = 1
    found.append(_attributes(x))
    x.some_attribute = x.another = 1
    found.append(_attributes(x))
    if found != [0, 0, 2]:
        raise NativeError("attributes of tensors are not kept where they should be")
    if id(x.__dict__) != peek(id(x) + _ATTRIBUTES):
        raise NativeError("the dictionary of a tensor is not where it should be")


def _check_fixed() -> None:
    a = np.arange(6.0)
    for x in (a, a.reshape(2, 3).T):
        flags = ctypes.c_int32.from_address(id(x) + _FIXED["ndarray.flags"]).value
        place = peek(id(x) + _FIXED["ndarray.strides"])
        strides = tuple([ctypes.c_int64.from_address(place + 8 * i).value for i in range(x.ndim)])
        if peek(id(x) + _FIXED["ndarray.data"]) != x.ctypes.data or flags != x.flags.num or strides != x.strides:
            raise NativeError("an ndarray is not laid out as expected")
    for number in (1.5, -3.0):
        if ctypes.c_double.from_address(id(number) + _NUMBER).value != number:
            raise NativeError("a float is not laid out as expected")
    said_of = [0, 1, (1 << 64) - 1, 2] if sys.version_info < (3, 12) else [1, 8, 10, 16]
    expected = dict(zip((0, 7, -(1 << 29), 1 << 30), said_of, strict=True))
    for whole, said in expected.items():
        digit = ctypes.c_uint32.from_address(id(whole) + _DIGIT).value
        if peek(id(whole) + _NUMBER) != said or (whole and digit != abs(whole) & (1 << 30) - 1):
            raise NativeError("an int is not laid out as expected")
    _check_counts()
    memory = bytearray(256)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if peek(id(memory) + _FIXED["bytearray.start"]) != start or peek(id(memory) + _FIXED["bytearray.size"]) != 256:
        raise NativeError("a bytearray is not laid out as expected")


def _check_counts() -> None:
    """References are counted in the first word; from 3.12 on those of some objects are not, which it tells."""
    x = object()
    before = peek(id(x))
    more = [x] * 5
    if before != sys.getrefcount(x) - len(more) - 1 or peek(id(x)) != before + len(more):
        raise NativeError("references are not counted where they should be")
    forever = [ctypes.c_int32.from_address(id(each)).value < 0 for each in (None, True, 0)]
    if forever != [sys.version_info >= (3, 12)] * 3:
        raise NativeError("objects that live forever are not told as they should be")
