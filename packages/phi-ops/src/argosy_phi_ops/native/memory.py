"""Reading and writing the interpreter's own memory: where slots of objects and of types are.

The offsets are those of CPython's headers for a release build with the global lock; :func:`check` compares all of them
with what objects show before anything relies on them.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

__all__ = ["NUMBER_SLOTS", "NativeError", "call_of", "dealloc_of", "number_slot", "offsets", "peek", "poke"]

_DEALLOC, _AS_NUMBER, _CALL = 48, 96, 128  # tp_dealloc, tp_as_number, tp_call
_NUMBER, _DIGIT = 16, 24  # of a float: its value; of an int: how many digits, and the first of them
NUMBER_SLOTS = {"add": 0, "subtract": 1, "multiply": 2, "divide": 30}
"""Places in ``PyNumberMethods``."""
_METHODS = {"add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "divide": "__truediv__"}
_FIXED = {"ndarray.data": 16, "ndarray.flags": 64, "bytearray.size": 16, "bytearray.start": 40}
_DESCRIBED, _OFFSET, _BEFORE = 40, 16, {"dict": -24, "values": -32}  # d_member; offset; where a managed dictionary is

_TENSOR = ("payload", "stop_gradient", "_node", "_slot", "_grad", "_hooks", "_name", "persistable", "is_parameter")
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
    methods, size = peek(id(cls) + _AS_NUMBER), type.__sizeof__(cls)
    if not id(cls) < methods < id(cls) + size:
        raise NativeError(f"{cls.__name__} does not hold its number methods")
    return methods + 8 * NUMBER_SLOTS[operator]


def offsets(
    tensor: type, payload: type, storage: type, ambient: type, node: type | None, recipe: type | None
) -> dict[str, int]:
    """Where the slots are that native code uses, by names like ``"tensor.payload"``, checked."""
    found = dict(_FIXED)
    for kind, cls, names in (
        ("tensor", tensor, _TENSOR),
        ("payload", payload, _PAYLOAD),
        ("storage", storage, ("version",)),
        ("ambient", ambient, ("word", "silent", "silenced")),
        ("node", node, _NODE),
        ("recipe", recipe, ("code",)),
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
    if peek(dealloc_of(tensor)) != peek(dealloc_of(sample)):
        raise NativeError("tensors are not freed as objects of other classes are")
    called = [peek(call_of(type("Sample", (), {"__call__": method}))) for method in (len, repr)]
    if not called[0] or called[0] != called[1] or peek(call_of(sample)):
        raise NativeError("a type does not say where expected what calling does")
    x = object.__new__(tensor)
    before = [peek(id(x) + place) for place in _BEFORE.values()]
    values = before[1]
    if before[0] or not values or ctypes.c_uint8.from_address(values - 2).value:
        raise NativeError("a new tensor has attributes")
    _check_attributes()


def _check_attributes() -> None:
    """Of a new class: after many instances Python has no room in line for names that tensors did not have before."""
    x: Any = type("Sample", (), {})()
    values = peek(id(x) + _BEFORE["values"])
    x.some_attribute = x.another = 1
    if ctypes.c_uint8.from_address(values - 2).value != 2 or peek(id(x) + _BEFORE["values"]) != values:
        raise NativeError("attributes of tensors are not kept where they should be")
    if id(x.__dict__) != peek(id(x) + _BEFORE["dict"]):
        raise NativeError("the dictionary of a tensor is not where it should be")


def _check_fixed() -> None:
    a = np.arange(6.0)
    for x in (a, a.reshape(2, 3).T):
        flags = ctypes.c_int32.from_address(id(x) + _FIXED["ndarray.flags"]).value
        if peek(id(x) + _FIXED["ndarray.data"]) != x.ctypes.data or flags != x.flags.num:
            raise NativeError("an ndarray is not laid out as expected")
    for number in (1.5, -3.0):
        if ctypes.c_double.from_address(id(number) + _NUMBER).value != number:
            raise NativeError("a float is not laid out as expected")
    for whole in (7, -(1 << 29), 1 << 30):
        digits, digit = peek(id(whole) + _NUMBER), ctypes.c_uint32.from_address(id(whole) + _DIGIT).value
        if (digits, digit) != {7: (1, 7), 1 << 30: (2, 0)}.get(whole, ((1 << 64) - 1, 1 << 29)):
            raise NativeError("an int is not laid out as expected")
    memory = bytearray(256)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if peek(id(memory) + _FIXED["bytearray.start"]) != start or peek(id(memory) + _FIXED["bytearray.size"]) != 256:
        raise NativeError("a bytearray is not laid out as expected")
