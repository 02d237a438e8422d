"""Builtins of CPython made of native functions, by their addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

__all__ = ["Definition"]

_METH_FASTCALL = 0x80


class _MethodDef(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


class Definition:
    """What builtins of one native function ``PyObject *f(PyObject *self, PyObject **arguments, Py_ssize_t count)``
    share. They point at it for as long as they live, so it has to live as long."""

    def __init__(self, name: str, address: int, doc: str | None = None) -> None:
        self._method = _MethodDef(name.encode(), address, _METH_FASTCALL, None if doc is None else doc.encode())

    def builtin(self, self_object: object = None) -> Callable[..., Any]:
        """A builtin whose function gets ``self_object`` as ``self``."""
        made: Callable[..., Any] = _new(ctypes.addressof(self._method), self_object, None)
        return made
