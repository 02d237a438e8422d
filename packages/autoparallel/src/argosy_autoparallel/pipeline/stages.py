"""The stage of each operation of a program, and the piece of a stage that it belongs to.

The attribute ``stage`` says it, which capture gives to operators and derivatives hand on; of a model that was laid out
on one mesh for each stage, the meshes say it. What neither does lies where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.schedule.lists import ScheduleError
from argosy_autoparallel.tensor_layout import WHOLE, parse_layout
from argosy_autoparallel.value_layouts import captured_values
from argosy_pir import Operation, Program, Value
from argosy_pir.values import OpResult

__all__ = ["BACKWARD", "FORWARD", "INPUT", "WEIGHT", "assign_stages", "piece_name", "tag_gradient_hooks"]

FORWARD, BACKWARD, INPUT, WEIGHT = "forward", "backward", "backward_input", "backward_weight"
_PHASES = {"input-gradient": INPUT, "weight-gradient": WEIGHT}


def piece_name(op: Operation, split: bool) -> str:
    """The piece of its stage that an operation belongs to; with ``split`` gradients of weights are one of their own."""
    phase = op.annotations.get("phase")
    if phase is None:
        return FORWARD
    return _PHASES[phase] if split else BACKWARD


def assign_stages(
    program: Program, stages: int, of_states: Mapping[Value, int], of_meshes: Mapping[ProcessMesh, int]
) -> dict[Operation, int]:
    """The stage of each operation of the program's block.

    ``of_states`` are the stages of states that lie on one stage's mesh, ``of_meshes`` those of meshes; where there are
    any, they decide, and annotations do not. Raises :class:`ScheduleError` naming the line of an operation that reads
    what a later stage computes.
    """
    found: dict[Operation, int] = {}
    block = program.block
    for op in block:
        if op is not block.last:
            stage = _stage(op, found, of_states, of_meshes)
            if stage is not None:
                found[op] = stage
    for op in reversed(list(block)):
        if op not in found and op is not block.last:
            users = [found[user] for result in op.results for user in _users(result, program) if user in found]
            found[op] = min(users, default=stages - 1 if "phase" in op.annotations else 0)
    _check_order(found, stages)
    return found


def _stage(
    op: Operation, found: Mapping[Operation, int], of_states: Mapping[Value, int], of_meshes: Mapping[ProcessMesh, int]
) -> int | None:
    """What the operation's annotation, its mesh or its operands say; None where they say nothing."""
    known = None if of_meshes else op.annotations.get("stage")
    if known is not None:
        return int(known)
    target = op.attributes.get("target") if op.name == "prim.relayout" else None
    if target and target != WHOLE and parse_layout(target).mesh in of_meshes:
        return of_meshes[parse_layout(target).mesh]
    operands = op.operands[1:] if op.name == "prim.relayout" and len(op.operands) > 1 else op.operands
    stages = [s for v in (*operands, *captured_values(op)) if (s := _of_value(v, found, of_states)) is not None]
    if not stages:
        return None
    return min(stages) if "phase" in op.annotations else max(stages)


def _of_value(value: Value, found: Mapping[Operation, int], of_states: Mapping[Value, int]) -> int | None:
    return found.get(value.op) if isinstance(value, OpResult) else of_states.get(value)


def _users(value: Value, program: Program) -> list[Operation]:
    """The operations of the program's block that read ``value``, by themselves or within their regions."""
    made = []
    for user, _ in value.uses:
        while user.parent is not program.block:
            outer = user.parent_op
            assert outer is not None
            user = outer
        made.append(user)
    return made


def tag_gradient_hooks(program: Program, gradients: Sequence[int]) -> None:
    """Tag what hooks of gradients compute as parts of the backward pass, and of the stage of the gradient: what reads a
    gradient and goes nowhere but into gradients, of parameters (the outputs ``gradients``) or others."""
    finals = {program.outputs[position] for position in gradients}
    others = {v for position, v in enumerate(program.outputs) if position not in set(gradients)}
    others |= set(program.state_updates)
    hooks: set[Operation] = set()
    for op in reversed(list(program.block)):
        uses = {user for result in op.results for user in _users(result, program)} - {program.block.last}
        if "phase" in op.annotations or any(result in others for result in op.results):
            continue
        if (uses or any(r in finals for r in op.results)) and all(u in hooks or "phase" in u.annotations for u in uses):
            hooks.add(op)
    for op in (op for op in program.block if op in hooks):
        sources = [v.op for v in op.operands if isinstance(v, OpResult) and "phase" in v.op.annotations]
        if sources:
            leads_on = any(user not in hooks for r in op.results for user in _users(r, program)) and not any(
                result in finals for result in op.results
            )
            op.annotate(phase="input-gradient" if leads_on else "weight-gradient")
            if stage_marks := [s.annotations["stage"] for s in sources if "stage" in s.annotations]:
                op.annotate(stage=min(stage_marks))


def _check_order(found: Mapping[Operation, int], stages: int) -> None:
    for op, stage in found.items():
        if not 0 <= stage < stages:
            raise ScheduleError(f"'{op.name}'{op.location.suffix} is of stage {stage}; there are {stages}")
        if "phase" in op.annotations:
            continue
        for value in (*op.operands, *captured_values(op)):
            if not isinstance(value, OpResult) or value.op not in found:
                continue
            if "phase" in value.op.annotations:
                raise ScheduleError(
                    f"'{op.name}'{op.location.suffix} reads a gradient before the step ends: pipelines run forward "
                    "and backward passes of many microbatches in turn, so look at gradients in the optimizer"
                )
            if found[value.op] > stage:
                raise ScheduleError(
                    f"'{op.name}'{op.location.suffix} is of stage {stage}, but reads what stage "
                    f"{found[value.op]} computes"
                    f"{value.op.location.suffix}: stages go forward only"
                )
