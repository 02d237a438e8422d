"""Collectives that cut or join along some axis as those along the first one, whose parts lie one after the other in
memory: kernels of the program bring the others there, so that a communicator can take buffers of a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy_cinn.shapes import sizes
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.values import Value

__all__ = ["cut_along_first_axis"]


def cut_along_first_axis(program: Program) -> None:
    """Rewrite gathers, scattered reductions and exchanges along other axes, those that are started, too."""
    found = [(op, axes) for op in program.walk() if (axes := _axes(op)) is not None and any(axes)]
    for op, (cut, joined) in found:
        _rewrite(op, cut, joined)


def _axes(op: Operation) -> tuple[int | None, int | None] | None:
    """The axes that are cut and joined; None where there is none of both."""
    a = op.attributes
    name = a["collective"] if op.name == "prim.start" else op.name.removeprefix("prim.")
    if name == "all_gather":
        return None, a["axis"]
    if name == "reduce_scatter":
        return a["axis"], None
    if name == "all_to_all":
        return a["axis" if op.name == "prim.start" else "split_axis"], a["concat_axis"]
    return None


def _rewrite(op: Operation, cut: int | None, joined: int | None) -> None:
    size, last = op.attributes["size"], _wait_of(op)
    result = last.results[0]
    with emit_at(Builder.before(op)):
        x = op.operand(0)
        parts = prim.reshape(x, shape=(1, *sizes(x))) if cut is None else _cut(x, cut, size)
        made = getattr(prim, op.kind)(parts, op.operand(1), **_along_first(op.attributes))
    if last is not op:
        op.replace_with([made[0], *made[1:]])
        with emit_at(Builder.before(last)):
            made = prim.wait(made[0], *last.operands[1:])
            whole = _join(made[0], joined, sizes(result))
        last.replace_with([whole, made[1]])
        return
    with emit_at(Builder.before(op)):
        whole = _join(made[0], joined, sizes(result))
    op.replace_with([whole, *made[1:]])


def _wait_of(op: Operation) -> Operation:
    """Where a started collective ends; the operation itself for one that is not."""
    return next(iter(op.results[0].users)) if op.name == "prim.start" else op


def _along_first(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {k: 0 if k in ("axis", "split_axis", "concat_axis") else v for k, v in attributes.items()}


def _cut(x: Value, axis: int, size: int) -> Value:
    """The parts along an axis, one after the other."""
    shape = sizes(x)
    apart = prim.reshape(x, shape=(*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))
    order = (axis, *(i for i in range(len(shape) + 1) if i != axis))
    return prim.transpose(apart, permutation=order)  # type: ignore[no-any-return]


def _join(parts: Value, axis: int | None, shape: Sequence[Any]) -> Value:
    """Parts that lie one after the other, along an axis; a single one as it is."""
    if axis:
        count = len(sizes(parts))
        parts = prim.transpose(parts, permutation=(*range(1, axis + 1), 0, *range(axis + 1, count)))
    return prim.reshape(parts, shape=tuple(shape))  # type: ignore[no-any-return]
