"""Attention on sequences that are split over ranks in zig-zag order, without loading what distributed tensors need."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_tensorcore.tensor import Tensor

__all__ = ["gather_parts", "lay_out", "zigzag_order"]

_SEQUENCE = 1


def zigzag_order(length: int, parts: int) -> np.ndarray[Any, Any]:
    """Which position of a sequence stands at each place: blocks 0 and 2 parts - 1, then 1 and 2 parts - 2, and so on.
    Raises ValueError for a length that is not ``2 * parts`` blocks."""
    if length % (2 * parts):
        raise ValueError(f"a sequence of {length} is not {2 * parts} equal blocks, two for each of {parts} ranks")
    blocks = np.arange(length).reshape(2 * parts, -1)
    return np.stack([blocks[:parts], blocks[: parts - 1 : -1]], 1).ravel()


def gather_parts(query: Any, key: Any, value: Any, is_causal: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    """Key and value whole along "sep", and the mask [S, S] of causal attention to them, None without; for tensors
    [B, S, H, D] that are split along S in zig-zag order. Raises ValueError for meshes without a dimension "sep"."""
    mesh: Any = query.process_mesh
    if mesh is None or "sep" not in mesh.dim_names:
        raise ValueError(f"backend='p2p' is for tensors on a mesh with a dimension 'sep', not on {mesh!r}")
    order = zigzag_order(query.shape[_SEQUENCE], mesh.get_dim_size("sep"))
    mask = Tensor(order[:, None] >= order) if is_causal else None
    return lay_out(key, mesh, None), lay_out(value, mesh, None), mask


def lay_out(x: Any, mesh: Any, axis: int | None) -> Tensor:
    """``x`` split along "sep" at an axis, or whole along it."""
    from argosy_autoparallel import Replicate, Shard
    from argosy_autoparallel.api import reshard

    placements: list[Any] = list(x.placements) if x.process_mesh == mesh else [Replicate()] * mesh.ndim
    placements[mesh.dim_names.index("sep")] = Replicate() if axis is None else Shard(axis)
    return reshard(x, mesh, placements)
