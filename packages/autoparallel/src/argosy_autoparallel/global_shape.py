"""The global shape of a tensor of which each rank knows its own part alone: the ranks tell each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy_autoparallel.groups import communicators, rank
from argosy_autoparallel.local_slice import chunk
from argosy_autoparallel.placement import Shard
from argosy_autoparallel.resharding.emitter import line_of
from argosy_autoparallel.tensor_layout import Layout

__all__ = ["whole_shape"]


def whole_shape(part: Sequence[int], layout: Layout) -> tuple[int, ...]:
    """The shape of a tensor in ``layout`` of which this rank's part has the shape ``part``; ranks of the mesh call
    together. Costs a small all-gather for each mesh dimension that splits the tensor.

    A rank outside of the mesh takes it that all parts are like the one it gives. Raises ``ValueError`` where parts are
    not those that ``layout`` cuts (see :mod:`argosy_autoparallel.local_slice`).
    """
    shape = list(part)
    mesh = layout.mesh
    held = mesh.contains(rank())
    for dim in reversed(range(mesh.ndim)):  # the first mesh dimension cuts first
        placement, count = layout.placements[dim], mesh.shape[dim]
        if not isinstance(placement, Shard) or count == 1:
            continue
        if held:
            shape[placement.dim] = _global_size(_shapes(shape, layout, dim), placement, layout, dim)
        else:
            each = placement.sizes
            shape[placement.dim] = placement.split_factor * sum(each) if each else shape[placement.dim] * count
    return tuple(shape)


def _shapes(shape: Sequence[int], layout: Layout, dim: int) -> list[list[int]]:
    """What the ranks along a mesh dimension have, in order."""
    line, _ = line_of(layout.mesh, dim, rank())
    told = np.empty((len(line), len(shape)), np.int64)
    communicators()[line].all_gather(np.array(shape, np.int64), told)
    found: list[list[int]] = told.tolist()
    return found


def _global_size(shapes: Sequence[Sequence[int]], split: Shard, layout: Layout, dim: int) -> int:
    """The size of the axis that is ``split`` of all parts together."""
    axis, blocks = split.dim, split.split_factor
    sizes = [shape[axis] for shape in shapes]
    others = {tuple(n for i, n in enumerate(shape) if i != axis) for shape in shapes}
    lengths = split.sizes or [chunk(sum(sizes) // blocks, len(sizes), i)[1] for i in range(len(sizes))]
    cut = [blocks * n for n in lengths]
    if len(others) > 1 or cut != sizes:
        wanted = f"{sum(sizes)} elements are cut into {cut}" if len(others) == 1 else "other axes must be equal"
        raise ValueError(
            f"ranks along mesh dimension {layout.mesh.dim_names[dim]!r} of {layout!r} have parts of shapes "
            f"{[list(shape) for shape in shapes]}: {wanted}"
        )
    return sum(sizes)
