"""From the order in which ranks run pieces to their lists: messages for what other ranks read, frees for what nobody
reads any more.

A value has one name on all ranks. What a piece reads and its rank neither makes nor is given comes from the rank that
makes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from argosy_autoparallel.schedule.instructions import Free, Instruction, Receive, Ref, Run, Send, Update, Wait
from argosy_autoparallel.schedule.lists import InstructionList, Port, ScheduleError, Signature
from argosy_pir.types import TensorType

__all__ = ["connect"]

Order = Sequence[Run | Update]
Pieces = Mapping[tuple[str, int | None], Signature]


def connect(
    orders: Sequence[Order], pieces: Pieces, given: Sequence[Mapping[Ref, TensorType]], ahead: int = 1
) -> list[InstructionList]:
    """The lists of all ranks that run pieces in these orders. Receives are started ``ahead`` runs before the value is
    read. Values that are given, updated or never read stay. Raises :class:`ScheduleError` for what no rank makes.
    """
    ranks = [_Order(order, pieces, mine) for order, mine in zip(orders, given, strict=True)]
    makers = {
        ref: rank for rank, one in enumerate(ranks) for refs in one.writes for ref in refs if ref not in one.given
    }
    channels = _channels(ranks, makers)
    return [InstructionList(tuple(one.instructions(rank, channels, ahead)), pieces, one.given)
            for rank, one in enumerate(ranks)]  # fmt: skip


class _Channel:
    """The values that travel from one rank to another under one tag, in the order they are made."""

    def __init__(self, source: int, target: int, tag: int) -> None:
        self.source, self.target, self.tag = source, target, tag
        self.refs: list[Ref] = []
        self.number: dict[Ref, int] = {}

    def append(self, ref: Ref) -> None:
        """Add the value that travels next."""
        self.number[ref] = len(self.refs)
        self.refs.append(ref)


def _channels(ranks: Sequence[_Order], makers: Mapping[Ref, int]) -> list[_Channel]:
    names = {name: number for number, name in enumerate(sorted({ref.name for ref in makers}))}
    found: dict[tuple[int, int, str], _Channel] = {}
    wanted = [one.foreign_values() for one in ranks]
    targets: defaultdict[Ref, list[int]] = defaultdict(list)
    for target, refs in enumerate(wanted):
        for ref in refs:
            targets[ref].append(target)
    for source, one in enumerate(ranks):
        for ref in (ref for refs in one.writes for ref in refs):
            for target in targets.get(ref, ()):
                if target != source and makers[ref] == source:
                    key = source, target, ref.name
                    found.setdefault(key, _Channel(source, target, names[ref.name])).append(ref)
    for target, refs in enumerate(wanted):
        for ref, run in refs.items():
            if ref not in makers:
                raise ScheduleError(f"rank {target}: {run} reads {ref}, which no rank makes or is given")
    return list(found.values())


class _Order:
    """One rank's order: the runs, what each reads and writes."""

    def __init__(self, order: Order, pieces: Pieces, given: Mapping[Ref, TensorType]) -> None:
        self.order, self.given = order, given
        self.types: dict[Ref, TensorType] = {}
        self.reads: list[list[Ref]] = []
        self.writes: list[list[Ref]] = []
        for run in order:
            signature = pieces.get((run.piece, run.chunk)) or pieces.get((run.piece, None))
            if signature is None:
                raise ScheduleError(f"{run}: there is no piece {run.piece!r} for chunk {run.chunk}")
            self.reads.append(self._refs(signature.inputs, run))
            self.writes.append(self._refs(signature.outputs, run))

    def _refs(self, ports: Sequence[Port], run: Run | Update) -> list[Ref]:
        microbatch = run.microbatch if isinstance(run, Run) else 0
        refs = [port.ref(run.chunk, microbatch) for port in ports]
        self.types.update(zip(refs, [port.type for port in ports], strict=True))
        return refs

    def foreign_values(self) -> dict[Ref, Run | Update]:
        """What is read and neither made before nor given, with the first run that reads it."""
        there = set(self.given)
        found: dict[Ref, Run | Update] = {}
        for run, reads, writes in zip(self.order, self.reads, self.writes, strict=True):
            for ref in reads:
                if ref not in there:
                    found.setdefault(ref, run)
            there.update(writes)
        return found

    def instructions(self, rank: int, channels: Sequence[_Channel], ahead: int) -> list[Instruction]:
        """The list of this rank: receives, waits, runs, sends and frees."""
        incoming = {ref: channel for channel in channels if channel.target == rank for ref in channel.refs}
        outgoing: dict[Ref, list[_Channel]] = {}
        for channel in channels:
            if channel.source == rank:
                for ref in channel.refs:
                    outgoing.setdefault(ref, []).append(channel)
        last = {ref: at for at, reads in enumerate(self.reads) for ref in reads}
        made: list[Instruction] = []
        posted: dict[int, int] = {}
        waited: set[Ref] = set()
        for at, run in enumerate(self.order):
            for later in range(at, min(at + ahead + 1, len(self.order))):
                for ref in self.reads[later]:
                    if ref in incoming:
                        made += self._receives(incoming[ref], ref, posted)
            arriving = [ref for ref in dict.fromkeys(self.reads[at]) if ref in incoming and ref not in waited]
            waited.update(arriving)
            made += [Wait(ref, line=run.line) for ref in arriving]
            made.append(run)
            made += [
                Send(ref, c.target, c.tag, line=run.line) for ref in self.writes[at] for c in outgoing.get(ref, ())
            ]
            made += [Free(ref, line=run.line) for ref in self._dead_values(at, last, outgoing)]
        return made

    def _receives(self, channel: _Channel, ref: Ref, posted: dict[int, int]) -> list[Instruction]:
        """Receives for the channel's values up to ``ref`` that were not started yet."""
        begin, end = posted.get(id(channel), 0), channel.number[ref] + 1
        posted[id(channel)] = max(begin, end)
        return [Receive(r, self.types[r], channel.source, channel.tag) for r in channel.refs[begin:end]]

    def _dead_values(self, at: int, last: Mapping[Ref, int], outgoing: Mapping[Ref, Sequence[_Channel]]) -> list[Ref]:
        read = [ref for ref in dict.fromkeys(self.reads[at]) if last[ref] == at and ref not in self.writes[at]]
        sent = [ref for ref in self.writes[at] if ref in outgoing and ref not in last]
        return [ref for ref in (*read, *sent) if ref not in self.given]
