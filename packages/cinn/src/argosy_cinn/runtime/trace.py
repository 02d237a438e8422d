"""When each kernel ran, on which thread: records that instrumented code writes into a buffer of its own.

Instrumented code calls ``argosy_trace_begin(number)`` before and ``argosy_trace_end(record)`` after every chunk of a
kernel call, some 50 ns together. What is not instrumented knows nothing of this.
"""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any, NamedTuple

import numpy as np

from argosy_cinn.call_once import call_once
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import I64, PTR, VOID, Value, constant
from argosy_cinn.runtime.jit import compile_object
from argosy_cinn.runtime.linking import Library, link
from argosy_cinn.target import Target

#: Records that one run of a segment may make; later ones are dropped.
CAPACITY = 1 << 15
_RECORD = 64
_BEGIN, _END = "argosy_trace_begin", "argosy_trace_end"


class Slice(NamedTuple):
    """One chunk of kernel call ``number`` on the thread of this identity, in nanoseconds of `clock`."""

    number: int
    thread: int
    start: int
    end: int


def clock() -> int:
    """The clock of slices: nanoseconds that never go back."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def traced_call(b: Instructions, number: int, kernel: str, arguments: list[Value]) -> None:
    """Emit a call of ``kernel`` between two stamps."""
    record = b.call(_BEGIN, PTR, constant(I64, number))
    b.call(kernel, VOID, *arguments)
    b.call(_END, VOID, record)


class Trace:
    """The buffer of one program. ``symbols``: what its instrumented code has to be linked with."""

    def __init__(self) -> None:
        if os.name != "posix":
            raise NotImplementedError("instrumented programs need clock_gettime; not implemented on this system")
        self._memory = ctypes.create_string_buffer((CAPACITY + 2) * _RECORD + 64)
        self._base = (ctypes.addressof(self._memory) + 63) & ~63
        self._library: Library = link(_object(), (_BEGIN, _END), symbols={"trace_buffer": self._base})
        self.symbols = {name: self._library.address(name) for name in (_BEGIN, _END)}
        self.dropped = 0

    def drain(self) -> list[Slice]:
        """The slices since the last call, in no particular order. No instrumented code may be running."""
        written = ctypes.c_int64.from_address(self._base)
        found, written.value = written.value, 0
        self.dropped += max(found - CAPACITY, 0)
        size = min(found, CAPACITY) * _RECORD
        data: Any = (ctypes.c_char * size).from_address(self._base + _RECORD)
        words = np.frombuffer(data, np.int64).reshape(-1, 8)
        start, end = (words[:, i] * 1_000_000_000 + words[:, i + 1] for i in (0, 2))
        return [Slice(*row) for row in zip(*(c.tolist() for c in (words[:, 4], words[:, 5], start, end)), strict=True)]


@call_once
def _object() -> bytes:
    text = _TEXT.replace("$CLOCK", str(int(time.CLOCK_MONOTONIC))).replace("$CAPACITY", str(CAPACITY))
    return compile_object(text, Target.host())


# Word 0 counts records. A record: begin (seconds, nanoseconds), end (the same), number, thread. The last one takes what
# does not fit.
_TEXT = r"""
@trace_buffer = external global i8
declare i32 @clock_gettime(i32, ptr)
declare ptr @pthread_self()

define ptr @argosy_trace_begin(i64 %number) nounwind {
  %n = atomicrmw add ptr @trace_buffer, i64 1 monotonic
  %fits = icmp ult i64 %n, $CAPACITY
  %slot = select i1 %fits, i64 %n, i64 $CAPACITY
  %next = add i64 %slot, 1
  %offset = shl i64 %next, 6
  %record = getelementptr i8, ptr @trace_buffer, i64 %offset
  %number.p = getelementptr i8, ptr %record, i64 32
  store i64 %number, ptr %number.p
  %thread = call ptr @pthread_self()
  %thread.p = getelementptr i8, ptr %record, i64 40
  store ptr %thread, ptr %thread.p
  %r = call i32 @clock_gettime(i32 $CLOCK, ptr %record)
  ret ptr %record
}

define void @argosy_trace_end(ptr %record) nounwind {
  %end.p = getelementptr i8, ptr %record, i64 16
  %r = call i32 @clock_gettime(i32 $CLOCK, ptr %end.p)
  ret void
}
"""
