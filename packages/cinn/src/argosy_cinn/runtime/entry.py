"""Calling a compiled program from Python: one native function ``void run(ptr addresses, ptr dims)``.

`entry` gives a callable ``call(addresses, dims)`` that takes the two addresses as integers (``dims`` may be
0). On CPython it is a builtin made from a small trampoline that we compile (about 20 ns a call with the lock
held, 45 ns when it is released); it uses only functions of the stable ABI, and is tried on a known function
before it is trusted. Elsewhere ctypes makes the call.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from argosy_cinn.once import once
from argosy_cinn.runtime.jit import Library, link
from argosy_cinn.target import Target

Entry = Callable[[int, int], None]

METH_FASTCALL = 0x80
_API = (
    "PyLong_AsVoidPtr",
    "PyErr_Occurred",
    "PyErr_SetString",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "Py_IncRef",
)
_DATA = ("_Py_NoneStruct", "PyExc_TypeError")


class Address(int):
    """The address of a native function; keeps the library that holds it alive."""

    library: object


def entry(library: Library, name: str = "run", release_gil: bool = True) -> Entry:
    """A Python callable for an exported ``void name(ptr, ptr)``; it keeps the library alive.

    ``release_gil`` lets other Python threads run meanwhile; it costs 25 ns, so short programs may keep the
    lock.
    """
    address = library.address(name)
    trampolines = _trampolines()
    if trampolines is None:
        prototype = ctypes.CFUNCTYPE if release_gil else ctypes.PYFUNCTYPE
        function: Any = prototype(None, ctypes.c_void_p, ctypes.c_void_p)(address)
        function.library = library
        return function  # type: ignore[no-any-return]
    bound = Address(address)
    bound.library = library
    return trampolines.builtin("call_released" if release_gil else "call_held", bound)


class MethodDef(ctypes.Structure):
    """A builtin as CPython knows it; it has to live as long as the builtin."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Trampolines:
    """Two compiled METH_FASTCALL functions whose ``self`` is the address to call."""

    def __init__(self) -> None:
        api = ctypes.pythonapi
        symbols = {name: ctypes.cast(getattr(api, name), ctypes.c_void_p).value or 0 for name in _API}
        symbols |= {name: ctypes.addressof(ctypes.c_char.in_dll(api, name)) for name in _DATA}
        self.library = link(
            _trampoline_object(), ("call_held", "call_released", "probe"), symbols=symbols, runtime=False
        )
        self._new = api.PyCFunction_NewEx
        self._new.restype = ctypes.py_object
        self._new.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        doc = b"call(addresses, dims): run a compiled program."
        self._definitions = {  # the builtins point at these for as long as they live
            name: MethodDef(b"call", self.library.address(name), METH_FASTCALL, doc)
            for name in ("call_held", "call_released")
        }

    def builtin(self, name: str, address: Address) -> Entry:
        """A builtin that calls ``address``."""
        made: Entry = self._new(ctypes.addressof(self._definitions[name]), address, None)
        return made

    def works(self) -> bool:
        """Whether both trampolines deliver their arguments to a function that adds 1 to one word and stores
        it in another.
        """
        for name in self._definitions:
            words = (ctypes.c_int64 * 2)(41, 0)
            base = ctypes.addressof(words)
            if self.builtin(name, Address(self.library.address("probe")))(base, base + 8) is not None or words[1] != 42:
                return False
        return True


@once
def _trampolines() -> _Trampolines | None:
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    try:
        made = _Trampolines()
    except (AttributeError, ValueError):  # an interpreter without these symbols
        return None
    return made if made.works() else None


@once
def _trampoline_object() -> bytes:
    return cached_object(
        _TEXT.format(held=_BODY.format(before="", after=""), released=_BODY.format(before=_SAVE, after=_RESTORE))
    )


def cached_object(text: str) -> bytes:
    """The object file of a module's text, from the user's cache where it is there."""
    from argosy_cinn.runtime.cache import cache_key, default_cache
    from argosy_cinn.runtime.jit import compile_object

    target = Target.host()
    key = cache_key(text, target.key)
    code = default_cache().get(key)
    if code is None:
        code = compile_object(text, target)
        default_cache().put(key, code)
    return code


_SAVE = "%state = call ptr @PyEval_SaveThread()"
_RESTORE = "call void @PyEval_RestoreThread(ptr %state)"
_BODY = r"""(ptr %self, ptr %args, i64 %count) nounwind {{
entry:
  %two = icmp eq i64 %count, 2
  br i1 %two, label %read, label %wrong
wrong:
  %type = load ptr, ptr @PyExc_TypeError
  call void @PyErr_SetString(ptr %type, ptr @message)
  ret ptr null
read:
  %second.p = getelementptr ptr, ptr %args, i64 1
  %first.o = load ptr, ptr %args
  %second.o = load ptr, ptr %second.p
  %function = call ptr @PyLong_AsVoidPtr(ptr %self)
  %first = call ptr @PyLong_AsVoidPtr(ptr %first.o)
  %second = call ptr @PyLong_AsVoidPtr(ptr %second.o)
  %first.i = ptrtoint ptr %first to i64
  %second.i = ptrtoint ptr %second to i64
  %z1 = icmp eq i64 %first.i, 0
  %z2 = icmp eq i64 %second.i, 0
  %zero = or i1 %z1, %z2
  br i1 %zero, label %suspect, label %call
suspect:
  ; zero is a valid address here, or the sign of an argument that is no integer
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %bad, label %call
bad:
  ret ptr null
call:
  {before}
  call void %function(ptr %first, ptr %second)
  {after}
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}}
"""
_TEXT = r"""
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
@_Py_NoneStruct = external global i8
@PyExc_TypeError = external global ptr
@message = private constant [55 x i8] c"a compiled program takes two integers: addresses, dims\00"

define void @probe(ptr %from, ptr %to) nounwind {{
  %x = load i64, ptr %from
  %y = add i64 %x, 1
  store i64 %y, ptr %to
  ret void
}}

define ptr @call_held{held}
define ptr @call_released{released}
"""
