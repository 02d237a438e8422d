"""Which part of a global tensor a rank holds: arithmetic on shapes, no data.

A dimension of n elements over d ranks is cut into chunks of ceil(n / d): the first ranks get whole chunks,
the next one the rest, and further ranks may get nothing. Mesh dimensions that split the same tensor
dimension nest in mesh order: the first cuts the tensor, the second cuts what a rank has by then. A dimension that is
split in blocks is cut so in each of its blocks, which are equal. Where a placement gives the sizes of parts, those are
the chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, product
from math import prod
from typing import Any, NamedTuple

from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Placement, Shard
from argosy_pir.dims import SymExpr

Stretch = tuple[Any, Any]
"""Where neighbours begin along an axis, and how many they are."""


class LocalSlice(NamedTuple):
    """A rank's part of a global tensor: where it starts and how large it is, per tensor dimension. Of a dimension of
    which the rank has several stretches it starts nowhere (None)."""

    offset: tuple[Any, ...]
    shape: tuple[int, ...]

    def slices(self) -> tuple[slice, ...]:
        """Return the slices that cut this part out of the global tensor. Raises NotImplementedError for blocks."""
        if None in self.offset:
            raise NotImplementedError(
                f"parts of dimension {self.offset.index(None)}, split in blocks, are no one slice"
            )
        return tuple(slice(o, o + n) for o, n in zip(self.offset, self.shape, strict=True))


class LocalBox(NamedTuple):
    """A box of a global tensor that a rank has: where it starts there, how large it is, where it starts in the rank's
    own array."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]
    place: tuple[int, ...]


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


def part_of(placement: Shard, size: int, parts: int, part: int) -> tuple[int, int]:
    """Return (offset, length) of part ``part`` of a block of ``size`` elements that ``placement`` cuts into ``parts``.

    Raises ValueError for given sizes that are not those of so many parts of so many elements.
    """
    sizes = placement.sizes
    if sizes is None:
        return chunk(size, parts, part)
    if isinstance(size, SymExpr):
        raise NotImplementedError(f"{placement}: parts of given sizes of {size} elements, a symbolic size")
    if len(sizes) != parts or sum(sizes) != size:
        raise ValueError(f"{placement}: {size} elements over {parts} ranks have no parts of sizes {list(sizes)}")
    return sum(sizes[:part]), sizes[part]


def largest_part(placement: Shard, size: int, parts: int) -> int:
    """Return how long the largest part of a block of ``size`` elements is. Raises as :func:`part_of` does."""
    return max([part_of(placement, size, parts, part)[1] for part in range(1 if placement.sizes is None else parts)])


def estimate_elements(shape: Sequence[int]) -> int:
    """How many elements a tensor of ``shape`` has; symbols count as 64, which tells all ranks the same."""
    return prod(n.evaluate(dict.fromkeys(n.symbols, 64)) if isinstance(n, SymExpr) else n for n in shape)


def local_slice(
    shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement], process_id: int
) -> LocalSlice:
    """Return the part of a tensor of global ``shape`` that a rank of the mesh holds.

    Raises ValueError when there is not one placement per mesh dimension, a sharded dimension does not
    exist, is no such number of equal blocks or has no parts of the given sizes, or the rank is not part of the mesh.
    """
    found = local_stretches(shape, mesh, placements, process_id)
    offset = tuple([parts[0][0] if len(parts) == 1 else None for parts in found])
    return LocalSlice(offset, tuple([sum([length for _, length in parts]) for parts in found]))


def local_stretches(
    shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement], process_id: int
) -> list[list[Stretch]]:
    """Return for each dimension of a tensor of global ``shape`` the stretches that a rank of the mesh holds, in order:
    one, or several where it is split in blocks. Raises as :func:`local_slice` does."""
    found: list[list[Stretch]] = [[(0, size)] for size in shape]
    extents = [{size} for size in shape]  # that ranks have, of which all must come to the same errors
    dims = sharded_dims(len(shape), mesh, placements)
    for placement, dim, parts, part in zip(placements, dims, mesh.shape, mesh.coordinate(process_id), strict=True):
        if dim is None:
            continue
        assert isinstance(placement, Shard)
        blocks = placement.split_factor
        uneven = [size for size in extents[dim] if size % blocks != 0]
        if uneven:
            raise ValueError(f"{placement}: {min(uneven)} elements of dimension {dim} are not {blocks} equal blocks")
        lengths = [length for size in extents[dim] for length in _lengths(placement, size // blocks, parts)]
        extents[dim] = {blocks * length for length in lengths}
        size = sum([length for _, length in found[dim]]) // blocks
        start, length = part_of(placement, size, parts, part)
        cuts = [_subrange(found[dim], i * size + start, length) for i in range(blocks)]
        found[dim] = _merge_neighbours([stretch for cut in cuts for stretch in cut]) if blocks > 1 else cuts[0]
    return found


def local_boxes(
    shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement], process_id: int
) -> list[LocalBox]:
    """Return the boxes of elements that a rank has, in order: one, or several where axes are split in blocks; none
    where it has nothing. Raises as :func:`local_slice` does."""
    axes = []
    for stretches in local_stretches(shape, mesh, placements, process_id):
        ends = accumulate([length for _, length in stretches])
        axes.append([(*each, end - each[1]) for each, end in zip(stretches, ends, strict=True) if each[1]])
    found = [list(zip(*along, strict=True)) or [(), (), ()] for along in product(*axes)]
    return [LocalBox(*map(tuple, box)) for box in found]


def _lengths(placement: Shard, size: Any, parts: int) -> list[Any]:
    """How long the parts of ``size`` elements are: those given; or the first, the one that is cut short, the last."""
    if placement.sizes is not None:
        return [part_of(placement, size, parts, part)[1] for part in range(parts)]
    first = chunk(size, parts, 0)[1]
    short = 0 if first == 0 or isinstance(size, SymExpr) else min(size // first, parts - 1)
    return [chunk(size, parts, part)[1] for part in (0, short, parts - 1)]


def _subrange(stretches: Sequence[Stretch], start: Any, length: Any) -> list[Stretch]:
    """What ``length`` elements from ``start`` on of stretches, one behind the other, are."""
    if len(stretches) == 1:
        return [(stretches[0][0] + start, length)]
    found, at = [], 0
    for first, count in stretches:
        low, high = max(start, at), min(start + length, at + count)
        if low < high:
            found.append((first + low - at, high - low))
        at += count
    return found or [(0, 0)]


def _merge_neighbours(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Stretches that follow each other as one, without empty ones but where there are no others."""
    found: list[Stretch] = []
    for start, length in stretches:
        if found and found[-1][0] + found[-1][1] == start:
            found[-1] = found[-1][0], found[-1][1] + length
        elif length != 0:
            found.append((start, length))
    return found or [stretches[0]]


def local_shape(
    shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement], process_id: int
) -> tuple[int, ...]:
    """Return the shape of the part that a rank holds. Raises as :func:`local_slice` does."""
    return local_slice(shape, mesh, placements, process_id).shape


def largest_local_shape(shape: Sequence[int], mesh: ProcessMesh, placements: Sequence[Placement]) -> tuple[int, ...]:
    """Return the shape of the largest part: of those of the most elements that of the first rank of the mesh."""
    return max([local_shape(shape, mesh, placements, rank) for rank in mesh.process_ids], key=prod)


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
