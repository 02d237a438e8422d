"""Builtins of CPython made from native functions that we compile.

Each exported function of a module's text has the signature of METH_FASTCALL; ``self`` of its builtins is an integer,
the address of what it calls. Only functions of the stable ABI are used. Builds without the global lock share objects in
ways that these functions know nothing of: there, and on other interpreters, `make_checked` gives nothing.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from argosy_cinn.runtime.cache import cache_key, default_cache
from argosy_cinn.runtime.jit import compile_object
from argosy_cinn.runtime.linking import link
from argosy_cinn.target import Target
from argosy_hwadapt.cpu.builtins import Definition

_API = ("PyLong_AsVoidPtr", "PyLong_FromVoidPtr", "PyErr_Occurred", "PyErr_SetString", "PyEval_SaveThread",
        "PyEval_RestoreThread", "Py_IncRef")  # fmt: skip
_DATA = ("_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct", "PyExc_TypeError")


class Address(int):
    """An address; keeps alive, as ``kept``, what lies there, and as ``caller`` the builtin's own code."""

    kept: object
    caller: object


class Trampolines:
    """The linked module of ``text``: its exports ``names`` as builtins ``call``, and ``probe``, a function to try
    them on. ``symbols``: addresses that it reads besides the interpreter's.

    Raises AttributeError or ValueError on an interpreter without the symbols that it needs.
    """

    def __init__(self, text: str, names: Sequence[str], doc: str, symbols: Mapping[str, int] | None = None) -> None:
        api = ctypes.pythonapi
        known = {name: ctypes.cast(getattr(api, name), ctypes.c_void_p).value or 0 for name in _API}
        known |= {name: ctypes.addressof(ctypes.c_char.in_dll(api, name)) for name in _DATA}
        library = link(cached_object(text), (*names, "probe"), symbols={**known, **(symbols or {})})
        self.library, self.probe = library, library.address("probe")
        self._definitions = {name: Definition("call", library.address(name), doc) for name in names}

    def builtin(self, name: str, address: Address) -> Callable[..., Any]:
        """A builtin whose ``self`` is ``address``. It may outlive whoever else holds these trampolines."""
        address.caller = self
        return self._definitions[name].builtin(address)


class _Trial(Protocol):
    def works(self) -> bool: ...


T = TypeVar("T", bound=_Trial)


def make_checked(make: Callable[[], T]) -> T | None:
    """What ``make`` gives, on an interpreter that it is made for and where it works."""
    locked = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
    if not locked or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    try:
        made = make()
    except (AttributeError, ValueError):  # an interpreter without these symbols
        return None
    return made if made.works() else None


def cached_object(text: str) -> bytes:
    """The object file of a module's text, from the user's cache where it is there."""
    target = Target.host()
    key = cache_key(text, target.key)
    code = default_cache().get(key)
    if code is None:
        code = compile_object(text, target)
        default_cache().put(key, code)
    return code


__all__ = ["Address", "Trampolines", "cached_object", "make_checked"]
