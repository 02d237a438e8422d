"""The lists of partitioned programs: what each rank's program communicates, in order, for the static check.

What is computed in between is left out. Bodies of loops and branches count once, as they are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy_autoparallel.schedule.instructions import Instruction, Receive, Ref, Send, Start, Wait
from argosy_autoparallel.schedule.lists import InstructionList
from argosy_autoparallel.schedule.verify import VerificationResult, verify
from argosy_phi_ops.primitives.communication import blocking_form
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value

__all__ = ["list_of", "verify_programs"]

_COLLECTIVES = {
    "all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
    "all_to_all": "all_to_all", "broadcast_rank": "broadcast", "permute": "permute",
}  # fmt: skip


def verify_programs(programs: Sequence[Program]) -> VerificationResult:
    """Check that the programs of all ranks, in their order, communicate alike. Raises
    :class:`~argosy_autoparallel.schedule.lists.ScheduleError` naming both ranks and their lines.
    """
    return verify([list_of(program) for program in programs])


def list_of(program: Program) -> InstructionList:
    """The list of a program's communication; what is no ``start`` is waited for where it stands."""
    instructions: list[Instruction] = []
    given: dict[Ref, TensorType] = {}
    started: dict[Value, Ref] = {}
    for number, op in enumerate(program.walk()):
        if op.name == "prim.start":
            form, attributes = blocking_form(op.attributes["collective"], op.attributes)
            instructions.append(_collective(form.name, attributes, op, number, given))
            started[op.results[1]] = Ref("result", (number,))
        elif op.name == "prim.start_recv":
            instructions.append(_receipt(op, started.setdefault(op.results[1], Ref("result", (number,)))))
        elif op.name == "prim.wait":
            instructions.append(Wait(started[op.operand(1)], line=_line(op)))
        elif op.dialect == "prim":
            instructions += _instructions(op, number, given)
    return InstructionList(tuple(instructions), {}, given)


def _instructions(op: Operation, number: int, given: dict[Ref, TensorType]) -> list[Instruction]:
    name, a = op.name.removeprefix("prim."), op.attributes
    line = _line(op)
    value, result = Ref("value", (number,)), Ref("result", (number,))
    if name == "recv":
        return [_receipt(op, result), Wait(result, line=line)]
    if name == "send":
        given[value] = op.operand(0).type  # type: ignore[assignment]
        return [Send(value, _member(a, a["peer"]), _tag(a), line=line)]
    if name in _COLLECTIVES:
        return [_collective(name, a, op, number, given), Wait(result, line=line)]
    return _coalesced(name, op, number, given) if name.endswith("_coalesced") else []


def _coalesced(name: str, op: Operation, number: int, given: dict[Ref, TensorType]) -> list[Instruction]:
    """Each tensor's collective, all of which are waited for at the end."""
    kind, attributes = name.removesuffix("_coalesced"), {**op.attributes, "axis": 0}
    tensors = range(len(op.operands) - 1)
    starts = [_collective(kind, attributes, op, number, given, at) for at in tensors]
    return [*starts, *(Wait(start.result, line=start.line) for start in starts)]


def _receipt(op: Operation, result: Ref) -> Receive:
    a, type = op.attributes, op.results[0].type
    assert isinstance(type, TensorType)
    return Receive(result, type, _member(a, a["peer"]), _tag(a), line=_line(op))


def _collective(
    name: str, attributes: Mapping[str, Any], op: Operation, number: int, given: dict[Ref, TensorType], at: int = 0
) -> Start:
    """The collective ``name`` of operand ``at``."""
    place = (number, at) if at else (number,)
    type, value = op.operand(at).type, Ref("value", place)
    assert isinstance(type, TensorType)
    given[value] = _wire_type(name, type, attributes)
    group = () if name == "permute" else tuple(attributes["group"])
    options = _options(name, attributes)
    return Start(_COLLECTIVES[name], value, Ref("result", place), group, options, line=_line(op))


def _line(op: Operation) -> str:
    return "" if op.location.is_unknown else str(op.location)


def _member(attributes: Mapping[str, Any], peer: int) -> int:
    group = tuple(attributes.get("group", ()))
    return int(group[peer] if group else peer)


def _tag(attributes: Mapping[str, Any]) -> int:
    return int(attributes.get("tag", 0))


def _wire_type(name: str, type: TensorType, attributes: Mapping[str, Any]) -> TensorType:
    """The type with the axis that is joined or split in front, as it travels."""
    axis = {"all_to_all": "split_axis"}.get(name, "axis")
    if axis not in attributes or not type.shape:
        return type
    at = int(attributes[axis])
    return type.with_shape((type.shape[at], *type.shape[:at], *type.shape[at + 1 :]))


def _options(name: str, attributes: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    names = {
        "kind": "op",
        "root": "root",
        "pairs": "pairs",
        "axis": "axis",
        "split_axis": "split",
        "concat_axis": "join",
    }
    return tuple(sorted((new, attributes[old]) for old, new in names.items() if old in attributes))
