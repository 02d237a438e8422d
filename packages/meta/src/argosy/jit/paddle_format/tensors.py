"""Paddle's operators on tensors whose operands or attributes stand otherwise than here."""

from __future__ import annotations

from typing import Any

from argosy.jit.paddle_format.operators import as_list, as_number, as_operand, rule
from argosy_phi_ops.operator import get_operator

__all__: list[str] = []


@rule("argsort")
def _argsort(x: list[Any], a: dict[str, Any]) -> Any:
    given = as_operand(x[0])
    order = get_operator("argsort")(given, a["axis"], a["descending"], a["stable"])
    return [get_operator("take_along_axis")(given, order, a["axis"]), order]


@rule("topk")
def _topk(x: list[Any], a: dict[str, Any]) -> Any:
    return list(get_operator("topk")(as_operand(x[0]), int(as_list(x[1])[0]), a["axis"], a["largest"], a["sorted"]))


@rule("arange")
def _arange(x: list[Any], a: dict[str, Any]) -> Any:
    start, end, step = (as_list(n)[0] for n in x)
    return get_operator("arange")(start, end, step, a["dtype"])


@rule("cumsum")
def _cumsum(x: list[Any], a: dict[str, Any]) -> Any:
    if a["exclusive"] or a["reverse"]:
        raise NotImplementedError("cumsum with exclusive or reverse within a Paddle program is not read yet")
    return get_operator("cumsum")(as_operand(x[0]), None if a["flatten"] else int(as_number(x[1])))
