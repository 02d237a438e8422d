"""Many sums over ranks in few collectives: the arrays of a dtype travel one behind the other, in buckets.

What arrives is what one collective for each array would give: sums are elementwise. Waits and checks are paid once for
each bucket (Li et al., 2020, PyTorch Distributed).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_autoparallel.groups import communicators, rank
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Partial, ReduceType
from argosy_autoparallel.resharding.emitter import line_of
from argosy_autoparallel.tensor_layout import Layout
from argosy_hwadapt import Communicator

__all__ = ["BUCKET_BYTES", "SumsOnMesh", "all_reduce_buckets"]

BUCKET_BYTES = 25 << 20
"""How large a bucket may become: then latency is no part of its time, and its copy still fits."""

Array = np.ndarray[Any, Any]


def all_reduce_buckets(
    arrays: Sequence[Array], communicator: Communicator, op: str = "sum", limit: int = BUCKET_BYTES
) -> list[Array]:
    """The reduction of each of ``arrays`` over the ranks, in new memory. All ranks give equal shapes and dtypes."""
    made: list[Any] = [None] * len(arrays)
    for bucket in _buckets(arrays, limit):
        flat = np.concatenate([arrays[i].reshape(-1) for i in bucket])
        communicator.all_reduce(flat, flat, op)
        start = 0
        for i in bucket:
            size = arrays[i].size
            part = flat if len(bucket) == 1 else flat[start : start + size].copy()
            made[i] = part.reshape(arrays[i].shape)
            start += size
    return made


def _buckets(arrays: Sequence[Array], limit: int) -> list[list[int]]:
    """Positions of arrays of one dtype and, unless one alone is more, of at most ``limit`` bytes."""
    open_ones: dict[str, tuple[list[int], int]] = {}
    found: list[list[int]] = []
    for i, array in enumerate(arrays):
        bucket, held = open_ones.get(array.dtype.name, ([], 0))
        if not bucket or held + array.nbytes > limit:
            bucket, held = [], 0
            found.append(bucket)
        bucket.append(i)
        open_ones[array.dtype.name] = bucket, held + array.nbytes
    return found


class SumsOnMesh:
    """Tensors that are still to be summed along dimensions of their meshes, collected to be summed together."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[Layout, list[int]]] = {}
        self._arrays: dict[int, Array] = {}

    def offer(self, place: int, array: Array, layout: Layout, wanted: Layout) -> bool:
        """Take the part ``array`` of a tensor under a number, where sums are all that leads to ``wanted``."""
        dims = [d for d, (p, q) in enumerate(zip(layout.placements, wanted.placements, strict=True)) if p != q]
        fits = bool(dims) and layout.mesh == wanted.mesh and layout.mesh.contains(rank()) and array.dtype.kind != "b"
        if not fits or not all(_is_sum(layout, d) and wanted.placements[d].is_replicated() for d in dims):
            return False
        self._places[place] = layout, dims
        self._arrays[place] = array
        return True

    def reduce(self) -> dict[int, Array]:
        """The sums by number: along one dimension after the other, those of a line of ranks together."""
        lines: dict[tuple[ProcessMesh, int], list[int]] = {}
        for place, (layout, dims) in self._places.items():
            for d in dims:
                lines.setdefault((layout.mesh, d), []).append(place)
        for mesh, d in sorted(lines, key=lambda line: line[1]):
            group, _ = line_of(mesh, d, rank())
            if len(group) > 1:
                places = lines[mesh, d]
                sums = all_reduce_buckets([self._arrays[p] for p in places], communicators()[group])
                self._arrays.update(zip(places, sums, strict=True))
        return self._arrays


def _is_sum(layout: Layout, dim: int) -> bool:
    placement = layout.placements[dim]
    return isinstance(placement, Partial) and placement.reduce_type() is ReduceType.kRedSum
