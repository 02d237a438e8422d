"""Writing through a view: the tensor with other elements where the view shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.context import context
from argosy_phi_ops.declare.operator import Sample, get_operator, operator
from argosy_phi_ops.errors import OperatorError
from argosy_pir.core import Operation
from argosy_tensorcore.tensor import Tensor


@operator()
def overwritten_view(x: Tensor, value: Tensor, view: str, options: Sequence[Any], result: int = 0) -> Tensor:
    """`x` after `value`, cast to its dtype, is written to result number `result` of the operator `view` of it.

    `options` are the attributes of the view as (name, value). What the view does step by step is undone in the opposite
    order, so that this is right for every operator that only selects and arranges elements. Raises
    ``NotImplementedError`` for others.
    """
    builder = context().builder
    if builder is None:
        raise OperatorError("overwritten_view was expanded, but no builder is active; use building(builder)")
    expansion = get_operator(view).expand([x.type], dict(options))
    whole: Any = x
    shown = expansion.inline([whole], builder.block, builder._before)[result]
    update: Any = value if value.dtype == shown.dtype else prim.cast(value, dtype=shown.dtype)
    while shown is not x:
        step: Operation = shown.owner
        shown = step.operand(0)
        undo = _UNDONE.get(step.name)
        if undo is None:
            raise NotImplementedError(f"writing through {view} is not implemented: {step.name} is no selection")
        update = undo(step, shown, update)
    return update


def _transpose(step: Operation, whole: Any, update: Any) -> Any:
    return prim.transpose(update, permutation=tuple(int(i) for i in np.argsort(step.attributes["permutation"])))


def _slice(step: Operation, whole: Any, update: Any) -> Any:
    return place_values(whole, update, step.attributes["start"], step.attributes["stride"])


def place_values(x: Any, block: Any, start: Sequence[Any], stride: Sequence[int]) -> Any:
    """`x` with the elements from `start` on, `stride` apart along each axis, replaced by `block`."""
    if tuple(block.shape) == tuple(x.shape):
        return block
    if any(n == 0 for n in block.shape):
        return x
    gaps = tuple(s - 1 for s in stride)
    high = tuple(n - i - (m - 1) * s - 1 for n, m, i, s in zip(x.shape, block.shape, start, stride, strict=True))
    room: dict[str, Any] = {"low": tuple(start), "high": high, "interior": gaps}
    inside = prim.pad(prim.constant(True, "bool", block.shape), prim.constant(False, "bool"), **room)
    return prim.select(inside, prim.pad(block, prim.constant(0, x.dtype), **room), x)


_UNDONE: dict[str, Callable[[Operation, Any, Any], Any]] = {
    "prim.reshape": lambda step, whole, update: prim.reshape(update, shape=whole.shape),
    "prim.transpose": _transpose,
    "prim.reverse": lambda step, whole, update: prim.reverse(update, axes=step.attributes["axes"]),
    "prim.slice": _slice,
    "prim.gather": lambda step, whole, update: prim.scatter(
        whole, step.operand(1), update, axes=step.attributes["axes"], batch=step.attributes["batch"], kind="set"
    ),
    "prim.bitcast": lambda step, whole, update: prim.bitcast(update, dtype=whole.dtype),
}
"""Primitive -> what makes the operand after a write out of its result after that: (step, operand, result)."""


@overwritten_view.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((3, 4))
    whole = ("slice", None, None, None)
    views: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
        ("getitem", (4,), {"key": (("int", 1),), "segments": (1, 0)}),
        ("getitem", (3, 2), {"key": (whole, ("slice", 3, 0, -2)), "segments": (1, 0)}),
        ("transpose", (4, 3), {"perm": (1, 0)}),
        ("flatten", (12,), {"start_axis": 0, "stop_axis": -1}),
        ("unsqueeze", (3, 1, 4), {"axis": 1}),
        ("diagonal", (3,), {"offset": 1, "axis1": 0, "axis2": 1}),
        ("view", (3, 4), {"shape_or_dtype": "int64"}),
    ]
    for view, shape, options in views:
        value = rng.standard_normal(shape)
        yield Sample(x, value.astype(np.int64) if view == "view" else value, view, tuple(options.items()))
    yield Sample(x, rng.standard_normal(4), "unbind", (("axis", 0),), result=2)
