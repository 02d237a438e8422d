"""The time that lists take for given durations of pieces and links: the same lists that run, walked in order of time.

A rank computes one piece at a time; its link carries one transfer at a time, as that of
:class:`argosy_hwadapt.links.ModelledCommunicator` does, so that simulated and slept times agree.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from argosy_autoparallel.schedule.instructions import Instruction, Move, Run, Update
from argosy_autoparallel.schedule.lists import InstructionList, static_bytes
from argosy_autoparallel.schedule.machine import Machine, Memory
from argosy_autoparallel.schedule.matching import Exchange, Meeting, Message, Place
from argosy_hwadapt.links import LinkModel
from argosy_pir.types import TensorType

__all__ = ["Costs", "Simulation", "Span", "simulate"]


@dataclass(frozen=True)
class Costs:
    """Seconds of pieces, by (name, chunk) or by name; links; bytes per second to and from host and disk."""

    pieces: Mapping[tuple[str, int] | str, float] = field(default_factory=dict)
    link: LinkModel = field(default_factory=lambda: LinkModel.flat(0.0, float("inf")))
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


@dataclass(frozen=True)
class Simulation:
    """What came of a simulation: the time of the whole, and of each rank what it did when, and its memory."""

    seconds: float
    spans: tuple[tuple[Span, ...], ...]
    memory: tuple[Memory, ...]

    def busy(self, rank: int) -> float:
        """Seconds in which a rank computes."""
        return sum(span.end - span.start for span in self.spans[rank] if isinstance(span.instruction, (Run, Update)))

    def idle(self, rank: int) -> float:
        """Seconds in which a rank does not compute."""
        return self.seconds - self.busy(rank)


def simulate(lists: Sequence[InstructionList], costs: Costs) -> Simulation:
    """Walk the lists of all ranks in order of time. Raises :class:`ScheduleError` for lists that the check refuses."""
    return _Simulator(lists, costs).run()


class _Timed(Exchange):
    """An exchange whose messages take their senders' links."""

    def __init__(self, simulator: _Simulator, size: int) -> None:
        super().__init__(size)
        self._simulator = simulator

    def send(self, place: Place, to: int, tag: int, type: TensorType) -> Message:
        """See :meth:`Exchange.send`."""
        message = super().send(place, to, tag, type)
        self._simulator.sent(message, type)
        return message


class _Simulator:
    def __init__(self, lists: Sequence[InstructionList], costs: Costs) -> None:
        size = len(lists)
        self.costs = costs
        self.machine = Machine(lists, _Timed(self, size))
        self.clocks, self.free = [0.0] * size, [0.0] * size
        self.spans: list[list[Span]] = [[] for _ in lists]
        self.ends: dict[Message | Meeting, dict[int, float]] = {}
        self.blocked: defaultdict[Message | Meeting, list[int]] = defaultdict(list)
        self.queue = [(0.0, rank) for rank in range(size)]

    def run(self) -> Simulation:
        """Always go on with the rank that is earliest."""
        machine = self.machine
        while self.queue:
            _, rank = heapq.heappop(self.queue)
            if machine.ended(rank):
                continue
            event = machine.event(rank)
            if event is not None and not event.done():
                self.blocked[event].append(rank)
                continue
            self._step(rank, event)
            heapq.heappush(self.queue, (self.clocks[rank], rank))
        if not all(machine.ended(rank) for rank in range(len(self.clocks))):
            raise machine.stuck()
        machine.finish()
        seconds = max(self.clocks, default=0.0)
        return Simulation(seconds, tuple(map(tuple, self.spans)), tuple(machine.memory))

    def _step(self, rank: int, awaited: Message | Meeting | None) -> None:
        place, start = self.machine.place(rank), self.clocks[rank]
        instruction = place.instruction
        moved = self.machine.values[rank].get(instruction.value) if isinstance(instruction, Move) else None
        came = moved.to if moved is not None else ""
        found = self.machine.step(rank, place)
        if awaited is not None:
            self.clocks[rank] = max(start, self.ends[awaited].pop(rank))
        elif isinstance(instruction, (Run, Update)):
            self.clocks[rank] = start + self.costs.piece(instruction)
        elif isinstance(instruction, Move) and moved is not None:
            slow = self.costs.disk_bandwidth if "disk" in (came, moved.to) else self.costs.host_bandwidth
            self.clocks[rank] = start + moved.nbytes / slow
        elif isinstance(found, Meeting):
            self.ends.setdefault(found, {})[rank] = start
            if found.done():
                self._meet(found)
        self.spans[rank].append(Span(start, self.clocks[rank], place.number, instruction))

    def sent(self, message: Message, type: TensorType) -> None:
        """A message takes its sender's link; it arrives after the latency."""
        rank = message.source
        level = self.costs.link.level((rank, message.target))
        self.free[rank] = max(self.clocks[rank], self.free[rank]) + static_bytes(type) / level.bandwidth
        self.ends[message] = {message.target: self.free[rank] + level.latency}
        self._wake(message)

    def _meet(self, meeting: Meeting) -> None:
        """A collective begins when the last member has started it, and takes the links of all."""
        starts = self.ends[meeting]
        begin = max(starts.values())
        place = next(iter(meeting.calls.values()))
        kind = place.instruction.collective  # type: ignore[attr-defined]
        seconds = self.costs.link.seconds(kind, static_bytes(meeting.type), meeting.group)
        for rank in meeting.group:
            self.free[rank] = starts[rank] = max(begin, self.free[rank]) + seconds
        self._wake(meeting)

    def _wake(self, event: Message | Meeting) -> None:
        for rank in self.blocked.pop(event, ()):
            heapq.heappush(self.queue, (max(self.clocks[rank], self.ends[event][rank]), rank))
