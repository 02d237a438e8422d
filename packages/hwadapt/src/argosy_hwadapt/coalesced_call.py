"""Several gathers or scattered reductions of one rank as one call: compared once, and moved together."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from argosy_hwadapt import calls
from argosy_hwadapt.calls import Array, Call

_KINDS = ("all_gather", "reduce_scatter")


class CoalescedCall(Call):
    """A call of ``kind`` (``all_gather`` or ``reduce_scatter``) for ``size`` ranks, of several operands of one dtype.

    ``pairs`` are flat views of operands and results. Raises ValueError for other kinds, no operands, a reduction that
    is unknown, or sizes that do not fit; TypeError for dtypes that differ.
    """

    __slots__ = ("pairs", "size")

    def __init__(
        self, kind: str, size: int, sends: Sequence[Array], recvs: Sequence[Array], op: str | None = None
    ) -> None:
        if kind not in _KINDS or not sends:
            raise ValueError(f"{' or '.join(_KINDS)} of several operands are coalesced, got {kind} of {len(sends)}")
        parts = (size, 1) if kind == "reduce_scatter" else (1, size)
        for send, recv in zip(sends, recvs, strict=True):
            calls.check_pair(kind, send, recv, *parts)
        if len(dtypes := {send.dtype for send in sends}) > 1:
            raise TypeError(f"{kind}: operands of one dtype are coalesced, got {', '.join(sorted(map(str, dtypes)))}")
        if op is not None:
            calls.check_op(kind, op, sends[0].dtype)
        sizes = tuple([send.size for send in sends])
        # Ranks compare the beginning of what a call says, which may not show all of its sizes.
        agreed = {"dtype": str(sends[0].dtype), "checksum": zlib.crc32(repr(sizes).encode()), "sizes": sizes}
        super().__init__(kind, agreed if op is None else {"op": op, **agreed})
        self.size = size
        self.pairs = [(send.reshape(-1), recv.reshape(-1)) for send, recv in zip(sends, recvs, strict=True)]

    @property
    def nbytes(self) -> int:
        """Bytes of what this rank gives."""
        return sum(send.nbytes for send, _ in self.pairs)

    def members(self) -> list[Call]:
        """A call for each operand."""
        made = [self._call(send, recv) for send, recv in self.pairs]
        for call in made:
            call.site, call.background = self.site, self.background
        return made

    def join(self) -> Call:
        """One call that does the same with copies of all operands; :meth:`take` its result."""
        rows = self.size if self.kind == "reduce_scatter" else 1
        send = np.concatenate([_table(send, rows) for send, _ in self.pairs], axis=1)
        return self._call(send, np.empty(sum(recv.size for _, recv in self.pairs), send.dtype))

    def take(self, joined: Call) -> None:
        """Copy the result of :meth:`join` to where the operands' belong."""
        rows = self.size if self.kind == "all_gather" else 1
        whole, tables = _table(joined.recv, rows), [_table(recv, rows) for _, recv in self.pairs]
        bounds = accumulate((table.shape[1] for table in tables), initial=0)
        for table, (start, stop) in zip(tables, pairwise(bounds), strict=True):
            table[...] = whole[:, start:stop]

    def _call(self, send: Array, recv: Array) -> Call:
        if self.kind == "all_gather":
            return calls.all_gather(self.size, send, recv)
        return calls.reduce_scatter(self.size, send, recv, str(self.agreed["op"]))


def _table(array: Array, rows: int) -> Array:
    return array.reshape(rows, array.size // rows)
