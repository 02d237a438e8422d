"""The time that lists take for given durations of pieces and links: the same lists that run, walked in order of time.

A rank computes one piece at a time; its link carries one transfer at a time, as that of
:class:`argosy_hwadapt.links.ModelledCommunicator` does, so that simulated and slept times agree. What memory lists take
and whether they can run is for :func:`argosy_autoparallel.schedule.verify`, which looks at each value.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from argosy_autoparallel.schedule.instructions import (
    Free,
    Instruction,
    Move,
    Receive,
    Ref,
    Run,
    Send,
    Start,
    Update,
    Wait,
)
from argosy_autoparallel.schedule.lists import InstructionList, ScheduleError, static_bytes
from argosy_autoparallel.schedule.machine import result_type
from argosy_autoparallel.schedule.verify import verify
from argosy_hwadapt.links import Level, LinkModel
from argosy_pir.types import TensorType

__all__ = ["Costs", "Simulation", "Span", "simulate"]


@dataclass(frozen=True)
class Costs:
    """Seconds of pieces, by (name, chunk) or by name; links; bytes per second to and from host and disk."""

    pieces: Mapping[tuple[str, int] | str, float] = field(default_factory=dict)
    link: LinkModel = field(default_factory=lambda: LinkModel.single_level(0.0, float("inf")))
    host_bandwidth: float = float("inf")
    disk_bandwidth: float = float("inf")

    def piece(self, instruction: Run | Update) -> float:
        """The seconds of a piece. Raises KeyError for one without."""
        found = self.pieces.get((instruction.piece, instruction.chunk))
        return self.pieces[instruction.piece] if found is None else found


class Span(NamedTuple):
    """When a rank was in an instruction."""

    start: float
    end: float
    number: int
    instruction: Instruction


class Simulation:
    """What came of a simulation: the time of the whole, and of each rank what it did when."""

    def __init__(self, lists: Sequence[InstructionList], ends: Sequence[Sequence[float]]) -> None:
        self._lists, self._ends = lists, ends
        self.seconds = max((mine[-1] for mine in ends if mine), default=0.0)

    @property
    def spans(self) -> tuple[tuple[Span, ...], ...]:
        """When each rank was in each of its instructions."""
        return tuple(
            tuple(
                Span(begin, end, number, instruction)
                for number, (begin, end, instruction) in enumerate(zip([0.0, *ends], ends, one, strict=False))
            )
            for one, ends in zip(self._lists, self._ends, strict=True)
        )

    def busy_seconds(self, rank: int) -> float:
        """Seconds in which a rank computes."""
        ends, total, begin = self._ends[rank], 0.0, 0.0
        for end, instruction in zip(ends, self._lists[rank], strict=True):
            if type(instruction) is Run or type(instruction) is Update:
                total += end - begin
            begin = end
        return total

    def idle_seconds(self, rank: int) -> float:
        """Seconds in which a rank does not compute."""
        return self.seconds - self.busy_seconds(rank)


def simulate(lists: Sequence[InstructionList], costs: Costs) -> Simulation:
    """Walk the lists of all ranks in order of time. Raises :class:`ScheduleError` for lists that come to no end, which
    the check refuses, too; the times of others that it refuses mean nothing.
    """
    return _Simulator(lists, costs).run()


class _Event:
    """A message, or a member's part of a collective: when it arrives, and the rank that waits for it."""

    __slots__ = ("arrival", "blocked")

    def __init__(self) -> None:
        self.arrival: float | None = None
        self.blocked = False


class _PendingCollective:
    """A collective of a group: when each member has started it, and what it waits for."""

    __slots__ = ("members", "nbytes", "starts")

    def __init__(self, nbytes: int) -> None:
        self.starts: dict[int, float] = {}
        self.members: dict[int, _Event] = {}
        self.nbytes = nbytes


_Key = tuple[str, tuple[int, ...]]
_PERMUTE = -1  # the tag of a permutation's messages


