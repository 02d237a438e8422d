"""The lists of all ranks walked without data: what exists when, how much memory it takes, and who waits for whom.

The static check walks them in any order, the simulator in order of time. A list does not look at data, so the order
makes no difference to what is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from argosy_autoparallel.schedule.matching import Exchange, Message, PendingCollective, Place
from argosy_pir.types import TensorType

__all__ = ["Machine", "Memory", "result_type"]


class Memory:
    """Bytes of the values of one rank by place, and where they were most."""

    __slots__ = ("at", "elsewhere", "live", "peak", "values")

    def __init__(self, resident: int) -> None:
        self.live = {"device": resident, "host": 0, "disk": 0}
        self.peak = dict(self.live)
        self.elsewhere = False  #: whether anything was ever moved off the device
        self.at: Place | None = None  #: where the device's were most
        self.values: dict[Ref, int] = {}  #: what was on the device then

    def add(self, to: str, nbytes: int) -> None:
        """Count more bytes (or less) in a place."""
        self.live[to] += nbytes
        self.elsewhere = self.elsewhere or to != "device"

    def note(self, values: dict[Ref, _Value], place: Place | None, temporary: int = 0) -> None:
        """Compare with the peaks."""
        if self.elsewhere:
            for to, nbytes in self.live.items():
                if to != "device":
                    self.peak[to] = max(self.peak[to], nbytes)
        if self.live["device"] + temporary > self.peak["device"]:
            self.peak["device"], self.at = self.live["device"] + temporary, place
            self.values = {ref: value.nbytes for ref, value in values.items() if value.to == "device"}


class _Value:
    __slots__ = ("event", "made", "nbytes", "readers", "source", "to", "type")

    def __init__(self, type: TensorType, made: Place | None, event: Any = None, source: Ref | None = None) -> None:
        self.type, self.made, self.to = type, made, "device"
        self.nbytes = static_bytes(type)
        self.event = event  # a Message or Meeting that has not been waited for; True for one that needs nobody
        self.source = source  # the value that the started operation reads
        self.readers: list[Place] = []


class Machine:
    """All ranks at some point of their lists. :meth:`step` checks and does one rank's next instruction."""

    def __init__(self, lists: Sequence[InstructionList], exchange: Exchange | None = None) -> None:
        self.lists = lists
        self.exchange = Exchange(len(lists)) if exchange is None else exchange
        self.numbers = [0] * len(lists)
        self.values: list[dict[Ref, _Value]] = [{} for _ in lists]
        self.memory = [Memory(one.resident_bytes) for one in lists]
        for rank, one in enumerate(lists):
            for ref, type in one.given.items():
                self._add(rank, ref, _Value(type, None))
            self.memory[rank].note(self.values[rank], None)

    def has_ended(self, rank: int) -> bool:
        """Whether a rank has done its list."""
        return self.numbers[rank] == len(self.lists[rank])

    def next_instruction(self, rank: int) -> Instruction:
        """The instruction that a rank does next."""
        return self.lists[rank].instructions[self.numbers[rank]]

    def place(self, rank: int) -> Place:
        """The place of :meth:`next`."""
        return Place(rank, self.numbers[rank], self.next_instruction(rank))

    def event(self, rank: int) -> Message | PendingCollective | None:
        """What a rank waits for in its next instruction, None unless that is a wait for others."""
        instruction = self.next_instruction(rank)
        if not isinstance(instruction, Wait):
            return None
        value = self.values[rank].get(instruction.value)
        return value.event if value is not None and isinstance(value.event, (Message, PendingCollective)) else None

    def is_ready(self, rank: int) -> bool:
        """Whether a rank need not wait in its next instruction."""
        event = self.event(rank)
        return event is None or event.done()

    def step(self, rank: int, place: Place | None = None) -> Message | PendingCollective | None:
        """Do a rank's next instruction, at ``place``; returns what it started, or waited for. Raises
        :class:`ScheduleError`."""
        place = self.place(rank) if place is None else place
        found: Message | PendingCollective | None = _STEPS[type(place.instruction)](self, place, place.instruction)
        self.numbers[rank] += 1
        return found

    # One instruction of each kind.

    def _run(self, place: Place, run: Run | Update) -> None:
        one, values, memory = self.lists[place.rank], self.values[place.rank], self.memory[place.rank]
        signature = one.signature(run)
        if signature is None:
            raise ScheduleError(f"{place}: there is no piece {run.piece!r} for chunk {run.chunk}")
        scope = run.chunk, run.microbatch if isinstance(run, Run) else 0
        refs = set()
        for port in signature.inputs:
            if port.scope in ("both", "microbatch") and isinstance(run, Update):
                raise ScheduleError(f"{place}: an update is of all microbatches, but {port.name} is of one")
            ref = port.ref(*scope)
            refs.add(ref)
            self._check_type(place, self._read(place, ref), ref, port.type)
        for port in signature.outputs:
            ref = port.ref(*scope)
            if ref in refs:
                self._check_unused(place, ref, values[ref])
                self._check_type(place, values[ref], ref, port.type)
            else:
                self._add(place.rank, ref, _Value(port.type, place), place)
        memory.note(values, place, signature.temporary_bytes)

    def _start(self, place: Place, start: Start) -> Message | PendingCollective | None:
        value = self._read(place, start.value)
        size = len(start.group or self.lists)
        type = result_type(place, start, value.type, size)
        event = self.exchange.collective(place, start, value.type)
        if start.result == start.value:
            self._check_unused(place, start.value, value)
            value.event, value.made = event or True, place
        else:
            self._add(place.rank, start.result, _Value(type, place, event or True, start.value), place)
            value.readers.append(place)
        return event

    def _wait(self, place: Place, wait: Wait) -> Message | PendingCollective | None:
        values = self.values[place.rank]
        value = values.get(wait.value)
        if value is None or value.event is None:
            raise ScheduleError(f"{place}: nothing was started that gives {wait.value}")
        event, value.event = value.event, None
        if value.source is not None:
            source = values[value.source]
            source.readers = [reader for reader in source.readers if reader != value.made]
            value.source = None
        return event if isinstance(event, (Message, PendingCollective)) else None

    def _send(self, place: Place, send: Send) -> Message:
        return self.exchange.send(place, send.to, send.tag, self._read(place, send.value).type)

    def _receive(self, place: Place, receive: Receive) -> Message:
        message = self.exchange.receive(place, receive.source, receive.tag, receive.type)
        self._add(place.rank, receive.value, _Value(receive.type, place, message), place)
        return message

    def _move(self, place: Place, move: Move) -> None:
        value, memory = self._find(place, move.value), self.memory[place.rank]
        self._check_unused(place, move.value, value)
        memory.add(move.to, value.nbytes)
        memory.add(value.to, -value.nbytes)
        value.to = move.to
        memory.note(self.values[place.rank], place)

    def _free(self, place: Place, free: Free) -> None:
        value = self._find(place, free.value)
        self._check_unused(place, free.value, value)
        self.memory[place.rank].add(value.to, -value.nbytes)
        del self.values[place.rank][free.value]

    # Values.

    def _add(self, rank: int, ref: Ref, value: _Value, place: Place | None = None) -> None:
        values = self.values[rank]
        if ref in values:
            made = values[ref].made
            raise ScheduleError(
                f"{place}: {ref} is there already, {f'from {made}' if made else 'given'}; free it first"
            )
        values[ref] = value
        self.memory[rank].add(value.to, value.nbytes)
        self.memory[rank].note(values, place)

    def _find(self, place: Place, ref: Ref) -> _Value:
        value = self.values[place.rank].get(ref)
        if value is None:
            raise ScheduleError(f"{place}: {ref} is not there{self._describe_free(place, ref)}")
        if value.event is not None:
            raise ScheduleError(f"{place}: {ref} was not waited for, from {value.made}")
        return value

    def _read(self, place: Place, ref: Ref) -> _Value:
        value = self._find(place, ref)
        if value.to != "device":
            raise ScheduleError(f"{place}: {ref} is on the {value.to}; move it to the device first")
        return value

    def _describe_free(self, place: Place, ref: Ref) -> str:
        before = self.lists[place.rank].instructions[: place.number]
        for number in range(len(before) - 1, -1, -1):
            if before[number] == Free(ref):
                return f": freed by {Place(place.rank, number, before[number])}"
        return ": nothing has made it"

    def _check_unused(self, place: Place, ref: Ref, value: _Value) -> None:
        if value.readers:
            raise ScheduleError(f"{place}: {ref} is still read by {value.readers[0]}; wait for that first")

    def _check_type(self, place: Place, value: _Value, ref: Ref, type: TensorType) -> None:
        if value.type is not type and value.type != type:
            made = f"from {value.made}" if value.made is not None else "given"
            raise ScheduleError(f"{place}: {ref} is {value.type} ({made}), but {type} is expected")

    # The end.

    def deadlock_error(self) -> ScheduleError:
        """The error that says why none of the ranks that have not ended can go on."""
        waits = {rank: self.event(rank) for rank in range(len(self.lists)) if not self.has_ended(rank)}
        needs = {rank: min(event.missing_ranks()) for rank, event in waits.items() if event is not None}
        for rank, other in needs.items():
            if self.has_ended(other):
                return ScheduleError(
                    f"{self.place(rank)} waits for {self._awaited_name(rank)}, but rank {other} has ended"
                )
        seen = [min(needs)]
        while needs[seen[-1]] not in seen:
            seen.append(needs[seen[-1]])
        circle = seen[seen.index(needs[seen[-1]]) :]
        parts = "; ".join(f"{self.place(rank)} waits for rank {needs[rank]}" for rank in circle)
        return ScheduleError(f"ranks wait for each other in a circle: {parts}")

    def finish(self) -> None:
        """Raises :class:`ScheduleError` for what was started and not waited for, or not matched."""
        self.exchange.leftovers()
        for rank, values in enumerate(self.values):
            for ref, value in values.items():
                if value.event is not None:
                    raise ScheduleError(f"{value.made}: nobody on rank {rank} waits for {ref}")

    def _awaited_name(self, rank: int) -> str:
        instruction = self.next_instruction(rank)
        assert isinstance(instruction, Wait)
        return str(self.values[rank][instruction.value].made)


