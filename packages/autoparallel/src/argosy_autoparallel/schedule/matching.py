"""Which send belongs to which receive, and which collectives of a group belong together, by the order of starting."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import NamedTuple

from argosy_autoparallel.schedule.instructions import Instruction, Start
from argosy_autoparallel.schedule.lists import ScheduleError
from argosy_pir.types import TensorType

__all__ = ["Exchange", "Message", "PendingCollective", "Place"]

_OWN = ("send_counts", "recv_counts")
_PERMUTE = -1  # the tag of a permutation's messages


class Place(NamedTuple):
    """An instruction of a rank's list."""

    rank: int
    number: int
    instruction: Instruction

    def __str__(self) -> str:
        line = f" at {self.instruction.line}" if self.instruction.line else ""
        return f"rank {self.rank}, instruction {self.number}: {self.instruction}{line}"


class Message:
    """A message that was sent, asked for, or both."""

    __slots__ = ("asked", "sent", "source", "target", "type")

    def __init__(self, source: int, target: int, type: TensorType) -> None:
        self.source, self.target, self.type = source, target, type
        self.sent: Place | None = None
        self.asked: Place | None = None

    def done(self) -> bool:
        """Whether it was sent."""
        return self.sent is not None

    def missing_ranks(self) -> set[int]:
        """The sender, while it has not sent."""
        return set() if self.done() else {self.source}


class PendingCollective:
    """A collective of a group: the members that have started it."""

    __slots__ = ("calls", "group", "type")

    def __init__(self, group: tuple[int, ...], type: TensorType) -> None:
        self.group, self.type = group, type
        self.calls: dict[int, Place] = {}

    def done(self) -> bool:
        """Whether all have."""
        return len(self.calls) == len(self.group)

    def missing_ranks(self) -> set[int]:
        """The members that have not."""
        return set(self.group) - self.calls.keys()


class Exchange:
    """All that ranks have started. Raises :class:`ScheduleError` at the first two that do not belong together."""

    def __init__(self, size: int) -> None:
        self._everyone = tuple(range(size))
        self._sent: defaultdict[tuple[int, int, int], deque[Message]] = defaultdict(deque)
        self._asked: defaultdict[tuple[int, int, int], deque[Message]] = defaultdict(deque)
        self._counts: defaultdict[tuple[tuple[int, ...], int], int] = defaultdict(int)
        self._open: dict[tuple[tuple[int, ...], int], PendingCollective] = {}

    def send(self, place: Place, to: int, tag: int, type: TensorType) -> Message:
        """Match a send with the first receive that waits for it, if there is one."""
        self._check_rank(place, to)
        route = place.rank, to, tag
        waiting = self._asked[route]
        message = waiting.popleft() if waiting else Message(place.rank, to, type)
        message.sent = place
        if message.asked is None:
            self._sent[route].append(message)
        else:
            _check_fit(message, type, message.type)
        return message

    def receive(self, place: Place, source: int, tag: int, type: TensorType) -> Message:
        """Match a receive with the first message that nobody has asked for, if there is one."""
        self._check_rank(place, source)
        route = source, place.rank, tag
        arrived = self._sent[route]
        message = arrived.popleft() if arrived else Message(source, place.rank, type)
        message.asked = place
        if message.sent is None:
            self._asked[route].append(message)
        else:
            _check_fit(message, message.type, type)
        return message

    def collective(self, place: Place, start: Start, type: TensorType) -> PendingCollective | Message | None:
        """Match a collective with those of the other members; a permutation is messages, None where none comes."""
        if start.collective == "permute":
            return self._permute(place, start, type)
        group = start.group or self._everyone
        if place.rank not in group:
            raise ScheduleError(f"{place}: the rank is not a member of the group {group}")
        for rank in group:
            self._check_rank(place, rank)
        self._counts[group, place.rank] += 1
        key = group, self._counts[group, place.rank]
        meeting = self._open.setdefault(key, PendingCollective(group, type))
        for other in meeting.calls.values():
            _check_alike(other, meeting.type, place, type)
            break
        meeting.calls[place.rank] = place
        if meeting.done():
            del self._open[key]
            _check_counts(meeting)
        return meeting

    def leftovers(self) -> None:
        """Raises :class:`ScheduleError` for a message that nobody takes, or a collective that a member leaves out."""
        for route in self._sent.values():
            for message in route:
                raise ScheduleError(f"{message.sent}: no receive on rank {message.target} takes this message")
        for meeting in self._open.values():
            first = next(iter(meeting.calls.values()))
            raise ScheduleError(f"{first}: rank {min(meeting.missing_ranks())} has no collective of the group for it")

    def _permute(self, place: Place, start: Start, type: TensorType) -> Message | None:
        pairs = dict(start.options).get("pairs", ())
        if len({target for _, target in pairs}) != len(pairs):
            raise ScheduleError(f"{place}: a rank is the target of two pairs")
        for source, target in pairs:
            if source == place.rank:
                self.send(place, target, _PERMUTE, type)
        sources = [source for source, target in pairs if target == place.rank]
        return self.receive(place, sources[0], _PERMUTE, type) if sources else None

    def _check_rank(self, place: Place, rank: int) -> None:
        if rank not in self._everyone:
            raise ScheduleError(f"{place}: there is no rank {rank}, ranks are 0 to {len(self._everyone) - 1}")


def _check_fit(message: Message, sent: TensorType, asked: TensorType) -> None:
    if sent != asked:
        raise ScheduleError(f"a message does not fit: {message.sent} sends {sent}; {message.asked} takes {asked}")


def _check_alike(one: Place, one_type: TensorType, other: Place, other_type: TensorType) -> None:
    a, b = one.instruction, other.instruction
    assert isinstance(a, Start)
    assert isinstance(b, Start)
    uneven = any(name in _OWN for name, _ in a.options)
    alike = one_type.dtype == other_type.dtype if uneven else one_type == other_type
    if (a.collective, _common_options(a)) != (b.collective, _common_options(b)) or not alike:
        first, second = sorted([(one, one_type), (other, other_type)], key=lambda each: each[0].rank)
        raise ScheduleError(
            f"ranks disagree: {first[0]} of {first[1]}; {second[0]} of {second[1]}, as the next collective of one group"
        )


def _common_options(start: Start) -> dict[str, object]:
    return {name: None if name in _OWN else value for name, value in start.options}


def _check_counts(meeting: PendingCollective) -> None:
    options = {rank: dict(place.instruction.options) for rank, place in meeting.calls.items()}  # type: ignore[attr-defined]
    for i, source in enumerate(meeting.group):
        for j, target in enumerate(meeting.group):
            sent, taken = options[source].get("send_counts", {}), options[target].get("recv_counts", {})
            if sent and sent[j] != taken[i]:
                raise ScheduleError(
                    f"ranks disagree: {meeting.calls[source]} sends {sent[j]} rows to rank {target}; "
                    f"{meeting.calls[target]} takes {taken[i]}"
                )
