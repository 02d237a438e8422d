"""Signals while native loops run: a loop asks now and then whether somebody wants it to end.

Python runs the handlers of signals on its main thread, between bytecodes, of which a native loop executes none. So each
loop counts its steps and calls ``argosy_poll`` after some; that takes the interpreter's lock ten times a second, lets
other threads have it, and runs the handlers. Where one raises (Ctrl-C: KeyboardInterrupt) the loop ends, the exception
stays with the thread, and the builtin that called the program raises it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from argosy_cinn.call_once import call_once
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I64, Value
from argosy_cinn.runtime.entry import raises_errors
from argosy_cinn.runtime.linking import Library, link
from argosy_cinn.runtime.trampolines import cached_object

__all__ = ["POLL", "Poll", "poll_symbols"]

POLL = "argosy_poll"


class Poll:
    """What a loop asks with. ``steps``, words of the loop: steps until the next call, and between calls, which is
    found out once: short loops that run often ask as seldom as long ones. ``times``, of one run: those of the last
    call and of the last look at signals.
    """

    def __init__(self, b: Function) -> None:
        self.b, self.steps = b, b.module.words("poll", (1, 1))
        self.times = b.alloca(I64, 2)
        for i in range(2):
            b.store(b.constant(I64, 0), b.gep(self.times, i, I64))

    def goes_on(self) -> Value:
        """Count a step; the condition that the loop may go on."""
        b = self.b
        left = b.op(I64, f"add i64 {b.load(I64, self.steps).name}, -1")
        b.store(left, self.steps)
        way = b.icmp("sle", left, 0)
        call, go = (lambda: [b.call(POLL, "i1", self.steps, self.times)]), (lambda: [b.constant("i1", True)])
        return b.either(way, call, go)[0]


@call_once
def _library() -> Library | None:
    """The native side; None on an interpreter without these functions, where loops run to their end."""
    names = ("PyGILState_Ensure", "PyGILState_Release", "PyEval_SaveThread", "PyEval_RestoreThread",
             "PyErr_CheckSignals", "PyErr_Occurred")  # fmt: skip
    if not raises_errors():
        return None
    symbols = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in names}
    return link(cached_object(_TEXT), (POLL,), symbols=symbols)


@call_once
def _silent_library() -> Library:
    return link(cached_object(_SILENT), (POLL,))


def poll_symbols() -> Mapping[str, int]:
    """The address of what loops call."""
    return {POLL: (_library() or _silent_library()).address(POLL)}


_SILENT = "define i1 @argosy_poll(ptr %counter, ptr %times) {\n  store i64 1048576, ptr %counter\n  ret i1 1\n}\n"
# 100 ms between two looks at signals; calls are 1 to 64 steps and, where those do not take longer, 1 to 2 ms apart
_TEXT = r"""
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyErr_CheckSignals()
declare ptr @PyErr_Occurred()
declare i32 @clock_gettime(i32, ptr)

define internal i1 @look() nounwind {
entry:
  %state = call i32 @PyGILState_Ensure()
  %thread = call ptr @PyEval_SaveThread()
  call void @PyEval_RestoreThread(ptr %thread)
  %raised = call ptr @PyErr_Occurred()
  %already = icmp ne ptr %raised, null
  br i1 %already, label %done, label %handle
handle:
  %answer = call i32 @PyErr_CheckSignals()
  %fails = icmp ne i32 %answer, 0
  br label %done
done:
  %ends = phi i1 [1, %entry], [%fails, %handle]
  call void @PyGILState_Release(i32 %state)
  %on = xor i1 %ends, 1
  ret i1 %on
}

define i1 @argosy_poll(ptr %counter, ptr %last.p) nounwind {
entry:
  %time = alloca [2 x i64]
  %steps.p = getelementptr i64, ptr %counter, i64 1
  %looked.p = getelementptr i64, ptr %last.p, i64 1
  %failed = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %rest.p = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.p
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %last = load i64, ptr %last.p
  %steps = load i64, ptr %steps.p
  store i64 %now, ptr %last.p
  %first = icmp eq i64 %last, 0
  br i1 %first, label %begin, label %adapt
begin:
  store i64 %now, ptr %looked.p
  store i64 %steps, ptr %counter
  ret i1 1
adapt:
  %gap = sub i64 %now, %last
  %short = icmp slt i64 %gap, 1000000
  %few = icmp slt i64 %steps, 64
  %double = and i1 %short, %few
  %twice = shl i64 %steps, 1
  %more = select i1 %double, i64 %twice, i64 %steps
  %long = icmp sgt i64 %gap, 10000000
  %next = select i1 %long, i64 1, i64 %more
  store i64 %next, ptr %steps.p
  store i64 %next, ptr %counter
  %looked = load i64, ptr %looked.p
  %since = sub i64 %now, %looked
  %due = icmp sgt i64 %since, 100000000
  br i1 %due, label %ask, label %go
ask:
  store i64 %now, ptr %looked.p
  %on = call i1 @look()
  ret i1 %on
go:
  ret i1 1
}
"""
