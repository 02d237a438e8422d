"""Compiled programs while somebody watches: their code is made again with stamps around every kernel.

``start(sink)`` instruments all executables there are, and those that are made later, until ``stop()``; in between every
run hands its `Event`s to ``sink``. Nothing is spent on a program that nobody watches.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from argosy_cinn.host import HostCall
from argosy_cinn.runtime.entry import AnsweringEntry
from argosy_cinn.runtime.trace import Trace, clock
from argosy_pir.fork import hold_at_fork

if TYPE_CHECKING:
    from argosy_cinn.executable import Executable


class Event(NamedTuple):
    """What ran on a thread from ``start`` to ``end`` (nanoseconds of `argosy_cinn.runtime.trace.clock`).

    ``call`` is the kernel call's number in the program, counted over all segments, or None for a host call.
    """

    program: str
    name: str
    call: int | None
    thread: int
    start: int
    end: int


Sink = Callable[[Sequence[Event]], None]

_programs: weakref.WeakSet[Executable] = weakref.WeakSet()
_sink: Sink | None = None
_lock = hold_at_fork(threading.Lock())  # for both


def start(sink: Sink) -> None:
    """Instrument all programs. Raises RuntimeError when somebody is watching already."""
    global _sink
    with _lock:
        if _sink is not None:
            raise RuntimeError("compiled programs are being traced already: stop() first")
        _sink = sink
        programs = list(_programs)
    for program in programs:
        program.watch(sink)


def stop() -> None:
    """Give all programs their plain code back."""
    global _sink
    with _lock:
        _sink = None
        programs = list(_programs)
    for program in programs:
        program.unwatch()


def register(program: Executable) -> None:
    """Note a program that was made; it is instrumented at once while somebody watches."""
    with _lock:
        _programs.add(program)
        sink = _sink
    if sink is not None:
        program.watch(sink)


def watched_entries(
    entries: Sequence[AnsweringEntry], trace: Trace, program: str, names: Sequence[str], sink: Sink
) -> list[AnsweringEntry]:
    """Entries that hand over what their instrumented code recorded."""
    lock = threading.Lock()  # the buffer holds the records of one run

    def traced_entry(entry: AnsweringEntry) -> AnsweringEntry:
        def call(addresses: int, dims: int) -> int | None:
            with lock:
                answer = entry(addresses, dims)
                slices = trace.drain()
            sink([Event(program, names[s.number], s.number, s.thread, s.start, s.end) for s in slices])
            return answer

        return call

    return [traced_entry(entry) for entry in entries]


class WatchedHost(HostCall):
    """A host call that tells how long it took."""

    def __init__(self, host: HostCall, program: str, sink: Sink) -> None:
        vars(self).update(vars(host))  # what it was made of is the same
        self._program, self._sink = program, sink

    def run(self, memory: Any, tokens: dict[Any, Any], communicators: Mapping[tuple[int, ...], Any]) -> None:
        """Run the call."""
        began = clock()
        super().run(memory, tokens, communicators)
        self._sink([Event(self._program, self.op.name, None, threading.get_ident(), began, clock())])
