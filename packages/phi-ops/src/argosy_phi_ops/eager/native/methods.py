"""Methods of ``Tensor`` that native code is entered by: objects of a class of the interpreter's own kind, each of which
knows its operator and the function that was there before, which does what native code does not know.
"""

from __future__ import annotations

import ctypes
from types import FunctionType
from typing import Any

from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.eager.native import memory
from argosy_phi_ops.eager.native.loading import NativeLibrary, keep
from argosy_phi_ops.eager.native.memory import NativeError, peek, poke
from argosy_tensorcore.tensor import Tensor, find_method

__all__ = ["KERNELS", "install"]

KERNELS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
}
"""Operators that native code has kernels for from the start, and the methods behind Python's operators."""

_CALL, _BIND, _MEMBERS = 50, 54, 72  # Py_tp_call, Py_tp_descr_get, Py_tp_members
_VECTORCALL, _METHOD = 1 << 11, 1 << 17  # Py_TPFLAGS_HAVE_VECTORCALL, Py_TPFLAGS_METHOD_DESCRIPTOR
_SSIZE, _READONLY = 19, 1  # T_PYSSIZET, READONLY
_SIZE = 48
_SHOWN = ("__name__", "__qualname__", "__doc__", "__module__", "__wrapped__")

_BINARY = {"matmul": ("__matmul__", "__rmatmul__"), "pow": ("__pow__", "__rpow__")}
_COMPARING = ("less_than", "less_equal", "equal", "not_equal", "greater_than", "greater_equal")  # in C's order
_COMPARISONS = {name: i for i, name in enumerate(_COMPARING)}
_ORDER = ("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__")


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


_ENTRIES = {"": "enter_method", "_": "enter_inplace"}
"""Where methods are entered, by what their names have besides the operator's."""

_made: dict[str, Any] = {}
_seen: dict[Operator, int] = {}
"""How many attributes ``Tensor`` had when the methods of an operator were installed."""


def install(made: NativeLibrary, op: Operator) -> None:
    """Let calls of ``op`` enter native code, by whatever name: as a function, as a method and as what Python's syntax
    stands for."""
    made.install_call()
    if op.plain == 1:
        op.applications.method = op
    attributes = vars(Tensor)
    if _seen.get(op) != len(attributes):
        _install_kernel(made, op)
        for name, value in attributes.copy().items():
            if type(value) is FunctionType and not name.startswith("__") and _wrapped_function(value) is op:
                entry = _ENTRIES.get(value.__name__.removeprefix(op.name))
                if entry == "enter_method" or (entry and not (op.view or op.random)):
                    setattr(Tensor, name, _method(made, op, value, entry))
        _seen[op] = len(attributes)


def _install_kernel(made: NativeLibrary, op: Operator) -> None:
    name = op.name
    if name in KERNELS:
        if not made.is_installed(name):
            made.install_operator(op, KERNELS[name])
    elif name in _COMPARISONS:
        for method in _ORDER:
            find_method(method)  # setting a method afterwards would put Python's own function back
        made.install_slot(f"compare{_COMPARISONS[name]}", memory.compare_slot(Tensor), "enter_compare", op)
    elif name in _BINARY:
        made.install_operator(op, _BINARY[name])
    elif name == "neg":
        find_method("__neg__")
        made.install_slot("negative", memory.number_slot(Tensor, "negative"), "enter_negative", op)
    elif name == "getitem":
        find_method("__getitem__")
        before = vars(Tensor)["__getitem__"]
        if type(before) is FunctionType:  # which the interpreter would call without looking at the slot
            setattr(Tensor, "__getitem__", _method(made, op, before, "enter_method"))  # noqa: B010
        made.install_slot("getitem", memory.subscript_slot(Tensor), "enter_getitem", op)


def _wrapped_function(value: Any) -> Any:
    return getattr(value, "__wrapped__", None)


def _method(made: NativeLibrary, op: Operator, before: Any, entry: str) -> Any:
    """A method for ``op`` that is entered there; the function ``before`` does what native code does not."""
    if "class" not in _made:
        _made["class"] = _new_class(made)
    method = _made["class"]()
    layout = made.build.method
    for word, value in (("operator", op), ("before", before)):
        keep(value)
        poke(id(method) + layout[word], id(value))
    poke(id(method) + layout["vectorcall"], made.addresses[entry])
    keep(method)
    for name in _SHOWN:
        if hasattr(before, name):
            setattr(method, name, getattr(before, name))
    return method


def _new_class(made: NativeLibrary) -> type:
    """The class of methods. Raises NativeError when its objects are not as expected."""
    layout = made.build.method
    members = (_Member * 3)(
        _Member(b"__vectorcalloffset__", _SSIZE, layout["vectorcall"], _READONLY, None),
        _Member(b"__dictoffset__", _SSIZE, layout["dictionary"], _READONLY, None),
    )
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p).value
    slots = (_Slot * 4)(
        _Slot(_CALL, call), _Slot(_BIND, made.addresses["bind_method"]), _Slot(_MEMBERS, ctypes.addressof(members))
    )  # fmt: skip
    spec = _Spec(b"argosy_phi_ops.eager.native.Method", _SIZE, 0, _VECTORCALL | _METHOD, slots)
    keep((members, slots, spec))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(("PyType_FromSpec", ctypes.pythonapi))
    cls: type = new(ctypes.addressof(spec))
    sample = cls()
    words = [peek(id(sample) + layout[word]) for word in ("vectorcall", "operator", "before")]
    if cls.__basicsize__ != _SIZE or cls.__dictoffset__ != layout["dictionary"] or any(words):
        raise NativeError("methods are not laid out as expected")
    keep(cls)
    return cls