class _Simulator:
    """The clocks of all ranks. ``types`` are those of a rank's values by name and index."""

    def __init__(self, lists: Sequence[InstructionList], costs: Costs) -> None:
        size = len(lists)
        self.lists, self.costs = lists, costs
        self.everyone = tuple(range(size))
        self.clocks, self.free = [0.0] * size, [0.0] * size
        self.ends: list[list[float]] = [[] for _ in lists]
        self.types: list[dict[_Key, TensorType]] = [dict(one.given.items()) for one in lists]
        self.places: list[dict[_Key, str]] = [{} for _ in lists]
        self.events: list[dict[_Key, _Event]] = [{} for _ in lists]
        self.messages: defaultdict[tuple[int, int, int], tuple[deque[_Event], deque[_Event]]]
        self.messages = defaultdict(lambda: (deque(), deque()))
        self.counts: defaultdict[tuple[tuple[int, ...], int], int] = defaultdict(int)
        self.meetings: dict[tuple[tuple[int, ...], int], _PendingCollective] = {}
        self.levels: dict[tuple[int, int], Level] = {}
        self.queue = [(0.0, rank) for rank in range(size)]

    def run(self) -> Simulation:
        """Always go on with the rank that is earliest."""
        while self.queue:
            self._walk(heapq.heappop(self.queue)[1])
        if any(len(ends) < len(one) for ends, one in zip(self.ends, self.lists, strict=True)):
            verify(self.lists)
            raise ScheduleError("ranks wait for what never comes")
        return Simulation(self.lists, self.ends)

    def _walk(self, rank: int) -> None:
        """One rank, until it waits or another one is earlier."""
        instructions, ends, clocks, queue = self.lists[rank].instructions, self.ends[rank], self.clocks, self.queue
        for number in range(len(ends), len(instructions)):
            instruction = instructions[number]
            kind = type(instruction)
            if kind is Free:  # a third of all, which take no time
                ends.append(clocks[rank])
                continue
            if not _STEPS[kind](self, rank, instruction):
                return
            ends.append(clocks[rank])
            if queue and (clocks[rank], rank) > queue[0]:
                heapq.heappush(queue, (clocks[rank], rank))
                return

    # One instruction of each kind; False for a wait that is not over.

    def _run(self, rank: int, run: Run | Update) -> bool:
        self.clocks[rank] += self.costs.piece(run)
        signature = self.lists[rank].signature(run)
        if signature is None:
            verify(self.lists)
            raise ScheduleError(f"rank {rank}: there is no piece for {run}")
        types, chunk, microbatch = self.types[rank], run.chunk, run.microbatch if type(run) is Run else 0
        for port in signature.outputs:
            types[port.key(chunk, microbatch)] = port.type
        return True

    def _wait(self, rank: int, wait: Wait) -> bool:
        event = self.events[rank].get(wait.value)
        if event is None:
            verify(self.lists)
            raise ScheduleError(f"rank {rank}: nothing was started that gives {wait.value}")
        if event.arrival is None:
            event.blocked = True
            return False
        if event.arrival > self.clocks[rank]:
            self.clocks[rank] = event.arrival
        del self.events[rank][wait.value]
        return True

    def _send(self, rank: int, send: Send) -> bool:
        self._message(rank, send.to, send.tag, self._type(rank, send.value))
        return True

    def _receive(self, rank: int, receive: Receive) -> bool:
        self.types[rank][receive.value] = receive.type
        self.events[rank][receive.value] = self._receive_event(receive.source, rank, receive.tag)
        return True

    def _move(self, rank: int, move: Move) -> bool:
        nbytes, came = static_bytes(self._type(rank, move.value)), self.places[rank].get(move.value, "device")
        slow = self.costs.disk_bandwidth if "disk" in (came, move.to) else self.costs.host_bandwidth
        self.clocks[rank] += nbytes / slow
        self.places[rank][move.value] = move.to
        return True

    def _start(self, rank: int, start: Start) -> bool:
        given = self._type(rank, start.value)
        group = start.group or self.everyone
        self.types[rank][start.result] = result_type(f"rank {rank}: {start}", start, given, len(group))
        if start.collective == "permute":
            self.events[rank][start.result] = self._permute(rank, start, given)
            return True
        self.counts[group, rank] += 1
        key = group, self.counts[group, rank]
        meeting = self.meetings.setdefault(key, _PendingCollective(static_bytes(given)))
        meeting.starts[rank] = self.clocks[rank]
        self.events[rank][start.result] = meeting.members[rank] = _Event()
        if len(meeting.starts) == len(group):
            del self.meetings[key]
            self._meet(start.collective, group, meeting)
        return True

    # Links.

    def _type(self, rank: int, ref: Ref) -> TensorType:
        found = self.types[rank].get(ref)
        if found is None:
            verify(self.lists)
            raise ScheduleError(f"rank {rank}: {ref} is not there")
        return found

    def _receive_event(self, source: int, target: int, tag: int) -> _Event:
        sent, asked = self.messages[source, target, tag]
        if sent:
            return sent.popleft()
        event = _Event()
        asked.append(event)
        return event

    def _message(self, rank: int, to: int, tag: int, type: TensorType) -> None:
        """A message takes its sender's link; it arrives after the latency."""
        level = self.levels.get((rank, to))
        if level is None:
            level = self.levels[rank, to] = self.costs.link.level((rank, to))
        self.free[rank] = max(self.clocks[rank], self.free[rank]) + static_bytes(type) / level.bandwidth
        sent, asked = self.messages[rank, to, tag]
        if asked:
            event = asked.popleft()
        else:
            event = _Event()
            sent.append(event)
        self._arrive(event, to, self.free[rank] + level.latency)

    def _permute(self, rank: int, start: Start, type: TensorType) -> _Event:
        pairs = dict(start.options).get("pairs", ())
        for source, target in pairs:
            if source == rank:
                self._message(rank, target, _PERMUTE, type)
        sources = [source for source, target in pairs if target == rank]
        if sources:
            return self._receive_event(sources[0], rank, _PERMUTE)
        event = _Event()
        event.arrival = self.clocks[rank]
        return event

    def _meet(self, kind: str, group: Sequence[int], meeting: _PendingCollective) -> None:
        """A collective begins when the last member has started it, and takes the links of all."""
        begin = max(meeting.starts.values())
        seconds = self.costs.link.seconds(kind, meeting.nbytes, group)
        for rank in group:
            self.free[rank] = max(begin, self.free[rank]) + seconds
            self._arrive(meeting.members[rank], rank, self.free[rank])

    def _arrive(self, event: _Event, rank: int, at: float) -> None:
        event.arrival = at
        if event.blocked:
            heapq.heappush(self.queue, (max(self.clocks[rank], at), rank))


_STEPS: dict[type[Instruction], Callable[[_Simulator, int, Any], bool]] = {
    Run: _Simulator._run, Update: _Simulator._run, Start: _Simulator._start, Wait: _Simulator._wait,
    Send: _Simulator._send, Receive: _Simulator._receive, Move: _Simulator._move,
}  # fmt: skip
