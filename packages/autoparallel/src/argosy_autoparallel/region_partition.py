"""Loops and branches on parts: their bodies are partitioned like programs, for layouts that stay as they are from step
to step.

The layouts of carried values are found by iteration: those of the initial values, then those that the body gives, until
both are the same. What moves nothing within the body is best; else the body communicates: conditions and numbers of
steps are whole on every rank, so that all take the same branch and the same number of steps. What a body needs of a
value from outside in another layout is brought there before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from argosy_autoparallel.implicit_gathers import ImplicitGatherError
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Partial, Placement, Replicate, Shard
from argosy_autoparallel.resharding.emitter import Emitter
from argosy_autoparallel.tensor_layout import Layout
from argosy_autoparallel.value_layouts import is_zero
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Block, Operation, Region, TensorType, Value

__all__ = ["BlockPartitioner", "SplitRegions", "split_regions"]

_MOST_TRIES = 4


class BlockPartitioner(Protocol):
    """What walks over the block of a region; ``moves`` says whether it has communicated, ``traffic`` what that costs,
    ``refused`` what ``strict`` has against it."""

    emitter: Emitter
    moves: bool
    traffic: float
    refused: ImplicitGatherError | None

    def local_type(self, value: Value, layout: Layout | None) -> TensorType:
        """The type of a value's part."""

    def enter_local(self, value: Value, layout: Layout | None, local: Value | None) -> None:
        """Let a value be there as ``local``."""

    def keep(self, value: Value, layout: Layout | None, local: Value | None) -> None:
        """Let a value that is there be there in another layout, too."""

    def walk(self, ops: Iterable[Operation]) -> None:
        """Go on with these operations."""

    def layout(self, value: Value) -> Layout | None:
        """How a value lies."""

    def get(self, value: Value, layout: Layout | None) -> Value | None:
        """The local value in a layout."""

    def layouts(self, value: Value) -> Sequence[Layout | None]:
        """Those in which the value exists, the first one first."""


class SplitRegions(NamedTuple):
    """A local operation's regions, the layouts of its operands, and of its results; the walks over the regions."""

    regions: list[Region]
    operands: list[Layout]
    results: list[Layout]
    walks: list[BlockPartitioner]

    def emit(self, op: Operation, emitter: Emitter, operands: Sequence[Value | None]) -> list[Value | None]:
        """Emit the local operation of ``op``; its results."""
        given = [x for x in operands if x is not None]
        made = emitter.builder.create(op.name, given, op.attributes, None, self.regions, op.location)
        made.annotations = op.annotations
        return list(made.results)


Make = Callable[[Block], BlockPartitioner]
Inner = dict[Value, list[tuple[Layout, Value | None]]]
"""Values from outside in the layouts in which they are there, as they lie first."""


class _Body(NamedTuple):
    block: Block
    partitioner: BlockPartitioner
    yields: tuple[Value, ...]

    def natural_layouts(self, mesh: ProcessMesh) -> list[Layout]:
        """How what it yields lies by itself."""
        return [self.partitioner.layout(value) or Layout.replicate(mesh) for value in self.yields]

    def close(self, source: Region, wanted: Sequence[Layout]) -> None:
        """End the block with what the source yields in these layouts."""
        last = source.block.last
        assert last is not None
        with self.partitioner.emitter.emit_here():
            values = [self.partitioner.get(v, layout) for v, layout in zip(self.yields, wanted, strict=True)]
        known = {x: y for x, y in zip(last.operands, values, strict=True) if y is not None}
        if len(known) == len(set(last.operands)):  # this rank is on the mesh
            self.block.append(last.clone(known))


def split_regions(
    op: Operation, mesh: ProcessMesh, operands: Sequence[Layout], inner: Inner, outside: BlockPartitioner, make: Make
) -> SplitRegions | None:
    """The regions of ``op`` on parts, whose operands come in the layouts ``operands`` and whose values from ``outside``
    are ``inner``: those that cost least communication. None where the program itself communicates within a body."""
    if any(inside.dialect == "prim" and _is_of_one_rank(inside) for inside in op.walk()):
        return None
    made = _cheapest(op, mesh, operands, inner, make)
    return _cheapest(op, mesh, operands, inner, make) if _bring_inside(made, inner, outside) else made


def _bring_inside(made: SplitRegions, inner: Inner, outside: BlockPartitioner) -> bool:
    """Bring the values from outside into the layouts that the bodies have asked for; whether there are any."""
    found = False
    for value, versions in inner.items():
        wanted = {at: None for walk in made.walks for at in walk.layouts(value) if at is not None}
        for layout in [at for at in wanted if at not in [version for version, _ in versions]]:
            versions.append((layout, outside.get(value, layout)))
            found = True
    return found


def _cheapest(op: Operation, mesh: ProcessMesh, operands: Sequence[Layout], inner: Inner, make: Make) -> SplitRegions:
    best: SplitRegions | None = None
    least = float("inf")
    for made in _candidates(op, mesh, operands, inner, make):
        cost = sum(walk.traffic for walk in made.walks)
        if cost < least:
            best, least = made, cost
        if not any(walk.moves for walk in made.walks):
            return made
    assert best is not None
    return best