_STEPS: dict[type[Instruction], Any] = {
    Run: Machine._run, Update: Machine._run, Start: Machine._start, Wait: Machine._wait, Send: Machine._send,
    Receive: Machine._receive, Move: Machine._move, Free: Machine._free,
}  # fmt: skip


def result_type(place: object, start: Start, type: TensorType, size: int) -> TensorType:
    """The type of what a collective of ``size`` ranks gives. Raises :class:`ScheduleError` for one that cannot be."""
    options, kind = dict(start.options), start.collective
    if kind == "all_gather":
        return type.with_shape((size * _rows(place, type), *type.shape[1:]))
    if kind == "reduce_scatter" or (kind == "all_to_all" and "send_counts" not in options):
        rows = _rows(place, type)
        if rows % size:
            raise ScheduleError(f"{place}: {rows} rows of {type} do not divide into {size} equal parts")
        return type.with_shape((rows // size, *type.shape[1:])) if kind == "reduce_scatter" else type
    if kind == "all_to_all":
        sent, taken = options["send_counts"], options.get("recv_counts", ())
        if len(sent) != size or len(taken) != size or sum(sent) != _rows(place, type):
            raise ScheduleError(
                f"{place}: counts must be {size} numbers each, those sent adding up to the rows of {type}"
            )
        return type.with_shape((sum(taken), *type.shape[1:]))
    if kind == "broadcast" and not 0 <= options.get("root", 0) < size:
        raise ScheduleError(f"{place}: root {options['root']} is not a member of a group of {size}")
    return type


def _rows(place: object, type: TensorType) -> int:
    rows = type.shape[0] if type.shape else None
    if not isinstance(rows, int):
        raise ScheduleError(f"{place}: a value without axes cannot be joined or split")
    return rows
