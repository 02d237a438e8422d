"""Pieces as one rank runs them: partitioned on the mesh of their stage, with sums that go on over microbatches.

Every rank looks at all pieces, so that it knows the layouts of what the others send it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.partition import partition, partition_ranks
from argosy_autoparallel.passes.tokens import COMMUNICATION, thread_tokens
from argosy_autoparallel.pipeline.cut import Cut, Key, Piece
from argosy_autoparallel.placement import Placement
from argosy_autoparallel.resharding.emitter import static_shape
from argosy_autoparallel.schedule.lists import ScheduleError
from argosy_autoparallel.schedule.programs import verify_programs
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Program, TensorType, Value

__all__ = ["LocalPieces", "StateLayouts", "add_accumulation", "localize_pieces"]

StateLayouts = Sequence[Mapping[int, Layout]]
"""For each state its layout on the mesh of each stage that has it; nothing for a state that every rank has whole."""
_PARTS = frozenset({"prim.to_local", "prim.from_local"})
_LAYOUTS = frozenset({"prim.relayout", *_PARTS})


@dataclass
class LocalPieces:
    """``programs`` are this rank's, None for stages of others; ``layouts`` those of values where they are made;
    ``gradients`` how the terms of each gradient lie on the mesh of any stage, by its position among the outputs;
    ``parts`` how those are split that leave their piece as parts of a sum.
    """

    cut: Cut
    meshes: Sequence[ProcessMesh]
    programs: dict[Key, Program | None] = field(default_factory=dict)
    layouts: dict[Value, Layout | None] = field(default_factory=dict)
    gradients: dict[int, tuple[Placement, ...]] = field(default_factory=dict)
    parts: Mapping[int, tuple[Placement, ...]] = field(default_factory=dict)

    def layout(self, value: Value, stage: int) -> Layout | None:
        """How a value lies on the mesh of a stage that reads it."""
        found = self.layouts[value]
        return found if found is None else layout_on_mesh(found, self.meshes[stage])

    def type(self, value: Value, stage: int, rank: int) -> TensorType:
        """The type of a rank's part."""
        layout = self.layout(value, stage)
        shape = static_shape(value)
        return TensorType(shape if layout is None else layout.local_slice(shape, rank).shape, value.dtype)


def localize_pieces(
    whole: Cut, meshes: Sequence[ProcessMesh], inputs: Mapping[Value, Layout | None], states: StateLayouts, rank: int,
    gradients: Mapping[int, tuple[Placement, ...]] | None = None,
    parts: Mapping[int, tuple[Placement, ...]] | None = None, check: bool = False,
) -> LocalPieces:  # fmt: skip
    """The programs of ``rank``. ``meshes`` are those of the stages; ``inputs`` the layouts of what pieces are given;
    ``gradients`` how terms of gradients must lie, where that is known; ``parts`` into which their sums are scattered,
    where they are. With ``check`` what each piece communicates is compared with that of the other ranks of its mesh.

    Raises :class:`ScheduleError` for meshes of different shapes, and for ranks that do not communicate alike.
    """
    if len({tuple(mesh.shape) for mesh in meshes}) > 1:
        raise ScheduleError(f"stages lie on meshes of different shapes: {', '.join(map(repr, meshes))}")
    made = LocalPieces(whole, meshes, layouts=dict(inputs), gradients=dict(gradients or {}), parts=parts or {})
    for key in whole.order():
        _localize(made, key, states, rank, check)
    return made


def layout_on_mesh(layout: Layout, mesh: ProcessMesh) -> Layout:
    """The layout on the mesh of another stage: a part goes from a rank to the one at its place."""
    return layout if layout.mesh == mesh else Layout(mesh, layout.placements)


