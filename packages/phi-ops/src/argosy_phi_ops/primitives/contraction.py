"""Contractions: sums of products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_phi_ops.declare.axes import Axis, AxisNotation
from argosy_phi_ops.errors import DTypeError
from argosy_phi_ops.primitives.checks import NUMERIC, check_axes, check_dtype, check_same_dtype, require
from argosy_phi_ops.primitives.cost import Cost, cost_of_moving, elements
from argosy_phi_ops.primitives.declaration import Shape, primitive
from argosy_pir.types import TensorType


@primitive("contraction")
def dot_general(
    lhs: TensorType,
    rhs: TensorType,
    *,
    lhs_contract: Shape,
    rhs_contract: Shape,
    lhs_batch: Shape = (),
    rhs_batch: Shape = (),
    accumulate: str = "",
) -> TensorType:
    """Sum of products over the paired contracted axes, for each index of the paired batch axes.

    The result has the batch axes (in the order given), the free axes of ``lhs``, then those of ``rhs``. ``accumulate``
    is the dtype of sum and result; empty stands for the operands' dtype (narrow floats still sum in float32 and round
    once).
    """
    check_same_dtype("dot_general", (lhs, rhs))
    check_dtype("dot_general", lhs, NUMERIC, "lhs")
    check_axes("dot_general", (*lhs_batch, *lhs_contract), len(lhs.shape))
    check_axes("dot_general", (*rhs_batch, *rhs_contract), len(rhs.shape))
    for what, left, right in (("batch", lhs_batch, rhs_batch), ("contracted", lhs_contract, rhs_contract)):
        sizes = [lhs.shape[i] for i in left], [rhs.shape[i] for i in right]
        require(
            sizes[0] == sizes[1],
            f"prim.dot_general: {what} axes {tuple(left)} of lhs {lhs} and {tuple(right)} of rhs {rhs} differ in size",
        )
    batch = [lhs.shape[i] for i in lhs_batch]
    rows = [n for i, n in enumerate(lhs.shape) if i not in lhs_batch and i not in lhs_contract]
    columns = [n for i, n in enumerate(rhs.shape) if i not in rhs_batch and i not in rhs_contract]
    return TensorType((*batch, *rows, *columns), accumulate or lhs.dtype)


@dot_general.axes
def _(lhs: TensorType, rhs: TensorType, **attributes: Any) -> AxisNotation:
    left = [(f"m{i}",) for i in range(len(lhs.shape))]
    right = [(f"n{i}",) for i in range(len(rhs.shape))]
    lhs_batch, rhs_batch = attributes.get("lhs_batch", ()), attributes.get("rhs_batch", ())
    contracted = attributes["lhs_contract"]
    for name, ls, rs in (("b", lhs_batch, rhs_batch), ("k", contracted, attributes["rhs_contract"])):
        for number, (i, j) in enumerate(zip(ls, rs, strict=True)):
            left[i] = right[j] = (f"{name}{number}",)
    rows = [t for i, t in enumerate(left) if i not in lhs_batch and i not in contracted]
    columns = [t for t in right if t[0][0] == "n"]
    return AxisNotation([left, right], [[left[i] for i in lhs_batch] + rows + columns], reduction="sum")


@dot_general.costs
def _(made: Sequence[TensorType], lhs: TensorType, rhs: TensorType, *, lhs_contract: Shape, **_: Any) -> Cost:
    depth = elements(lhs.shape[i] for i in lhs_contract)
    return cost_of_moving((lhs, rhs), made, 2 * depth * elements(made[0].shape))


@primitive("contraction")
def conv(
    x: TensorType,
    w: TensorType,
    *,
    strides: Shape,
    padding: Shape,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    groups: int = 1,
) -> TensorType:
    """Cross-correlation of ``x`` [N, C, *S] with ``w`` [O, C / groups, *K] giving [N, O, *S'].

    ``padding`` holds a pair (low, high) for each spatial axis; ``lhs_dilation`` spreads ``x`` (a transposed
    convolution), ``rhs_dilation`` spreads ``w``.
    """
    check_same_dtype("conv", (x, w))
    rank = len(x.shape) - 2
    require(rank >= 1 and len(w.shape) == rank + 2, f"prim.conv: x {x} and w {w} need equal ranks of at least 3")
    require(
        all(len(v) == rank for v in (strides, padding, lhs_dilation, rhs_dilation)),
        f"prim.conv: strides, padding and dilations need one entry for each of the {rank} spatial axes",
    )
    expected = w.shape[1] * groups
    require(
        x.shape[1] == expected, f"prim.conv: x has {x.shape[1]} channels, weight expects {expected} (groups={groups})"
    )
    require(w.shape[0] % groups == 0, f"prim.conv: {w.shape[0]} output channels are not divisible by {groups} groups")
    require(x.dtype in NUMERIC, f"prim.conv: dtype {x.dtype} is not numeric", DTypeError)
    spatial = [
        _window_count(n, k, s, p, a, b)
        for n, k, s, p, a, b in zip(x.shape[2:], w.shape[2:], strides, padding, lhs_dilation, rhs_dilation, strict=True)
    ]
    return TensorType((x.shape[0], w.shape[0], *spatial), x.dtype)


@conv.costs
def _(made: Sequence[TensorType], x: TensorType, w: TensorType, **_: Any) -> Cost:
    return cost_of_moving((x, w), made, 2 * elements(w.shape[1:]) * elements(made[0].shape))


def _window_count(size: Any, kernel: Any, stride: int, padding: Any, spread: int, dilation: int) -> Any:
    padded = (size - 1) * spread + 1 + padding[0] + padding[1]
    reach = (kernel - 1) * dilation + 1
    if isinstance(padded, int) and isinstance(reach, int):
        require(padded >= reach, f"prim.conv: a window of {reach} does not fit a padded axis of {padded}")
    return (padded - reach) // stride + 1


@conv.axes
def _(x: TensorType, w: TensorType, *, groups: int = 1, **_: Any) -> AxisNotation:
    spatial = [(f"s{i}",) for i in range(len(x.shape) - 2)]
    window = [(f"k{i}",) for i in range(len(w.shape) - 2)]
    mixing = frozenset(axis[0] for axis in spatial + window)  # a window's part would see other elements of x
    if groups == 1:
        terms = [[("n",), ("c",), *spatial], [("o",), ("c",), *window]]
        return AxisNotation(terms, [[("n",), ("o",), *spatial]], mixing, "sum")
    grouped: list[list[Axis]] = [[("n",), ("g", "c"), *spatial], [("g", "o"), ("c",), *window]]
    return AxisNotation(grouped, [[("n",), ("g", "o"), *spatial]], mixing, "sum")
