"""Reading a rank's share of each batch: of a loader's index lists only the rank's part is fetched.

Batches are those of one process, in its order: the loader's own sampler says which samples they have, and rows are
split as ``Shard(0)`` splits them, the last batch unevenly where it is short.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

from argosy.io.dataloader.loader import DataLoader
from argosy.io.sampler import BatchSampler
from argosy_autoparallel import Placement, ProcessMesh, local_slice

__all__ = ["Rows", "Share", "ShareReader", "can_read_shares", "common_share"]


class Share(NamedTuple):
    """Where a rank's rows are in a batch: what ``placements`` on ``mesh`` give it; none without a mesh."""

    mesh: ProcessMesh | None
    placements: tuple[Placement, ...]
    rank: int

    def rows(self, count: int) -> slice:
        """Its rows of a batch of ``count``."""
        if self.mesh is None:
            return slice(0, 0)
        part = local_slice((count,), self.mesh, self.placements, self.rank)
        return slice(part.offset[0], part.offset[0] + part.shape[0])


class Rows(NamedTuple):
    """What was read of a batch of ``total`` samples: ``held`` rows (one row may be there although none is held)."""

    total: int
    held: int


def common_share(laid: Sequence[tuple[ProcessMesh, Sequence[Placement]]], rank: int) -> Share | None:
    """The one share that serves all entries, which are laid out so; None where entries need different ones."""
    mine = {mesh: tuple(placements) for mesh, placements in laid if mesh.contains(rank)}
    same_mesh = all(mine[mesh] == tuple(placements) for mesh, placements in laid if mesh in mine)
    if len(mine) > 1 or not same_mesh:
        return None
    for mesh, placements in mine.items():
        return Share(mesh, placements, rank)
    return Share(None, (), rank)


def can_read_shares(loader: Any) -> bool:
    """Whether the rows of a batch are its samples: an indexable data set in batches, with the default collation."""
    if not isinstance(loader, DataLoader) or not isinstance(loader.batch_sampler, BatchSampler):
        return False
    return loader.collate_fn is None


class ShareReader:
    """Iterates over ``(batch, Rows)`` of a loader whose sampler is cut down to ``share``. Worker processes stay."""

    def __init__(self, loader: DataLoader, share: Share) -> None:
        self._batches = loader.batch_sampler
        self._share = share
        self._loader = copy(loader)

    def __iter__(self) -> Iterator[tuple[Any, Rows]]:
        read: deque[Rows] = deque()  # workers read ahead, in order
        self._loader.batch_sampler = self._cut(read)
        for batch in self._loader:
            yield batch, read.popleft()

    def _cut(self, read: deque[Rows]) -> Iterator[list[int]]:
        for indices in self._batches:
            mine = indices[self._share.rows(len(indices))]
            read.append(Rows(len(indices), len(mine)))
            yield mine or indices[:1]  # shapes and dtypes must be known where nothing is held, too
