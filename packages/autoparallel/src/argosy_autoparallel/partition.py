"""One rank's program of a program on global tensors.

The program is walked once in order. Each operation takes the strategy that costs least communication for the layouts
that its operands have by then, one mesh dimension after another; operands are brought to the strategy's layouts by
communication primitives, and the local operation is emitted. A value may exist in several layouts; each is made once.

Cheap operations on data that every rank has (constants, masks, random bits, casts of parameters) are *deferred*: they
are emitted in the layout that a user of theirs asks for, so that a rank makes only its part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from argosy_autoparallel.broadcast_resharding import broadcast_of, source_placement
from argosy_autoparallel.gathered_states import GatheredStates
from argosy_autoparallel.implicit_gathers import ImplicitGatherError, check_gather, is_strict
from argosy_autoparallel.localize import LocalOperation, emit_local
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.open_sizes import split_sizes
from argosy_autoparallel.operator_rules import OperatorCall, find_plan, ruled_operators
from argosy_autoparallel.passes.chunk_products import ChunkProducts
from argosy_autoparallel.passes.combine_collectives import CombineCollectives, note_collectives
from argosy_autoparallel.passes.overlap import Overlap
from argosy_autoparallel.passes.shrink_live_ranges import ShrinkLiveRanges
from argosy_autoparallel.placement import Replicate
from argosy_autoparallel.placing_operations import PLACING, communicate
from argosy_autoparallel.region_partition import split_regions
from argosy_autoparallel.repeated_blocks import walk_blocks
from argosy_autoparallel.resharding.convert import convert
from argosy_autoparallel.resharding.emitter import Emitter, shape_of
from argosy_autoparallel.resharding.path import communicates, path_cost
from argosy_autoparallel.scalar_reductions import ScalarReductions
from argosy_autoparallel.spmd import Strategy
from argosy_autoparallel.strategy_choice import StrategyChoice
from argosy_autoparallel.tensor_layout import Layout
from argosy_autoparallel.value_layouts import ValueLayouts, captured_values, is_static, is_zero
from argosy_phi_ops.context import context
from argosy_phi_ops.passes.decompose import Decompose, decompose_operation
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Block, Operation, Program, TensorType, Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["PartitionedProgram", "partition", "partition_ranks"]

_DEFERRED = frozenset({"elementwise", "layout", "random"})
_COMMUNICATION = frozenset(f"prim.{name}" for name, p in PRIMITIVES.items() if p.category == "communication")
_EARLIER = {"ad": "expand-gradients", "phi": "decompose"}
"""Passes that leave nothing of a dialect."""
_DEEPEST = 64  # deferred operations on top of each other
_OUTSIDE = TensorType((0,), "bool")
"""The type that stands for a tensor on a rank outside its mesh."""


class PartitionedProgram(NamedTuple):
    """A local ``program``; the layouts of its outputs and states (None: every rank has all of it); the groups of ranks
    that it communicates in, this rank's ones."""

    program: Program
    output_layouts: tuple[Layout | None, ...]
    state_layouts: tuple[Layout | None, ...]
    groups: frozenset[tuple[int, ...]]


def partition(
    program: Program,
    input_layouts: Sequence[Layout | None],
    state_layouts: Sequence[Layout | None] = (),
    rank: int = 0,
    output_layouts: Sequence[Layout | None] = (),
    overlap: bool = False,
    reshard_after_use: bool = False,
) -> PartitionedProgram:
    """The program that ``rank`` runs of ``program``, whose inputs and states are laid out as told.

    A layout of None says that every rank of the world holds the whole tensor. ``output_layouts`` may ask for layouts of
    outputs (None: as it comes). Operators are decomposed first; gradient requests must be expanded. All ranks must call
    with the same arguments but ``rank``: the choices are then the same on all, and so is the order of communication.
    With ``overlap`` gradients are summed as they come, and collectives are on their way while others are computed. With
    ``reshard_after_use`` states that are gathered are not kept whole: who uses them again gathers them again.

    A symbolic size of an input that is split stands for the size of a part in the result: whoever calls it sees to it
    that all are equal. Raises ``NotImplementedError`` for symbolic sizes where that does not say what parts are, and
    ``ValueError`` for operands on different meshes.
    """
    laid = input_layouts, state_layouts, output_layouts
    return next(partition_ranks(program, *laid, [rank], overlap, reshard_after_use))


