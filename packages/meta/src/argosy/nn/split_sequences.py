"""Attention on sequences that are split over ranks in zig-zag order, without loading what distributed tensors need."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_tensorcore.tensor import Tensor

__all__ = ["lay_out", "zigzag_order"]

_SEQUENCE = 1


def zigzag_order(length: int, parts: int) -> np.ndarray[Any, Any]:
    """Which position of a sequence stands at each place: blocks 0 and 2 parts - 1, then 1 and 2 parts - 2, and so on.
    Raises ValueError for a length that is not ``2 * parts`` blocks."""
    if length % (2 * parts):
        raise ValueError(f"a sequence of {length} is not {2 * parts} equal blocks, two for each of {parts} ranks")
    blocks = np.arange(length).reshape(2 * parts, -1)
    return np.stack([blocks[:parts], blocks[: parts - 1 : -1]], 1).ravel()


def lay_out(x: Any, mesh: Any, axis: int | None) -> Tensor:
    """``x`` split along "sep" at an axis, or whole along it."""
    from argosy_autoparallel import Replicate, Shard
    from argosy_autoparallel.api import reshard

    placements: list[Any] = list(x.placements) if x.process_mesh == mesh else [Replicate()] * mesh.ndim
    placements[mesh.dim_names.index("sep")] = Replicate() if axis is None else Shard(axis)
    return reshard(x, mesh, placements)
