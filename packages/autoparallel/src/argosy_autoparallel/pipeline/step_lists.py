"""The lists of all ranks for a step: orders of a schedule, with the pieces of a cut step, on meshes of stages.

The ranks at one place of the stages' meshes are a pipeline; ranks beside each other communicate within their pieces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from argosy_autoparallel.pipeline.local_pieces import LocalPieces
from argosy_autoparallel.pipeline.stages import FORWARD
from argosy_autoparallel.resharding.emitter import static_shape
from argosy_autoparallel.schedule.connect import connect
from argosy_autoparallel.schedule.instructions import Instruction, Receive, Ref, Run, Send, Update
from argosy_autoparallel.schedule.lists import InstructionList, Port, Signature
from argosy_pir import TensorType, Value

__all__ = ["LAST", "UPDATE", "Pieces", "forward_orders", "ranks_of_stages", "step_lists"]

LAST = "_last"
"""What the names of pieces end in for a last microbatch of another size."""
UPDATE = "update", None
"""The piece that ends a step of training. It has no values: parameters, gradients and states are the rank's own."""
Order = Sequence[Run | Update]
Pieces = Mapping[tuple[str, int | None], Signature]


def ranks_of_stages(orders: Sequence[Sequence[Run]], stages: int) -> list[int]:
    """The rank of a pipeline that has each stage."""
    found = {run.chunk: rank for rank, order in enumerate(orders) for run in order}
    return [found[stage] for stage in range(stages)]


def forward_orders(ranks: Sequence[int], microbatches: int) -> list[list[Run]]:
    """Orders of forward passes alone, of stages that lie on these ranks of the pipeline."""
    orders: list[list[Run]] = [[] for _ in range(max(ranks) + 1)]
    for microbatch in range(microbatches):
        for stage, rank in enumerate(ranks):
            orders[rank].append(Run(FORWARD, stage, microbatch))
    return orders


def step_lists(
    orders: Sequence[Sequence[Run]], pieces: Sequence[LocalPieces], microbatches: int, size: int,
    results: Sequence[Sequence[Value]], updates: bool = False,
) -> list[InstructionList]:  # fmt: skip
    """The lists of ``size`` ranks. ``pieces`` are those of a microbatch, and perhaps those of a last one of another
    size; ``results`` the values of each that every pipeline rank is to have in the end, where they are called
    ``result0[microbatch]`` and so on. With ``updates`` all ranks run `UPDATE` at the end.
    """
    first = pieces[0]
    owners = ranks_of_stages(orders, first.cut.stages)
    lists = [InstructionList(()) for _ in range(size)]
    for lane in range(first.meshes[0].size):
        ranks = {owners[stage]: first.meshes[stage].process_ids[lane] for stage in range(first.cut.stages)}
        for rank, one in _lane(orders, pieces, microbatches, ranks, results).items():
            lists[rank] = one
    return [_with_update(one) for one in lists] if updates else lists


def _with_update(one: InstructionList) -> InstructionList:
    pieces = {**one.pieces, UPDATE: Signature((), ())}
    return replace(one, instructions=(*one.instructions, Update(UPDATE[0])), pieces=pieces)


def _lane(
    orders: Sequence[Sequence[Run]], pieces: Sequence[LocalPieces], microbatches: int, ranks: Mapping[int, int],
    results: Sequence[Sequence[Value]],
) -> dict[int, InstructionList]:  # fmt: skip
    """The lists of one pipeline, by rank. ``ranks`` are the numbers of its members in the world."""
    signatures: dict[tuple[str, int | None], Signature] = {}
    for number, local in enumerate(pieces):
        signatures |= _signatures(local, LAST if number else "", ranks, orders)
        signatures |= _reports(local, LAST if number else "", results[number])
    has_last, has_reports = len(pieces) > 1, bool(results[0])
    runs = [
        _with_reports(_name_last_pieces(order, microbatches, has_last), microbatches, has_last, has_reports)
        for order in orders
    ]
    given = [_initial_types(order, signatures) for order in runs]
    made = connect(runs, signatures, given)
    return {ranks[i]: _renumber_ranks(one, ranks) for i, one in enumerate(made)}


def _signatures(local: LocalPieces, suffix: str, ranks: Mapping[int, int], orders: Sequence[Sequence[Run]]) -> Pieces:
    owners = ranks_of_stages(orders, local.cut.stages)
    made: dict[tuple[str, int | None], Signature] = {}
    for (name, stage), piece in local.cut.pieces.items():
        rank = ranks[owners[stage]]
        inputs = tuple(_port(local, value, stage, rank) for value in piece.inputs)
        outputs = tuple(_port(local, value, stage, rank) for value in piece.outputs)
        made[name + suffix, stage] = Signature(inputs, outputs)
    return made


def _port(local: LocalPieces, value: Value, stage: int, rank: int) -> Port:
    return Port(local.cut.names[value], local.type(value, stage, rank), "microbatch")


def _reports(local: LocalPieces, suffix: str, results: Sequence[Value]) -> Pieces:
    """Pieces that hand results on, which every rank of a stage has whole: what each rank runs to have them."""
    types = [TensorType(static_shape(value), value.dtype) for value in results]
    inputs = tuple(Port(local.cut.names[v], t, "microbatch") for v, t in zip(results, types, strict=True))
    outputs = tuple(Port(f"result{i}", t, "microbatch") for i, t in enumerate(types))
    return {("report" + suffix, None): Signature(inputs, outputs)}


def _name_last_pieces(order: Sequence[Run], microbatches: int, has_last: bool) -> list[Run]:
    """Runs of the last microbatch by the names of its pieces."""
    if not has_last:
        return list(order)
    return [replace(run, piece=run.piece + LAST) if run.microbatch == microbatches - 1 else run for run in order]


def _with_reports(order: Sequence[Run], microbatches: int, has_last: bool, reports: bool) -> Order:
    """The order, then a report of each microbatch. ``chunk`` of a report is the rank's first stage: it is run once."""
    if not reports:
        return order
    chunk = min((run.chunk for run in order), default=0)
    numbers = range(microbatches)
    return [
        *order,
        *(Run("report" + LAST * (has_last and i == microbatches - 1), chunk, i) for i in numbers),
    ]


def _initial_types(order: Order, signatures: Pieces) -> dict[Ref, TensorType]:
    """What a rank begins with: inputs of the step and counters of each microbatch."""
    found = {}
    for run in order:
        signature = signatures.get((run.piece, run.chunk)) or signatures[run.piece, None]
        for port in signature.inputs:
            if port.name.startswith(("input", "counter")) and isinstance(run, Run):
                found[port.ref(run.chunk, run.microbatch)] = port.type
    return found


def _renumber_ranks(one: InstructionList, ranks: Mapping[int, int]) -> InstructionList:
    """The list with the world's numbers of ranks."""

    def of_world(instruction: Instruction) -> Instruction:
        if isinstance(instruction, Send):
            return replace(instruction, to=ranks[instruction.to])
        if isinstance(instruction, Receive):
            return replace(instruction, source=ranks[instruction.source])
        return instruction

    return replace(one, instructions=tuple(map(of_world, one.instructions)))