def partition_ranks(
    program: Program,
    input_layouts: Sequence[Layout | None],
    state_layouts: Sequence[Layout | None],
    output_layouts: Sequence[Layout | None],
    ranks: Iterable[int],
    overlap: bool = False,
    reshard_after_use: bool = False,
    reduce_scalars: bool = False,
) -> Iterator[PartitionedProgram]:
    """What :func:`partition` makes for each of ``ranks``, one after the other. With ``reduce_scalars`` outputs of one
    element that are still to be reduced along one mesh dimension are, where other values, gradients, are reduced alike:
    one collective does both, and who reads a loss then waits for nobody.
    """
    program = split_sizes(program, input_layouts, context().size).clone()
    if any(op.dialect == "phi" for op in program.walk()):
        Decompose(keep=ruled_operators()).run(program)
    ShrinkLiveRanges().run(program)
    for rank in ranks:
        walk = Partitioner(program, input_layouts, state_layouts, rank, reshard_after_use)
        made = walk.run(output_layouts, reduce_scalars)
        CombineCollectives(early=overlap).run(made.program)
        if overlap:
            ChunkProducts().run(made.program)
            Overlap().run(made.program)
        yield made


class Partitioner:
    """One walk over a program of primitives, ``source``: all of it by :meth:`run`, or piece by piece as it grows."""

    def __init__(
        self,
        program: Program,
        inputs: Sequence[Layout | None],
        states: Sequence[Layout | None],
        rank: int,
        reshard_after_use: bool = False,
    ) -> None:
        self.source = program
        self.rank = rank
        self.target = Program(program.name)
        self.emitter = Emitter(self.target, rank)
        self.held: dict[Value, ValueLayouts] = {}
        self.choosing = StrategyChoice(self.held)
        self._asking: Operation | None = None  # what is worked on, where it asks for no layouts
        self._expansions: list[Program] = []
        self._strict = is_strict()
        self._tries = False  # whether other layouts may be tried where these are refused
        self.refused: ImplicitGatherError | None = None
        self.moves = False  # whether anything has been communicated, on all ranks alike
        self.traffic = 0.0  # what that costs, as the cheapest ways between layouts count it
        arguments = [state.argument for state in program.states] if reshard_after_use else []
        self._gathered_states = GatheredStates(self.held, arguments)
        self._scalars = ScalarReductions()
        self.state_layouts = tuple(states) or (None,) * len(program.states)
        for value, layout in zip(program.inputs, inputs, strict=True):
            self.enter(value, layout)
        for state, layout in zip(program.states, self.state_layouts, strict=True):
            made = self.target.add_state(state.name, self.local_type(state.argument, layout), dict(state.attributes))
            self.enter_local(state.argument, layout, made.argument)

    def enter(self, value: Value, layout: Layout | None) -> None:
        """Add an input of the source, laid out as told."""
        self.enter_local(value, layout, self.target.add_input(self.local_type(value, layout)))

    def walk(self, ops: Iterable[Operation]) -> None:
        """Go on with the next operations of the source."""
        ambient = context()
        for op in ops:
            self.emitter.advance()
            ambient.location = op.location  # what it takes to run the operation comes from its line, too
            self._operation(op)
        self._asking, self.emitter.needed_by = None, ()

    def layout(self, value: Value) -> Layout | None:
        """How a value lies that has been walked over: where it is needed next, unless that place asks otherwise."""
        held = self.held[value]
        if held.is_deferred and held.mesh is not None:
            return Layout.replicate(held.mesh)
        return held.primary

    def run(self, wanted: Sequence[Layout | None], reduce_scalars: bool = False) -> PartitionedProgram:
        sources = self.source.outputs
        with self.emitter.emit_here():
            last = self.source.block.last
            ops = [op for op in self.source.block if op is not last]
            (self.walk if self._gathered_states.are_tracked else partial(walk_blocks, self))(ops)
            self.emitter.advance()
            found = [self.layout(v) for v in sources]
            if reduce_scalars:
                found = [self._scalars.layout(v, layout) for v, layout in zip(sources, found, strict=True)]
            layouts = [f if w is None else w for w, f in zip(wanted or [None] * len(found), found, strict=True)]
            outputs = [self._output(v, layout) for v, layout in zip(sources, layouts, strict=True)]
            states = [state.argument for state in self.source.states]
            written = zip(states, self.source.state_updates, self.state_layouts, strict=True)
            updates = [self._update(*each) for each in written]
        self.target.set_outputs(outputs, updates)
        note_collectives(self.target, self.emitter.places())
        for name, value in self.source.attributes.items():
            self.target.attributes[name] = value
        return PartitionedProgram(self.target, tuple(layouts), self.state_layouts, frozenset(self.emitter.groups))

    # Entry and exit

    def local_type(self, value: Value, layout: Layout | None) -> TensorType:
        if layout is None:
            return value.type  # type: ignore[return-value]
        if not layout.mesh.contains(self.rank):
            return _OUTSIDE
        return TensorType(layout.local_slice(shape_of(value), self.rank).shape, value.dtype)

    def enter_local(self, value: Value, layout: Layout | None, local: Value | None) -> None:
        self.choosing.plain &= layout is None or layout.is_plain
        held = self.held[value] = ValueLayouts()
        held.primary = layout
        held.keep(layout, local if layout is None or layout.mesh.contains(self.rank) else None, -1)
        held.mesh = None if layout is None else layout.mesh

    def _output(self, value: Value, layout: Layout | None) -> Value:
        made = self.get(value, layout)
        return self.emitter.builder.constant(_OUTSIDE, b"") if made is None else made

    def _update(self, argument: Value, value: Value, layout: Layout | None) -> Value:
        made = self.get(value, layout)
        if made is None:
            made = self.target.block.arguments[self.source.block.arguments.index(argument)]
        return made

    # Values in layouts

    def get(self, value: Value, layout: Layout | None) -> Value | None:
        """The local value of ``value`` in ``layout``, emitting what it takes; None outside the mesh."""
        held = self.held[value]
        if layout in held.versions:
            self._gathered_states.use(value, layout)
            return held.versions[layout]
        if held.is_deferred and not (layout is None and held.mesh is not None):
            made = self._get_deferred(value, held, layout)
        elif layout is None:
            raise ValueError(
                f"partition: {value.type} lives on {held.mesh!r}, but is needed on every rank; reshard it or state "
                "an output layout"
            )
        else:
            made = self._convert(value, held, layout)
        held.keep(layout, made, self.emitter.clock)
        return made

    def _convert(self, value: Value, held: ValueLayouts, layout: Layout) -> Value | None:
        shape, itemsize = shape_of(value), as_dtype(value.dtype).itemsize
        best: tuple[float, Layout, Value | None, int] | None = None
        for found, local in held.versions.items():
            source = Layout.replicate(layout.mesh) if found is None else found
            if found is None and not layout.mesh.contains(self.rank):
                local = None
            cost = path_cost(source, layout, shape, itemsize) if source.mesh == layout.mesh else float("inf")
            if best is None or cost < best[0]:
                best = cost, source, local, held.since[found]
        assert best is not None
        again = self._repeat_broadcast(value, layout, best[0])
        if again:
            return again[0]
        if communicates(best[1], layout):
            self.moves, self.traffic = True, self.traffic + best[0]
        self._scalars.note(value, best[1], layout)
        if self._strict and self._asking is not None:
            try:
                check_gather(self._asking, best[1], layout, shape, value.dtype)
            except ImplicitGatherError as error:
                self.refused = self.refused or error
                if not self._tries:
                    raise
        made = convert(self.emitter, best[2], best[1], layout, shape, value.dtype, best[3])
        self._gathered_states.gather(value, best[1], layout)
        return made

    def _repeat_broadcast(self, value: Value, layout: Layout, price: float) -> list[Value | None]:
        """A broadcast value in ``layout`` from its source, where moving that costs less than ``price``; else nothing.

        Ranks outside the mesh come to the same answer, since what they know of layouts must stay the same.
        """
        op = broadcast_of(value)
        if op is None or op.operand(0) not in self.held:  # made outside of the region
            return []
        placements = [source_placement(op, wanted) for wanted in layout.placements]
        if any(p is None for p in placements) or self.held[op.operand(0)].is_deferred:
            return []
        source, held = op.operand(0), self.held[op.operand(0)]
        target = Layout(layout.mesh, placements)  # type: ignore[arg-type]
        shape, itemsize = shape_of(source), as_dtype(source.dtype).itemsize
        costs = [
            path_cost(found, target, shape, itemsize)
            for found in held.versions
            if found is not None and found.mesh == layout.mesh
        ]
        if not costs or min(costs) >= price:
            return []
        chosen = self.choosing.choose(op, layout.mesh, layout.placements)
        if Layout(layout.mesh, [s.results[0] for s in chosen]) != layout:
            return []
        return self._emit(op, layout.mesh, chosen)

    def _get_deferred(self, value: Value, held: ValueLayouts, layout: Layout | None) -> Value | None:
        op = held.op
        assert op is not None
        if layout is None:
            operands = [self.get(x, None) for x in op.operands]
            return self.copy(op, operands)[held.number]
        if held.mesh is not None and held.mesh != layout.mesh:
            base = Layout.replicate(held.mesh)
            self.get(value, base)
            return self._convert(value, held, layout)
        if layout.is_partial:
            whole = Layout(layout.mesh, [Replicate() if p.is_partial() else p for p in layout.placements])
            made = self.get(value, whole)
            if is_zero(value) and layout.is_sum:
                return made
            return convert(self.emitter, made, whole, layout, shape_of(value), value.dtype)
        if not layout.mesh.contains(self.rank):
            return None
        if op.name == "builtin.constant":
            whole = Layout.replicate(layout.mesh)
            made = self.get(value, None)
            return convert(self.emitter, made, whole, layout, shape_of(value), value.dtype)
        chosen = self.choosing.choose(op, layout.mesh, layout.placements, held.number)
        results = self._emit(op, layout.mesh, chosen)
        at = Layout(layout.mesh, [s.results[held.number] for s in chosen])
        return convert(self.emitter, results[held.number], at, layout, shape_of(value), value.dtype)

    # Operations

    def _operation(self, op: Operation) -> None:
        if op.name.startswith("phi.") and op.kind in ruled_operators():
            self._whole_operator(op)
            return
        earlier = _EARLIER.get(op.dialect)
        if earlier is not None:
            raise ValueError(f"partition: '{op.name}' is no primitive; run the pass {earlier} first")
        own = PLACING.get(op.name)
        implicit = own is None and op.name not in _COMMUNICATION
        self._asking, self.emitter.needed_by = (op, (op.name,)) if implicit else (None, ())
        if own is not None:
            own(self, op)
        elif op.name in _COMMUNICATION:
            communicate(self, op)
        elif self._may_defer(op):
            self._defer(op)
        else:
            self._run_operation(op)
        self._gathered_states.follow(op)

    def _whole_operator(self, op: Operation) -> None:
        """An operator with a rule of its own; where that does not apply, its decomposition is walked over."""
        mesh = self._mesh(op)
        layouts = [self.layout(x) or Layout.replicate(mesh) for x in op.operands] if mesh is not None else []
        plan = None if mesh is None else find_plan(OperatorCall(op, layouts))
        if plan is None:
            self._walk_expansion(op)
            return
        assert mesh is not None
        self._asking, self.emitter.needed_by = op, (op.name,)
        operands = [self.get(x, layout) for x, layout in zip(op.operands, plan.operands, strict=True)]
        self.moves, self.traffic = True, self.traffic + 1
        held = [x for x in operands if x is not None]
        made = plan.emit(self.emitter, held) if mesh.contains(self.rank) else [None] * len(op.results)
        self.store_all(op, plan.results, made)

    def _walk_expansion(self, op: Operation) -> None:
        scratch = Program(op.name)
        self._expansions.append(scratch)  # its operations are looked at as long as their values
        known: dict[Value, Value] = {x: scratch.add_input(x.type) for x in op.operands}
        for outside, inside in known.items():
            self.held[inside] = self.held[outside]
        made = op.clone(known)
        scratch.block.append(made)
        values = decompose_operation(made)
        self.walk(list(scratch.block))
        for result, value in zip(op.results, values, strict=True):
            self.held[result] = self.held[value]

    def _may_defer(self, op: Operation) -> bool:
        if op.name == "builtin.constant":
            return True
        primitive = PRIMITIVES.get(op.kind) if op.dialect == "prim" else None
        if primitive is None or primitive.category not in _DEFERRED:
            return False
        return all(self._everywhere(x) for x in op.operands)

    def _everywhere(self, value: Value) -> bool:
        held = self.held[value]
        if held.is_deferred:
            return held.depth < _DEEPEST
        return None in held.versions or any(x is not None and x.is_replicated for x in held.versions)

    def _defer(self, op: Operation) -> None:
        mesh = self._mesh(op)
        depth = 1 + max((self.held[x].depth for x in op.operands), default=0)
        for number, result in enumerate(op.results):
            held = self.held[result] = ValueLayouts()
            held.op, held.number, held.depth, held.mesh = op, number, depth, mesh

    def _mesh(self, op: Operation, values: Iterable[Value] | None = None) -> ProcessMesh | None:
        """The one mesh that the operands live on; None where every rank has all of them."""
        mesh: ProcessMesh | None = None
        for value in op.operands if values is None else values:
            found = self.held[value].mesh if value in self.held else None
            if found is None or found == mesh:
                continue
            if mesh is not None:
                raise ValueError(
                    f"'{op.name}'{op.location.suffix} has operands on different meshes, {mesh!r} and {found!r}; "
                    "reshard one of them first"
                )
            mesh = found
        return mesh

    def _run_operation(self, op: Operation) -> None:
        inner = captured_values(op)
        mesh = self._mesh(op, [*op.operands, *inner])
        if mesh is None:
            operands = [self.get(x, None) for x in op.operands]
            mapping = {x: self.get(x, None) for x in inner}
            self.store_all(op, [None] * len(op.results), self.copy(op, operands, mapping))
            return
        if op.dialect != "prim":
            whole = Layout.replicate(mesh)
            if op.regions and self._run_on_parts(op, mesh, inner):
                return
            layouts = [whole if isinstance(x.type, TensorType) else None for x in op.operands]
            operands = [self.get(x, layout) for x, layout in zip(op.operands, layouts, strict=True)]
            mapping = {x: self.get(x, whole) for x in inner}
            made = self.copy(op, operands, mapping) if mesh.contains(self.rank) else [None] * len(op.results)
            kinds = [whole if isinstance(r.type, TensorType) else None for r in op.results]
            self.store_all(op, kinds, made)
            return
        chosen = self.choosing.choose(op, mesh)
        if any(s.factor.startswith(("window", "scanned", "sorted")) for s in chosen):
            self.moves, self.traffic = True, self.traffic + 1
        results = self._emit(op, mesh, chosen)
        layouts = [Layout(mesh, [s.results[i] for s in chosen]) for i in range(len(op.results))]
        self.store_all(op, layouts, results)

    def _run_on_parts(self, op: Operation, mesh: ProcessMesh, inner: Sequence[Value]) -> bool:
        """Run a loop or branch with split bodies; False where nothing is split, or its bodies communicate already."""
        values = [*op.operands, *inner]
        layouts = [self.layout(x) or Layout.replicate(mesh) for x in values if is_static(x)]
        if len(layouts) < len(values) or all(layout.is_replicated for layout in layouts):
            return False
        count = len(op.operands)
        known = {x: [(layout, self.get(x, layout))] for x, layout in zip(inner, layouts[count:], strict=True)}
        made = split_regions(op, mesh, layouts[:count], known, self, self._partitioner_of)
        if made is None:
            return False
        for walk in made.walks:
            if walk.refused is not None:
                raise walk.refused
            self.moves |= walk.moves
            self.traffic += walk.traffic
            self.emitter.groups |= walk.emitter.groups
        given = [self.get(x, layout) for x, layout in zip(op.operands, made.operands, strict=True)]
        results = made.emit(op, self.emitter, given) if mesh.contains(self.rank) else [None] * len(op.results)
        self.store_all(op, made.results, results)
        return True

    def _partitioner_of(self, block: Block) -> Partitioner:
        """The partitioner of a region, which writes to ``block``."""
        made = Partitioner(Program("region"), (), (), self.rank)
        made.emitter, made._strict, made._tries = Emitter(self.target, self.rank, block), self._strict, True
        return made

    def layouts(self, value: Value) -> list[Layout | None]:
        """Those in which a value exists by now."""
        return list(self.held[value].versions)

    def keep(self, value: Value, layout: Layout | None, local: Value | None) -> None:
        """Let a value that is there be there in another layout, too."""
        self.held[value].keep(layout, local, -1)

    def store_all(self, op: Operation, layouts: Sequence[Layout | None], values: Sequence[Value | None]) -> None:
        for result, layout, value in zip(op.results, layouts, values, strict=True):
            self.store(result, layout, value)

    def store(self, result: Value, layout: Layout | None, value: Value | None) -> None:
        """Let a result be there as the local ``value``."""
        self.choosing.plain &= layout is None or layout.is_plain
        held = self.held[result] = ValueLayouts()
        held.primary, held.mesh = layout, None if layout is None else layout.mesh
        held.keep(layout, value, self.emitter.clock)

    def copy(
        self, op: Operation, operands: Sequence[Value | None], inner: Mapping[Value, Value | None] | None = None
    ) -> list[Value]:
        """Emit the operation as it is; its results."""
        mapping = {**dict(zip(op.operands, operands, strict=True)), **(inner or {})}
        made = op.clone({k: v for k, v in mapping.items() if v is not None})
        self.emitter.block.append(made)
        return list(made.results)

    # Emitting

    def _emit(self, op: Operation, mesh: ProcessMesh, chosen: Sequence[Strategy]) -> list[Value | None]:
        operand_layouts = [Layout(mesh, [s.operands[i] for s in chosen]) for i in range(len(op.operands))]
        result_layouts = [Layout(mesh, [s.results[i] for s in chosen]) for i in range(len(op.results))]
        operands = [self.get(x, layout) for x, layout in zip(op.operands, operand_layouts, strict=True)]
        if not mesh.contains(self.rank):
            return [None] * len(op.results)
        local = LocalOperation(self.emitter, op, operands, operand_layouts, result_layouts)  # type: ignore[arg-type]
        return list(emit_local(local))
