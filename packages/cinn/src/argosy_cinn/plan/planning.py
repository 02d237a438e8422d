"""From a lowered program to a plan: decide what is in memory, fuse, order and place.

Branches and loops whose regions have native code are planned with them: a region becomes a program of its own (see
`argosy_cinn.control`), whose plan lies inside that of the program around it.
"""

from __future__ import annotations

from collections.abc import Mapping

from argosy_cinn.control import is_compiled, region_program
from argosy_cinn.fusion.group_lowering import KnownReads
from argosy_cinn.fusion.groups import Fusion
from argosy_cinn.fusion.memory import Memory
from argosy_cinn.fusion.recompute import drop_recomputed
from argosy_cinn.kinds import has_emitter
from argosy_cinn.lowering.classify import HOST
from argosy_cinn.lowering.elements import NotAligned, splat_constant
from argosy_cinn.pipeline import lower_program
from argosy_cinn.plan.construction import make_plan
from argosy_cinn.plan.control import ControlForm, RegionPlan
from argosy_cinn.plan.steps import ExecutionPlan
from argosy_cinn.shapes import NotSymbolic, sizes
from argosy_cinn.target import Target
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.rewrite.fuel import spend
from argosy_pir.scalars import decode_scalar
from argosy_pir.values import Value


def plan_program(program: Program, target: Target, budget: int | None = None, guard: str = "") -> ExecutionPlan:
    """The plan of a lowered program; ``budget``: the bytes that its intermediate values may need; ``guard``: on
    which side they are guarded, if at all. Raises `NotSymbolic` where that depends on sizes known at run time."""
    if budget is not None and program.symbols():
        raise NotSymbolic("what to keep under a memory budget depends on sizes")
    run_time = "" if program.symbols() else None
    return _plan(program, target, run_time, inner=False, budget=budget, guard=guard)


def _plan(
    program: Program, target: Target, run_time: str | None, inner: bool, budget: int | None = None, guard: str = ""
) -> ExecutionPlan:
    """``run_time``: sizes are known then, see `make_plan`. ``inner``: a region, whose arguments may begin anywhere in
    memory."""
    native: dict[Operation, ControlForm] = {}
    for op in program.block:
        prefix = f"{run_time}_{len(native)}" if run_time is not None else None
        flow = _control_flow(op, target, prefix) if op.regions else None
        if flow is not None:
            native[op] = flow
    symbolic = run_time is not None
    try:
        memory, fusion = _fuse(program, native, symbolic, has_emitter("attention", target.schedules))
    except NotAligned:  # a region of attention in which one cell needs another
        memory, fusion = _fuse(program, native, symbolic, attention=False)
    return make_plan(memory, fusion, target, inner=inner, run_time=run_time, budget=budget, guard=guard)


def _fuse(
    program: Program, native: Mapping[Operation, ControlForm], symbolic: bool, attention: bool
) -> tuple[Memory, Fusion]:
    memory = Memory(program, attention, native)
    if symbolic:
        _refuse_hosts(memory)
    reads = KnownReads(memory)
    fusion = Fusion(memory, reads)
    if drop_recomputed(memory, fusion):
        fusion = Fusion(memory, reads)
    fusion.drop_unread()
    return memory, fusion


def _refuse_hosts(memory: Memory) -> None:
    for op, kind in memory.kinds.items():
        if kind == HOST:
            where = op.location.suffix
            raise NotSymbolic(f"'{op.name}'{where} runs on the host")


# -- control flow


def _control_flow(op: Operation, target: Target, run_time: str | None) -> ControlForm | None:
    """The plan of a branch or loop with its regions; None where a part of it has no native code."""
    if not is_compiled(op) or not op.results or not _has_known_steps(op) or not spend("control", op):
        return None
    regions: list[RegionPlan] = []
    for i, region in enumerate(op.regions):
        program, captured = region_program(region.blocks[0], f"{op.name}.{i}")
        program = lower_program(program, target, target.schedules)
        plan = _plan(program, target, f"{run_time}_{i}" if run_time is not None else None, inner=True)
        if any(step.group.kind.on_host for step in plan.steps):
            return None
        regions.append(RegionPlan(program, captured, plan))
    values = [
        *op.operands,
        *op.results,
        *(v for region in regions for v in (*region.captured, *region.program.outputs)),
    ]
    if any(0 in sizes(v) for v in values):
        return None
    step = _constant_integer(op.operand(2)) if op.name == "control.for" else 0
    return ControlForm(op, regions, step, run_time is not None)


def _has_known_steps(op: Operation) -> bool:
    """Whether the direction of a counted loop is known; a step of zero is an error that the interpreter raises."""
    return op.name != "control.for" or bool(_constant_integer(op.operand(2)))


def _constant_integer(value: Value) -> int:
    data = splat_constant(value)
    return int(decode_scalar(data, value.dtype)) if data is not None else 0  # type: ignore[arg-type]


__all__ = ["plan_program"]
