"""Calling a compiled program with numpy arrays: the table of addresses is filled by native code, on its own stack.

`array_entry` gives ``call(arena, *inputs, *outputs)``, a builtin. It reads addresses from the arrays themselves, whose
layout numpy keeps from version to version; still it is tried on known arrays before it is trusted. Where it does not
work (other interpreters, builds without the global lock) there is none: the caller fills a table for `runtime.entry`.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_cinn.call_once import call_once
from argosy_cinn.runtime.linking import Library
from argosy_cinn.runtime.trampolines import Address, Trampolines, make_checked

#: ``call(arena address, *inputs, *outputs)``: True when the program ran; False, with nothing done, when an argument is
#: no contiguous ndarray or an input lies in memory of a state that the program writes; the address that the program
#: returned where that is not null.
ArrayEntry = Callable[..., bool | int]

_LONGEST_TABLE = 2048  # addresses on the stack of the calling thread
_RELEASE = 1 << 16  # bytes and operations from which other Python threads may run meanwhile: 25 ns are little then


@dataclass(frozen=True, slots=True)
class Frame:
    """The arguments of a program. ``table``: addresses by entry, of which the arena's (entry 0), those of inputs
    (``inputs`` entries from 1) and of outputs (``outputs`` entries from ``first_output``) are filled at each call;
    ``nbytes`` of each input; ``written``: start and end of the memory of each state that changes; ``work``: bytes and
    operations, about."""

    table: array[int]
    inputs: int
    first_output: int
    outputs: int
    dims_address: int
    nbytes: Sequence[int]
    written: Sequence[tuple[int, int]]
    work: int


class _Record(ctypes.Structure):
    """What the native function reads; its layout is in `_TEXT`. ``kept`` holds what the addresses point at."""

    _fields_ = tuple((name, ctypes.c_int64) for name in (
        "function", "dims", "table", "entries", "inputs", "first_output", "outputs", "nbytes", "ranges", "written",
        "release",
    ))  # fmt: skip
    kept: tuple[Any, ...]


def array_entry(library: Library, name: str, frame: Frame) -> ArrayEntry | None:
    """A builtin that calls the exported ``ptr name(ptr addresses, ptr dims)`` with arrays, or None."""
    trampoline = _trampoline() if len(frame.table) <= _LONGEST_TABLE else None
    return None if trampoline is None else trampoline.entry(library, library.address(name), frame)


class _ArrayCall(Trampolines):
    """A builtin whose ``self`` is the address of a `_Record`."""

    def __init__(self) -> None:
        doc = "call(arena, *inputs, *outputs): run a compiled program on arrays."
        super().__init__(_TEXT, ("call_arrays",), doc, {"ndarray": id(np.ndarray)})

    def entry(self, library: Library, function: int, frame: Frame) -> ArrayEntry:
        """A builtin that calls ``function``, which ``library`` holds."""
        nbytes = array("q", frame.nbytes)
        ranges = array("q", [end for pair in frame.written for end in pair])
        record = _Record(
            function, frame.dims_address, _start(frame.table), len(frame.table), frame.inputs, frame.first_output,
            frame.outputs, _start(nbytes), _start(ranges), len(frame.written), int(frame.work >= _RELEASE),
        )  # fmt: skip
        record.kept = (library, frame.table, nbytes, ranges)
        holder = Address(ctypes.addressof(record))
        holder.kept = record
        return self.builtin("call_arrays", holder)

    def works(self) -> bool:
        """Whether addresses arrive in their places, and whether what does not suit is refused."""
        given, made = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((), np.int64)
        for release in (0, _RELEASE):
            seen = array("q", [0] * 5)
            table = array("q", [0, 0, 7, 0, _start(seen)])  # arena, one input, a state, one output, where to tell
            frame = Frame(table, 1, 3, 1, 9, [given.nbytes], [(1, 2)], release)
            call = self.entry(self.library, self.probe, frame)
            if call(5, given, made) is not True or list(seen) != [5, given.ctypes.data, 7, made.ctypes.data, 9]:
                return False
            answers = Frame(table, 1, 3, 1, 7, [given.nbytes], [(1, 2)], release)
            if self.entry(self.library, self.probe, answers)(5, given, made) != 7:
                return False
            inside = given.ctypes.data
            taken = Frame(table, 1, 3, 1, 9, [given.nbytes], [(1, 2), (inside + 23, inside + 40)], release)
            refused = self.entry(self.library, self.probe, taken)
            if refused(5, given, made) is not False or any(call(5, x, made) for x in (given.T, [1.0], None)):
                return False
        return True


def _start(words: array[int]) -> int:
    return words.buffer_info()[0]


@call_once
def _trampoline() -> _ArrayCall | None:
    return make_checked(_ArrayCall)


# The type of an object is at byte 8; the address of an ndarray's data is at byte 16, and its flags are at byte 64.
_TEXT = r"""
%record = type { ptr, ptr, ptr, i64, i64, i64, i64, ptr, ptr, i64, i64 }
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
@_Py_TrueStruct = external global i8
@_Py_FalseStruct = external global i8
@PyExc_TypeError = external global ptr
@ndarray = external global i8
@message = private constant [67 x i8] c"a compiled program takes: arena address, inputs, outputs (ndarray)\00"

; returns null where the sizes are at the address 9
define ptr @probe(ptr %table, ptr %dims) nounwind {
  %to.p = getelementptr ptr, ptr %table, i64 4
  %to = load ptr, ptr %to.p
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %table, i64 32, i1 0)
  %last = getelementptr ptr, ptr %to, i64 4
  store ptr %dims, ptr %last
  %dims.i = ptrtoint ptr %dims to i64
  %nine = icmp eq i64 %dims.i, 9
  %returned = select i1 %nine, ptr null, ptr %dims
  ret ptr %returned
}

