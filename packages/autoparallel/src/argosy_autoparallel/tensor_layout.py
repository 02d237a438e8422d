"""A tensor's layout: the mesh that holds it and what each mesh dimension does with it, as one immutable value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from argosy_autoparallel.local_slice import LocalBox, LocalSlice, local_boxes, local_slice
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Partial, Placement, ReduceType, Replicate, Shard
from argosy_pir.text.strings import quote, unquote

__all__ = ["WHOLE", "Layout", "cotangent_placement", "parse_layout", "print_layout"]

_REPLICATE = Replicate()
WHOLE = "whole"
"""The attribute ``target`` of a ``prim.relayout`` that makes an ordinary tensor of one on any mesh."""


class Layout:
    """``mesh`` and one placement for each of its dimensions; sharded dimensions are counted from 0.

    Immutable and hashable; ranks outside the mesh hold nothing.
    """

    __slots__ = ("_hash", "mesh", "placements")

    def __init__(self, mesh: ProcessMesh, placements: Sequence[Placement]) -> None:
        self.mesh = mesh
        self.placements = tuple(placements)
        self._hash = hash((mesh, self.placements))

    @classmethod
    def from_placements(cls, mesh: ProcessMesh, placements: Sequence[Placement] | None, ndim: int) -> Layout:
        """The layout that a user asked for, for a tensor of ``ndim`` axes; missing placements are ``Replicate()``.

        Raises ``ValueError`` for more placements than mesh dimensions, an axis that the tensor does not have, and
        reductions of different kinds; ``TypeError`` for what is no placement, or no mesh.
        """
        if not isinstance(mesh, ProcessMesh):
            raise TypeError(f"a distributed tensor needs a ProcessMesh, got {type(mesh).__name__} {mesh!r}")
        given = list(placements or ())
        if len(given) > mesh.ndim:
            raise ValueError(f"{given} are {len(given)} placements, but {mesh!r} has {mesh.ndim} dimensions")
        made = [_check_placement(p, ndim) for p in given] + [_REPLICATE] * (mesh.ndim - len(given))
        kinds = {p.reduce_type() for p in made if isinstance(p, Partial)}
        if len(kinds) > 1:
            raise ValueError(f"{made}: reductions of different kinds have no order; use one kind of Partial")
        return cls(mesh, made)

    @classmethod
    def replicate(cls, mesh: ProcessMesh) -> Layout:
        """Every rank of the mesh holds everything."""
        return cls(mesh, [_REPLICATE] * mesh.ndim)

    def with_placement(self, dim: int, placement: Placement) -> Layout:
        """The layout with another placement for one mesh dimension."""
        return Layout(self.mesh, [placement if i == dim else p for i, p in enumerate(self.placements)])

    def local_slice(self, shape: Sequence[int], rank: int) -> LocalSlice:
        """The part of a tensor of global ``shape`` that ``rank`` (of the mesh) holds."""
        return _part(tuple(shape), self, rank)

    def local_boxes(self, shape: Sequence[int], rank: int) -> tuple[LocalBox, ...]:
        """The boxes of elements that ``rank`` (of the mesh) holds; several where axes are split in blocks."""
        return _boxes(tuple(shape), self, rank)

    def sharding_dims(self, axis: int) -> list[int]:
        """The mesh dimensions that split tensor axis ``axis``, outermost first."""
        return [d for d, p in enumerate(self.placements) if isinstance(p, Shard) and p.dim == axis]

    def parts(self, but: int | None = None) -> int:
        """Into how many parts the mesh dimensions (all, or all but one) split the tensor."""
        count = 1
        for d, (p, n) in enumerate(zip(self.placements, self.mesh.shape, strict=True)):
            if isinstance(p, Shard) and d != but:
                count *= n
        return count

    @property
    def has_blocks(self) -> bool:
        """Whether an axis is split in several blocks."""
        return any(isinstance(p, Shard) and p.split_factor > 1 for p in self.placements)

    @property
    def is_plain(self) -> bool:
        """Whether every axis that is split is one block, cut by ceiling division."""
        return all(not isinstance(p, Shard) or p.is_plain for p in self.placements)

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether a tensor of global ``shape`` has the blocks, and the parts of given sizes."""
        try:
            self.local_slice(shape, self.mesh.process_ids[0])
        except (ValueError, NotImplementedError):
            return False
        return True

    @property
    def is_replicated(self) -> bool:
        """Whether every rank holds everything."""
        return all(p.is_replicated() for p in self.placements)

    @property
    def is_partial(self) -> bool:
        """Whether a reduction is still to be made."""
        return any(p.is_partial() for p in self.placements)

    @property
    def is_sum(self) -> bool:
        """Whether every reduction that is still to be made is a sum."""
        return all(p.reduce_type() is ReduceType.kRedSum for p in self.placements if isinstance(p, Partial))

    def without_partials(self) -> Layout:
        """The layout once every reduction is made, whose result all ranks have."""
        return Layout(self.mesh, [_REPLICATE if p.is_partial() else p for p in self.placements])

    def cotangent(self) -> Layout:
        """The layout of a gradient of a tensor of this layout: that of each term of a sum is the whole gradient."""
        return Layout(self.mesh, [cotangent_placement(p) for p in self.placements])

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Layout):
            return NotImplemented
        return self._hash == other._hash and self.placements == other.placements and self.mesh == other.mesh

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Layout({self.mesh!r}, {list(self.placements)})"