def _candidates(
    op: Operation, mesh: ProcessMesh, operands: Sequence[Layout], inner: Inner, make: Make
) -> Iterator[SplitRegions]:
    if op.name == "control.if":
        yield _split_branches(op, mesh, inner, make)
        return
    first = {"control.for": 3, "control.scan": op.attributes.get("inputs", 0)}.get(op.name, 0)
    heads = [Layout.replicate(mesh)] * first
    if op.name == "control.scan":
        heads = [_without_axis(layout) for layout in operands[:first]]
    given = [*heads, *(versions[0][0] for versions in inner.values())]
    for carried in _beginnings(op, mesh, given, list(operands[first:])):
        yield _split_loop(op, mesh, heads, carried, inner, make)


def _is_of_one_rank(op: Operation) -> bool:
    return op.kind in ("to_local", "from_local") or PRIMITIVES[op.kind].category == "communication"


def _beginnings(op: Operation, mesh: ProcessMesh, given: list[Layout], carried: list[Layout]) -> Iterator[list[Layout]]:
    """Layouts of carried values to begin with: those of the initial ones; then zeros as terms of sums along what is
    split of them and of what is ``given`` besides, as gradients add up."""
    yield carried
    split = [any(x.placements[dim].is_shard() for x in (*given, *carried)) for dim in range(mesh.ndim)]
    terms = Layout(mesh, [Partial() if is_split else Replicate() for is_split in split])
    zeros = [is_zero(x) for x in op.operands[len(op.operands) - len(carried) :]]
    if any(zeros):
        yield [terms if zero else layout for zero, layout in zip(zeros, carried, strict=True)]


def _split_loop(
    op: Operation, mesh: ProcessMesh, heads: Sequence[Layout], carried: list[Layout], inner: Inner, make: Make
) -> SplitRegions:
    given = heads[:1] if op.name == "control.for" else heads
    for _ in range(_MOST_TRIES):
        body = _walk(op.regions[-1], [*given, *carried], inner, make)
        found = body.natural_layouts(mesh)
        stacked, after = found[: len(found) - len(carried)], found[len(found) - len(carried) :]
        if after == carried:
            break
        beginning, carried = carried, after
    else:
        carried = beginning  # of the last walk: what the body gives is brought into these layouts
    body.close(op.regions[-1], [*stacked, *carried])
    bodies = [body]
    if op.name == "control.while":
        bodies.insert(0, _walk(op.regions[0], carried, inner, make))
        bodies[0].close(op.regions[0], [Layout.replicate(mesh)])
    regions = [Region([each.block]) for each in bodies]
    if op.name == "control.scan":
        heads = [_with_axis(layout) for layout in heads]
    walks = [each.partitioner for each in bodies]
    return SplitRegions(regions, [*heads, *carried], [*map(_with_axis, stacked), *carried], walks)


def _split_branches(op: Operation, mesh: ProcessMesh, inner: Inner, make: Make) -> SplitRegions:
    bodies = [_walk(region, [], inner, make) for region in op.regions]
    one, other = (body.natural_layouts(mesh) for body in bodies)
    results = [b if a.is_replicated else a for a, b in zip(one, other, strict=True)]
    for body, region in zip(bodies, op.regions, strict=True):
        body.close(region, results)
    walks = [body.partitioner for body in bodies]
    return SplitRegions([Region([body.block]) for body in bodies], [Layout.replicate(mesh)], results, walks)


def _walk(region: Region, layouts: Sequence[Layout], inner: Inner, make: Make) -> _Body:
    types = [make(Block()).local_type(x, at) for x, at in zip(region.block.arguments, layouts, strict=True)]
    block = Block(types)
    made = make(block)
    for value, versions in inner.items():
        made.enter_local(value, *versions[0])
        for layout, local in versions[1:]:
            made.keep(value, layout, local)
    for argument, layout, local in zip(region.block.arguments, layouts, block.arguments, strict=True):
        made.enter_local(argument, layout, local)
    last = region.block.last
    assert last is not None
    with made.emitter.emit_here():
        made.walk(op for op in region.block if op is not last)
        made.emitter.advance()
    return _Body(block, made, tuple(last.operands))


def _renumber_axes(layout: Layout, change: Callable[[int], int]) -> Layout:
    placements: list[Placement] = [
        p if not isinstance(p, Shard) else Replicate() if change(p.dim) < 0 else p.with_dim(change(p.dim))
        for p in layout.placements
    ]
    return Layout(layout.mesh, placements)


def _without_axis(layout: Layout) -> Layout:
    """The layout of slices along the first axis, which are made of whole ones."""
    return _renumber_axes(layout, lambda axis: axis - 1)


def _with_axis(layout: Layout) -> Layout:
    """The layout of what is stacked along a new first axis."""
    return _renumber_axes(layout, lambda axis: axis + 1)
