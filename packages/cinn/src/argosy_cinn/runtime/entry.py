"""Calling a compiled program from Python: one native function ``void run(ptr addresses, ptr dims)``.

`entry` gives a callable ``call(addresses, dims)`` that takes the two addresses as integers (``dims`` may be
0); `answering_entry` one for a function that returns a pointer, None for null. On CPython it is a builtin made from a
small trampoline that we compile (about 20 ns a call with the lock held, 45 ns when it is released); it uses only
functions of the stable ABI, and is tried on a known function before it is trusted. Elsewhere ctypes makes the call
(about 200 ns; cffi, which needs a C compiler to do better, 500).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from argosy_cinn.call_once import call_once
from argosy_cinn.runtime.linking import Library
from argosy_cinn.runtime.trampolines import Address, Trampolines, make_checked

Entry = Callable[[int, int], None]
AnsweringEntry = Callable[[int, int], int | None]


def entry(library: Library, name: str = "run", release_gil: bool = True) -> Entry:
    """A Python callable for an exported ``void name(ptr, ptr)``; it keeps the library alive.

    ``release_gil`` lets other Python threads run meanwhile; it costs 25 ns, so short programs may keep the
    lock.
    """
    return _entry(library, name, "call_released" if release_gil else "call_held", None)


def answering_entry(library: Library, name: str) -> AnsweringEntry:
    """The same for an exported ``ptr name(ptr, ptr)``: what it returns, as an integer, or None for null."""
    return _entry(library, name, "ask_released", ctypes.c_void_p)


def _entry(library: Library, name: str, kind: str, answer: Any) -> Callable[[int, int], Any]:
    address = library.address(name)
    trampolines = _trampolines()
    if trampolines is None:
        prototype = ctypes.PYFUNCTYPE if kind == "call_held" else ctypes.CFUNCTYPE
        function: Any = prototype(answer, ctypes.c_void_p, ctypes.c_void_p)(address)
        function.library = library
        return function  # type: ignore[no-any-return]
    bound = Address(address)
    bound.kept = library
    return trampolines.builtin(kind, bound)


def raises_errors() -> bool:
    """Whether an exception that is set while a program runs is raised by its caller."""
    return _trampolines() is not None


class _Calls(Trampolines):
    """Builtins whose ``self`` is the address to call."""

    names = ("call_held", "call_released", "ask_released")

    def __init__(self) -> None:
        bodies = {
            "held": _BODY.format(before="", after="", call=_CALL, answer=_NONE),
            "released": _BODY.format(before=_SAVE, after=_RESTORE, call=_CALL, answer=_NONE),
            "asked": _BODY.format(before=_SAVE, after=_RESTORE, call=_ASK, answer=_ANSWER),
        }
        super().__init__(_TEXT.format(**bodies), self.names, "call(addresses, dims): run a compiled program.")

    def works(self) -> bool:
        """Whether all deliver their arguments to a function that adds 1 to one word and stores it in another, and one
        what it returns: null, or the second address where the sum is 0."""
        for name in self.names:
            words = (ctypes.c_int64 * 2)(41, 0)
            base = ctypes.addressof(words)
            call = self.builtin(name, Address(self.probe))
            if call(base, base + 8) is not None or words[1] != 42:
                return False
            words[0] = -1
            if call(base, base + 8) != (base + 8 if name == "ask_released" else None):
                return False
        return True


@call_once
def _trampolines() -> _Calls | None:
    return make_checked(_Calls)


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
  {call}
  {after}
  %raised = call ptr @PyErr_Occurred()  ; by a handler of a signal (see `runtime.interrupts`)
  %interrupted = icmp ne ptr %raised, null
  br i1 %interrupted, label %bad, label %end
end:
  {answer}
none:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}}
"""
_CALL, _NONE = "call void %function(ptr %first, ptr %second)", "br label %none"
_ASK = "%answer = call ptr %function(ptr %first, ptr %second)"
_ANSWER = """%null = icmp eq ptr %answer, null
  br i1 %null, label %none, label %some
some:
  %integer = call ptr @PyLong_FromVoidPtr(ptr %answer)
  ret ptr %integer"""
_TEXT = r"""
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
@_Py_NoneStruct = external global i8
@PyExc_TypeError = external global ptr
@message = private constant [55 x i8] c"a compiled program takes two integers: addresses, dims\00"

define ptr @probe(ptr %from, ptr %to) nounwind {{
  %x = load i64, ptr %from
  %y = add i64 %x, 1
  store i64 %y, ptr %to
  %z = icmp eq i64 %y, 0
  %answer = select i1 %z, ptr %to, ptr null
  ret ptr %answer
}}

define ptr @call_held{held}
define ptr @call_released{released}
define ptr @ask_released{asked}
"""