@lru_cache(maxsize=65536)
def _part(shape: tuple[int, ...], layout: Layout, rank: int) -> LocalSlice:
    return local_slice(shape, layout.mesh, layout.placements, rank)


@lru_cache(maxsize=65536)
def _boxes(shape: tuple[int, ...], layout: Layout, rank: int) -> tuple[LocalBox, ...]:
    return tuple(local_boxes(shape, layout.mesh, layout.placements, rank))


def cotangent_placement(placement: Placement) -> Placement:
    """Where the gradient of a tensor of this placement lies."""
    return _REPLICATE if placement.is_partial() else placement


def _check_placement(placement: Placement, ndim: int) -> Placement:
    if not isinstance(placement, Placement):
        raise TypeError(f"a placement is Replicate(), Shard(dim) or Partial(), not {placement!r}")
    if not isinstance(placement, Shard):
        return placement
    if not -ndim <= placement.dim < ndim:
        raise ValueError(f"{placement} splits an axis that a tensor of {ndim} dimensions does not have")
    return placement.with_dim(placement.dim % ndim)


def print_layout(layout: Layout) -> str:
    """The text of a layout, as programs and passes have it: ``dp=2 mp=2 on 0-3: S(0) R``.

    The mesh comes first, its dimensions by name and size and its ranks in row-major order, then what each dimension
    does: ``R`` (replicated), ``S(axis)`` (split), ``S(axis/3)`` (split in three blocks), ``S(axis:3,5)`` (in parts of
    these sizes) or ``P(sum)`` (terms of a reduction).
    """
    mesh = layout.mesh
    where = _print_mesh(tuple(mesh.dim_names), tuple(mesh.shape), tuple(mesh.process_ids))
    return f"{where}: {' '.join(map(_print_placement, layout.placements))}"


@lru_cache(maxsize=4096)
def _print_mesh(names: tuple[str, ...], shape: tuple[int, ...], ranks: tuple[int, ...]) -> str:
    sizes = [f"{_print_name(name)}={size}" for name, size in zip(names, shape, strict=True)]
    return f"{' '.join(sizes)} on {' '.join(_runs(ranks))}"


@lru_cache(maxsize=4096)
def parse_layout(text: str) -> Layout:
    """The layout that a text describes; raises ``ValueError`` for anything else."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError(f"layout {text!r}: expected text such as 'dp=2 mp=2 on 0-3: S(0) R'")
    names, sizes = zip(*_SIZE.findall(found["sizes"]), strict=True)
    ranks = [rank for run in found["ranks"].split() for rank in _parse_run(run)]
    mesh = ProcessMesh(
        shape=[int(size) for size in sizes], process_ids=ranks, dim_names=[_parse_name(n) for n in names]
    )
    placements = [_parse_placement(each) for each in found["placements"].split()]
    if len(placements) != mesh.ndim:
        raise ValueError(f"layout {text!r}: {len(placements)} placements for a mesh of {mesh.ndim} dimensions")
    return Layout(mesh, placements)


_NAME = r'"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*'
_SIZE = re.compile(rf"({_NAME})=(\d+)", re.ASCII)
_REDUCTIONS = {kind.name.removeprefix("kRed").lower(): kind for kind in ReduceType}
_PLACEMENT = rf"(?:R|S\(\d+(?:/[1-9]\d*)?(?::\d+(?:,\d+)*)?\)|P\((?:{'|'.join(_REDUCTIONS)})\))"
_TEXT = re.compile(
    rf"(?P<sizes>(?:(?:{_NAME})=\d+ )+)on (?P<ranks>\d+(?:[- ]\d+)*): (?P<placements>{_PLACEMENT}(?: {_PLACEMENT})*)",
    re.ASCII,
)


def _print_name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else quote(name)


def _parse_name(text: str) -> str:
    return unquote(text[1:-1]) if text[0] == '"' else text


def _runs(ranks: Sequence[int]) -> list[str]:
    """Ranks as numbers and ranges."""
    found: list[list[int]] = []
    for rank in ranks:
        if found and rank == found[-1][-1] + 1:
            found[-1].append(rank)
        else:
            found.append([rank])
    return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found]


def _parse_run(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _print_placement(placement: Placement) -> str:
    if isinstance(placement, Shard):
        blocks = "" if placement.split_factor == 1 else f"/{placement.split_factor}"
        sizes = "" if placement.sizes is None else f":{','.join(map(str, placement.sizes))}"
        return f"S({placement.dim}{blocks}{sizes})"
    if isinstance(placement, Partial):
        return f"P({placement.reduce_type().name.removeprefix('kRed').lower()})"
    return "R"


def _parse_placement(text: str) -> Placement:
    if text == "R":
        return _REPLICATE
    if text[0] == "P":
        return Partial(_REDUCTIONS[text[2:-1]])
    where, _, sizes = text[2:-1].partition(":")
    dim, _, blocks = where.partition("/")
    return Shard(int(dim), int(blocks or 1), [int(n) for n in sizes.split(",")] if sizes else None)
