"""Counting what is communicated: calls and bytes by kind, and each with its line and who needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from argosy_hwadapt import Communicator, calls
from argosy_hwadapt.calls import Call
from argosy_hwadapt.coalesced_call import CoalescedCall
from argosy_hwadapt.communicator import BaseCommunicator, Handle
from argosy_phi_ops.context import context
from argosy_phi_ops.reference.running import running_operation
from argosy_pir import TensorType

if TYPE_CHECKING:
    from argosy_hwadapt import Device

__all__ = ["Collective", "CollectiveReport", "CountedCommunicator", "Counts", "count_collectives", "needed_by"]

_ACTIVE, _NEEDED_BY = "argosy.counts", "argosy.needed_by"


class Collective(NamedTuple):
    """A collective or message of a rank: of its program, or made by eager execution.

    ``kind`` is its primitive, at the user's ``line``; ``group`` its ranks, none for all of them, None for messages;
    ``type`` that of the operand, or of what is received; ``nbytes`` what this rank sends by ring algorithms (as
    :class:`Counts` has it). ``needed_by`` names the operations that it was put in for;
    none where somebody asked for it: by a layout, by ``reshard`` or by the collective itself. ``computed`` numbers are
    computed while it is on its way, none while it is waited for where it starts. ``repeated`` in a loop or branch: it
    counts once, as it is written.
    """

    kind: str
    group: tuple[int, ...] | None
    type: TensorType
    nbytes: float
    line: str
    needed_by: tuple[str, ...]
    computed: int
    repeated: bool

    @property
    def implicit(self) -> bool:
        """Whether nobody asked for it."""
        return bool(self.needed_by)

    def __str__(self) -> str:
        ranks = "" if self.group is None else f" of {_ranks(self.group)}"
        reason = f"for {', '.join(self.needed_by)}" if self.needed_by else "asked for"
        where = f" at {self.line}" if self.line else ""
        hidden = f", {self.computed:,} numbers computed meanwhile" if self.computed else ""
        inside = ", in a loop or branch" if self.repeated else ""
        return f"{self.kind}{ranks}: {self.type}, {self.nbytes:,.0f} bytes, {reason}{where}{hidden}{inside}"


def _ranks(group: tuple[int, ...]) -> str:
    return f"ranks {', '.join(map(str, group))}" if group else "all ranks"


@dataclass(frozen=True)
class CollectiveReport:
    """The ``collectives`` of a rank's program in order; its text is a line for each, and sums by kind."""

    collectives: tuple[Collective, ...]

    @property
    def total_bytes(self) -> float:
        """Bytes that this rank sends in all."""
        return sum(each.nbytes for each in self.collectives)

    @property
    def implicit(self) -> tuple[Collective, ...]:
        """Those that nobody asked for."""
        return tuple(each for each in self.collectives if each.implicit)

    def __str__(self) -> str:
        asked = len(self.collectives) - len(self.implicit)
        kinds = dict.fromkeys(each.kind for each in self.collectives)
        sums = [f"{kind}: {self._sum(kind)}" for kind in kinds]
        total = f"{len(self.collectives)} collectives, {self.total_bytes:,.0f} bytes; {asked} asked for"
        return "\n".join([total, *[f"  {line}" for line in sums], *map(str, self.collectives)])

    __repr__ = __str__

    def _sum(self, kind: str) -> str:
        found = [each.nbytes for each in self.collectives if each.kind == kind]
        return f"{len(found)}, {sum(found):,.0f} bytes"


class Counts:
    """``calls`` and ``bytes`` by kind (all_reduce, all_gather, ...), and each call in order in ``log``; ``report``
    tells their lines and who needed them, too.

    Bytes are those that a rank sends by ring algorithms: ``2 S (n - 1) / n`` for an all-reduce of S bytes,
    ``S (n - 1) / n`` for gathers and scatters of S bytes in all, and for an all-to-all of S bytes on each rank.
    """

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self.bytes: dict[str, float] = {}
        self.log: list[tuple[str, float]] = []
        self._collectives: list[Collective] = []

    def add(self, found: Collective) -> None:
        """Count one call."""
        kind, nbytes = found.kind, found.nbytes
        self.calls[kind] = self.calls.get(kind, 0) + 1
        self.bytes[kind] = self.bytes.get(kind, 0.0) + nbytes
        self.log.append((kind, nbytes))
        self._collectives.append(found)

    @property
    def report(self) -> CollectiveReport:
        """Each call with its ranks, type, bytes, line, and who needed it."""
        return CollectiveReport(tuple(self._collectives))

    @property
    def total_bytes(self) -> float:
        """Bytes sent by this rank, over all kinds."""
        return sum(self.bytes.values())

    def __repr__(self) -> str:
        return f"Counts(calls={self.calls}, bytes={self.bytes})"


