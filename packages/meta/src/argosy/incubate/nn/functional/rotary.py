"""Rotary position embedding (Su et al., 2021)."""

# mypy: disable-error-code="operator,no-any-return,index"
from __future__ import annotations

from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy.argument_checks import validate_call
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = ["fused_rotary_position_embedding"]


@validate_call
def fused_rotary_position_embedding(
    q: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    sin: Tensor | None = None,
    cos: Tensor | None = None,
    position_ids: Tensor | None = None,
    use_neox_rotary_style: bool = True,
    time_major: bool = False,
    rotary_emb_base: float = 10000.0,
) -> tuple[Any, Any, Any]:
    """``q``, ``k`` and ``v`` [batch, length, heads, width] turned by angles that grow with their places; None stays.

    sin, cos: [1, length, 1, width] or [length, width], by default of ``place / base ** (2 i / width)``;
    position_ids: [batch, length], the rows of these to take. With ``use_neox_rotary_style`` neighbours (2 i, 2 i + 1)
    are pairs, else the halves of the width are. time_major: the operands are [length, batch, heads, width].
    """
    if (sin is None) != (cos is None):
        raise ValueError("fused_rotary_position_embedding(): arguments 'sin' and 'cos' should be given together")
    if q.shape[-1] % 2:
        raise ValueError(f"fused_rotary_position_embedding(): the width of 'q' should be even, got {list(q.shape)}")
    if sin is None and (position_ids is not None or not use_neox_rotary_style):
        raise ValueError(
            "fused_rotary_position_embedding(): arguments 'sin' and 'cos' should be given with position_ids, "
            "and with use_neox_rotary_style=False"
        )
    length, width = q.shape[0 if time_major else 1], q.shape[-1]
    if sin is None:
        sin, cos = (_angles(length, width, rotary_emb_base, name) for name in ("sin", "cos"))
    placed = [_place(op("reshape")(x, [-1, width]), length, position_ids, time_major) for x in (sin, cos)]
    turn = _pairs if use_neox_rotary_style else _halves
    return tuple(  # type: ignore[return-value]
        None if x is None else (x * placed[1].cast(x.dtype.name) + turn(x) * placed[0].cast(x.dtype.name))
        for x in (q, k, v)
    )


def _angles(length: Any, width: int, base: float, function: str) -> Tensor:
    """A function of the angles [length, width], each beside its copy."""
    rates = base ** -(np.arange(0, width, 2) / width)
    if isinstance(length, int):
        return Tensor(getattr(np, function)(np.outer(np.arange(length), rates.repeat(2))).astype(np.float32))
    places = op("arange")(0, length, 1, "float64")  # a size that is open while capturing
    return op(function)(op("outer")(places, Tensor(rates.repeat(2)))).cast("float32")


def _place(table: Any, length: Any, position_ids: Tensor | None, time_major: bool) -> Any:
    """The rows of ``table`` for the places of the operands, ready to broadcast."""
    if position_ids is None:
        rows = table[:length]
        width = table.shape[-1]
        return rows.reshape([length, 1, 1, width] if time_major else [1, length, 1, width])
    rows = op("gather")(table, position_ids.flatten()).reshape([*position_ids.shape, 1, table.shape[-1]])
    return rows.transpose([1, 0, 2, 3]) if time_major else rows


def _pairs(x: Any) -> Any:
    """(-x[1], x[0], -x[3], x[2], ...) along the last axis."""
    two = x.reshape([*x.shape[:-1], x.shape[-1] // 2, 2])
    return op("stack")([-two[..., 1], two[..., 0]], -1).reshape(x.shape)


def _halves(x: Any) -> Any:
    """The second half with its sign changed, then the first."""
    first, second = op("chunk")(x, 2, -1)
    return op("concat")([-second, first], -1)