define internal ptr @answer(i1 %ran) nounwind {
  %it = select i1 %ran, ptr @_Py_TrueStruct, ptr @_Py_FalseStruct
  call void @Py_IncRef(ptr %it)
  ret ptr %it
}

; the address of a contiguous array's elements, or -1
define internal i64 @address(ptr %object) alwaysinline nounwind {
  %type.p = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type.p
  %is = icmp eq ptr %type, @ndarray
  br i1 %is, label %read, label %no
read:
  %data.p = getelementptr i8, ptr %object, i64 16
  %data = load i64, ptr %data.p
  %flags.p = getelementptr i8, ptr %object, i64 64
  %flags = load i32, ptr %flags.p
  %contiguous = trunc i32 %flags to i1
  br i1 %contiguous, label %yes, label %no
yes:
  ret i64 %data
no:
  ret i64 -1
}

; whether [start, start + nbytes) meets one of the ranges
define internal i1 @meets(i64 %start, i64 %nbytes, ptr %ranges, i64 %count) nounwind {
entry:
  %end = add i64 %start, %nbytes
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %look]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %none
look:
  %at = shl i64 %i, 1
  %low.p = getelementptr i64, ptr %ranges, i64 %at
  %low = load i64, ptr %low.p
  %high.p = getelementptr i64, ptr %low.p, i64 1
  %high = load i64, ptr %high.p
  %before = icmp ult i64 %start, %high
  %behind = icmp ult i64 %low, %end
  %both = and i1 %before, %behind
  %i1 = add i64 %i, 1
  br i1 %both, label %found, label %next
found:
  ret i1 1
none:
  ret i1 0
}

define ptr @call_arrays(ptr %self, ptr %args, i64 %count) nounwind {
entry:
  %record.p = call ptr @PyLong_AsVoidPtr(ptr %self)
  %r = load %record, ptr %record.p
  %function = extractvalue %record %r, 0
  %dims = extractvalue %record %r, 1
  %template = extractvalue %record %r, 2
  %entries = extractvalue %record %r, 3
  %inputs = extractvalue %record %r, 4
  %first = extractvalue %record %r, 5
  %outputs = extractvalue %record %r, 6
  %nbytes = extractvalue %record %r, 7
  %ranges = extractvalue %record %r, 8
  %written = extractvalue %record %r, 9
  %release = extractvalue %record %r, 10
  %arrays = add i64 %inputs, %outputs
  %wanted = add i64 %arrays, 1
  %right = icmp eq i64 %count, %wanted
  br i1 %right, label %begin, label %wrong
wrong:
  %error = load ptr, ptr @PyExc_TypeError
  call void @PyErr_SetString(ptr %error, ptr @message)
  ret ptr null
begin:
  %table = alloca ptr, i64 %entries, align 64
  %size = shl i64 %entries, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %table, ptr %template, i64 %size, i1 0)
  %arena.o = load ptr, ptr %args
  %arena = call ptr @PyLong_AsVoidPtr(ptr %arena.o)
  store ptr %arena, ptr %table
  %null = icmp eq ptr %arena, null
  br i1 %null, label %suspect, label %reading
suspect:
  %raised = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %raised, null
  br i1 %failed, label %bad, label %reading
bad:
  ret ptr null
reading:
  %i = phi i64 [1, %begin], [1, %suspect], [%i1, %stored]
  %i0 = sub i64 %i, 1
  %more = icmp sle i64 %i, %arrays
  br i1 %more, label %read, label %run
read:
  %o.p = getelementptr ptr, ptr %args, i64 %i
  %o = load ptr, ptr %o.p
  %a = call i64 @address(ptr %o)
  %unfit = icmp eq i64 %a, -1
  br i1 %unfit, label %refuse, label %fits
fits:
  %is.input = icmp sle i64 %i, %inputs
  br i1 %is.input, label %input, label %output
input:
  %n.p = getelementptr i64, ptr %nbytes, i64 %i0
  %n = load i64, ptr %n.p
  %met = call i1 @meets(i64 %a, i64 %n, ptr %ranges, i64 %written)
  br i1 %met, label %refuse, label %stored
output:
  %past = sub i64 %i0, %inputs
  %entry.o = add i64 %first, %past
  br label %stored
stored:
  %at = phi i64 [%i, %input], [%entry.o, %output]
  %slot = getelementptr i64, ptr %table, i64 %at
  store i64 %a, ptr %slot
  %i1 = add i64 %i, 1
  br label %reading
refuse:
  %refused = call ptr @answer(i1 0)
  ret ptr %refused
run:
  %long = icmp ne i64 %release, 0
  br i1 %long, label %released, label %held
held:
  %answer.h = call ptr %function(ptr %table, ptr %dims)
  br label %done
released:
  %state = call ptr @PyEval_SaveThread()
  %answer.r = call ptr %function(ptr %table, ptr %dims)
  call void @PyEval_RestoreThread(ptr %state)
  br label %done
done:
  %answer = phi ptr [%answer.h, %held], [%answer.r, %released]
  %error.o = call ptr @PyErr_Occurred()  ; raised by a handler of a signal (see `runtime.interrupts`)
  %interrupted = icmp ne ptr %error.o, null
  br i1 %interrupted, label %bad, label %end
end:
  %nothing = icmp eq ptr %answer, null
  br i1 %nothing, label %fine, label %said
fine:
  %ran = call ptr @answer(i1 1)
  ret ptr %ran
said:
  %integer = call ptr @PyLong_FromVoidPtr(ptr %answer)
  ret ptr %integer
}
"""

__all__ = ["ArrayEntry", "Frame", "array_entry"]