@contextmanager
def count_collectives() -> Iterator[Counts]:
    """Count this rank's communication within the block::

    with count_collectives() as counts:
        loss.backward()
    print(counts.calls)  # {'all_reduce': 4}
    print(counts.report)  # each with its ranks, bytes, line, and who needed it
    """
    counts = Counts()
    active: list[Counts] = context().values.setdefault(_ACTIVE, [])
    active.append(counts)
    try:
        yield counts
    finally:
        active.remove(counts)


@contextmanager
def needed_by(name: str) -> Iterator[None]:
    """What this rank communicates within the block is for the operator ``name``: nobody asked for it."""
    values = context().values
    before, values[_NEEDED_BY] = values.get(_NEEDED_BY, ()), (name,)
    try:
        yield
    finally:
        values[_NEEDED_BY] = before


class CountedCommunicator(BaseCommunicator):
    """A communicator that tells the active counters of its rank; ``group`` are its ranks, none for all of them."""

    def __init__(self, inner: Communicator, group: tuple[int, ...] = ()) -> None:
        self.inner, self.group = inner, group
        self.rank, self.size, self.name = inner.rank, inner.size, inner.name

    def __repr__(self) -> str:
        return repr(self.inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def takes_device_buffers(self, device: Device) -> bool:
        """See :meth:`Communicator.takes_device_buffers`."""
        return self.inner.takes_device_buffers(device)

    def start(self, call: Call) -> Handle:
        """See :meth:`Communicator.start`."""
        share = _SENT.get(call.kind)
        if share is not None and context().values.get(_ACTIVE):
            self._count(call, self.group, share(self, call))
        return self.inner.start(call)

    def start_coalesced(self, call: CoalescedCall) -> Handle:
        """See :meth:`Communicator.start_coalesced`. Each operand counts as a collective."""
        if context().values.get(_ACTIVE):
            for number, member in enumerate(call.members()):
                self._count(member, self.group, _SENT[call.kind](self, member), number)
        return self.inner.start_coalesced(call)

    def send(self, buffer: Any, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`."""
        if context().values.get(_ACTIVE):
            self._count(calls.send(self.size, buffer, peer, tag), None, buffer.nbytes)
        self.inner.send(buffer, peer, tag)

    def _count(self, call: Call, group: tuple[int, ...] | None, nbytes: float, number: int = 0) -> None:
        """Of a call that an operation makes, the shape is that of its tensor of that number, and in a captured program
        the line is the operation's."""
        values, op = context().values, running_operation()
        array, line, reason = call.send, str(call.site), values.get(_NEEDED_BY, ())
        type: Any = TensorType(array.shape, array.dtype.name)
        if op is not None:
            type = [x.type for x in op.operands if isinstance(x.type, TensorType)][number]
            line = line if op.location.is_unknown else str(op.location)
            reason = op.annotations.get("needed_by", ()) or reason
        found = Collective(call.kind, group, type, nbytes, line, reason, 0, False)
        for counts in values[_ACTIVE]:
            counts.add(found)


_SENT: dict[str, Callable[[CountedCommunicator, Call], float]] = {
    "all_reduce": lambda c, call: 2 * call.send.nbytes * (c.size - 1) / c.size,
    "all_gather": lambda c, call: call.send.nbytes * (c.size - 1),
    "reduce_scatter": lambda c, call: call.send.nbytes * (c.size - 1) / c.size,
    "all_to_all": lambda c, call: _to_others(c, call) * call.send.itemsize,
    "broadcast": lambda c, call: call.send.nbytes if c.rank == call.agreed["root"] else 0,
}
"""From a kind to the bytes that a rank sends."""


def _to_others(c: CountedCommunicator, call: Call) -> float:
    counts = call.own.get("send_counts")
    return float(call.send.size * (c.size - 1) / c.size if counts is None else sum(counts) - counts[c.rank])