def _localize(made: LocalPieces, key: Key, states: StateLayouts, rank: int, check: bool) -> None:
    piece, stage = made.cut.pieces[key], key[1]
    mesh = made.meshes[stage]
    inputs = [made.layout(value, stage) for value in piece.inputs]
    own = [states[number].get(stage) for number in piece.states]
    if mesh.size == 1 and all(op.name not in _LAYOUTS for op in piece.program.walk()):
        layouts: Sequence[Layout | None] = [Layout.replicate(mesh)] * len(piece.program.outputs)
        program = piece.program.clone() if mesh.contains(rank) else None
        if program is not None and any(op.name in COMMUNICATION for op in program.block):
            thread_tokens(program)
    else:
        program, layouts = _partition(made, piece, stage, inputs, own, rank, check)
    made.programs[key] = program
    made.layouts.update(zip(piece.outputs, layouts, strict=False))
    terms = layouts[len(piece.outputs) :]
    for position, layout in zip(piece.gradients, terms, strict=True):
        made.gradients.setdefault(position, Layout.replicate(mesh).placements if layout is None else layout.placements)


def _partition(
    made: LocalPieces, piece: Piece, stage: int, inputs: Sequence[Layout | None], states: Sequence[Layout | None],
    rank: int, check: bool,
) -> tuple[Program | None, Sequence[Layout | None]]:  # fmt: skip
    """The rank's program and the layouts of its outputs. What is a sum of terms stays so within a stage only."""
    mesh = made.meshes[stage]
    found, asked = partition(piece.program, inputs, states, rank), list[Layout | None]()
    wanted = [_requested_layout(made, *of, stage) for of in zip(piece.outputs, found.output_layouts, strict=False)]
    terms = found.output_layouts[len(wanted) :]
    known = [_gradient_layout(made, *of, mesh) for of in zip(piece.gradients, terms, strict=True)]
    differs = any(a is not None and a != b for a, b in zip(known, terms, strict=True))
    if differs or any(layout is not None for layout in wanted):
        asked = [*wanted, *known]
        found = partition(piece.program, inputs, states, rank, asked)
    if not mesh.contains(rank):
        return None, found.output_layouts
    if check and not _is_of_one_rank(piece.program) and _is_of_one_rank(found.program):
        others = [each for each in mesh.process_ids if each != rank]
        theirs = partition_ranks(piece.program, inputs, states, asked, others)
        _compare({rank: found.program, **{n: each.program for n, each in zip(others, theirs, strict=True)}})
    return found.program, found.output_layouts


def _is_of_one_rank(program: Program) -> bool:
    """Whether a program has what ranks have each for themselves: communication, and parts of tensors."""
    return any(op.name in COMMUNICATION or op.name in _PARTS for op in program.walk())


def _compare(programs: Mapping[int, Program]) -> None:
    """Raise ScheduleError where these ranks, among those that do nothing, do not communicate alike."""
    verify_programs([programs.get(rank) or Program() for rank in range(max(programs) + 1)])


def _requested_layout(made: LocalPieces, value: Value, layout: Layout | None, stage: int) -> Layout | None:
    """The layout to ask for: results whole, no sums that another stage would have to make; None as it comes."""
    if layout is None:
        return None
    if value in made.cut.program.outputs:
        return None if layout.is_replicated else Layout.replicate(layout.mesh)
    leaves = layout.is_partial and any(reader != stage for _, reader in made.cut.readers(value))
    return layout.cotangent() if leaves else None


def _gradient_layout(made: LocalPieces, position: int, layout: Layout | None, mesh: ProcessMesh) -> Layout | None:
    """How terms of a gradient are to lie: as those of other pieces do, sums scattered where they are kept in parts."""
    if (known := made.gradients.get(position)) is not None:
        return Layout(mesh, known)
    parts = made.parts.get(position)
    if layout is None or not parts:
        return None
    return Layout(mesh, [new if old.is_partial() and new.is_shard() else old
                         for old, new in zip(layout.placements, parts, strict=True)])  # fmt: skip


def add_accumulation(program: Program, terms: int) -> None:
    """Let a piece add its last outputs, ``terms`` in number, to states ``gradient.0`` and so on, and not give them."""
    outputs = program.outputs
    kept, gradients = outputs[: len(outputs) - terms], outputs[len(outputs) - terms :]
    updates = list(program.state_updates)
    last = program.block.last
    assert last is not None
    totals = [program.add_state(f"gradient.{i}", term.type).argument for i, term in enumerate(gradients)]
    with emit_at(Builder.before(last)):
        updates += [prim.add(total, term) for total, term in zip(totals, gradients, strict=True)]
    program.set_outputs(kept, updates)
