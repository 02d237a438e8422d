"""Which part of a global tensor a rank holds: arithmetic on shapes, no data.

A dimension of n elements over d ranks is cut into chunks of ceil(n / d): the first ranks get whole chunks,
the next one the rest, and further ranks may get nothing. Mesh dimensions that split the same tensor
dimension nest in mesh order: the first cuts the tensor, the second cuts each of its chunks. A dimension that is
split in blocks is cut so in each of its blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Placement, Shard
from argosy_pir.dims import SymExpr


class LocalSlice(NamedTuple):
    """A rank's part of a global tensor: where it starts and how large it is, per tensor dimension. Of a dimension split
    in several blocks it starts nowhere (None)."""

    offset: tuple[Any, ...]
    shape: tuple[int, ...]

    def slices(self) -> tuple[slice, ...]:
        """Return the slices that cut this part out of the global tensor. Raises NotImplementedError for blocks."""
        if None in self.offset:
            raise NotImplementedError(
                f"parts of dimension {self.offset.index(None)}, split in blocks, are no one slice"
            )
        return tuple(slice(o, o + n) for o, n in zip(self.offset, self.shape, strict=True))


def chunk(size: int, parts: int, part: int) -> tuple[int, int]:
    """Return (offset, length) of part ``part`` of ``size`` elements cut into ``parts``."""
    if isinstance(size, SymExpr):
        if parts == 1:
            return 0, size
        if size % parts != 0:
            raise NotImplementedError(f"{parts} parts of {size} elements: symbolic sizes that do not divide")
        return part * (size // parts), size // parts
    length = -(-size // parts)
    start, stop = min(part * length, size), min((part + 1) * length, size)
    return start, stop - start


def estimate_elements(shape: Sequence[int]) -> int:
    """How many elements a tensor of ``shape`` has; symbols count as 64, which tells all ranks the same."""
    return prod(n.evaluate(dict.fromkeys(n.symbols, 64)) if isinstance(n, SymExpr) else n for n in shape)


def local_slice(
    shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement], process_id: int
) -> LocalSlice:
    """Return the part of a tensor of global ``shape`` that a rank of the mesh holds.

    Raises ValueError when there is not one placement per mesh dimension, a sharded dimension does not
    exist, or the rank is not part of the mesh.
    """
    dims = sharded_dims(len(shape), mesh, placements)
    offset: list[Any] = [0] * len(shape)
    local = list(shape)
    for placement, dim, parts, part in zip(placements, dims, mesh.shape, mesh.coordinate(process_id), strict=True):
        if dim is None:
            continue
        blocks = placement.split_factor  # type: ignore[attr-defined]
        if blocks == 1:
            start, local[dim] = chunk(local[dim], parts, part)
            offset[dim] += start
            continue
        if dims.count(dim) > 1 or local[dim] % (blocks * parts) != 0:
            raise ValueError(
                f"{placement} along {parts} ranks: {local[dim]} elements of dimension {dim}, which one mesh dimension "
                f"alone may split so, are not {blocks} blocks of {parts} equal parts"
            )
        local[dim] //= parts
        offset[dim] = None if parts > 1 else 0
    return LocalSlice(tuple(offset), tuple(local))


def local_shape(
    shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement], process_id: int
) -> tuple[int, ...]:
    """Return the shape of the part that a rank holds. Raises as :func:`local_slice` does."""
    return local_slice(shape, mesh, placements, process_id).shape


def largest_local_shape(shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement]) -> tuple[int, ...]:
    """Return the shape of the largest part, which the first rank of the mesh holds."""
    return local_shape(shape, mesh, placements, mesh.process_ids[0])


def sharded_dims(ndim: int, mesh: ProcessMesh, placements: Sequence[Placement]) -> list[int | None]:
    """Return for each mesh dimension the tensor dimension (from 0) that it splits, or None.

    Raises ValueError for a wrong number of placements or a dimension that a tensor of ``ndim`` does not have.
    """
    if len(placements) != mesh.ndim:
        raise ValueError(f"{list(placements)} are {len(placements)} placements for the {mesh.ndim} of {mesh!r}")
    return [_sharded_dim(ndim, name, p) for name, p in zip(mesh.dim_names, placements, strict=True)]


def _sharded_dim(ndim: int, name: str, placement: Placement) -> int | None:
    if not isinstance(placement, Shard):
        return None
    if not -ndim <= placement.dim < ndim:
        raise ValueError(f"{placement} along mesh dimension {name!r}: the tensor has {ndim} dimensions")
    return placement.dim % ndim
