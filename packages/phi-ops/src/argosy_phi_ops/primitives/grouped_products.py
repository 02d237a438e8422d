"""Products of groups of rows, each with a matrix of its own; the groups' sizes are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_phi_ops.declare.axes import AxisNotation
from argosy_phi_ops.primitives.checks import check_dtype, check_same_dtype, format_shape, require
from argosy_phi_ops.primitives.cost import Cost, cost_of_moving, elements
from argosy_phi_ops.primitives.declaration import primitive
from argosy_pir.types import TensorType

_FLOATS = ("float16", "bfloat16", "float32", "float64")


def _check(name: str, lhs: TensorType, rhs: TensorType, starts: TensorType, rank: int) -> None:
    check_dtype(name, lhs, _FLOATS, "lhs")
    check_same_dtype(name, (lhs, rhs))
    check_dtype(name, starts, ("int64",), "starts")
    require(
        (len(lhs.shape), len(rhs.shape), len(starts.shape)) == (2, rank, 1),
        f"prim.{name}: lhs {lhs}, rhs {rhs} and starts {starts} need ranks 2, {rank} and 1",
    )


@primitive("grouped")
def grouped_dot(lhs: TensorType, rhs: TensorType, starts: TensorType, *, transposed: bool = False) -> TensorType:
    """Rows ``starts[i]`` to ``starts[i + 1]`` of ``lhs`` [n, k] times matrix ``i`` of ``rhs`` [e, k, m], giving [n, m].

    ``rhs`` is [e, m, k] where it is ``transposed``. ``starts`` [e + 1] do not descend; numbers beyond the rows are
    clamped to them, and rows of no group give zero. Narrow floats sum in float32 and round once.
    """
    _check("grouped_dot", lhs, rhs, starts, 3)
    depth, columns = (rhs.shape[2], rhs.shape[1]) if transposed else (rhs.shape[1], rhs.shape[2])
    require(lhs.shape[1] == depth, f"prim.grouped_dot: lhs {lhs} and rhs {rhs} differ in the contracted axis")
    require(
        starts.shape[0] == rhs.shape[0] + 1,
        f"prim.grouped_dot: {format_shape(starts.shape)} starts for the {rhs.shape[0]} matrices of {rhs}",
    )
    return TensorType((lhs.shape[0], columns), lhs.dtype)


@grouped_dot.axes
def _(lhs: TensorType, rhs: TensorType, starts: TensorType, *, transposed: bool = False) -> AxisNotation:
    matrices = [("e",), ("m",), ("k",)] if transposed else [("e",), ("k",), ("m",)]
    terms = [[("n",), ("k",)], matrices, [("s",)]]
    return AxisNotation(terms, [[("n",), ("m",)]], frozenset("nes"), "sum")


@primitive("grouped")
def grouped_outer(lhs: TensorType, rhs: TensorType, starts: TensorType) -> TensorType:
    """For each group ``i`` the product of rows ``starts[i]`` to ``starts[i + 1]`` of ``lhs`` [n, k], transposed, and of
    ``rhs`` [n, m]: [e, k, m] for ``starts`` [e + 1]. See :func:`grouped_dot`."""
    _check("grouped_outer", lhs, rhs, starts, 2)
    require(lhs.shape[0] == rhs.shape[0], f"prim.grouped_outer: lhs {lhs} and rhs {rhs} differ in rows")
    return TensorType((starts.shape[0] - 1, lhs.shape[1], rhs.shape[1]), lhs.dtype)


@grouped_outer.axes
def _(lhs: TensorType, rhs: TensorType, starts: TensorType) -> AxisNotation:
    return AxisNotation(
        [[("n",), ("k",)], [("n",), ("m",)], [("s",)]], [[("e",), ("k",), ("m",)]], frozenset("nes"), "sum"
    )


@grouped_dot.costs
@grouped_outer.costs
def _(made: Sequence[TensorType], lhs: TensorType, rhs: TensorType, starts: TensorType, **_: Any) -> Cost:
    width = made[0].shape[-1]
    return cost_of_moving((lhs, rhs, starts), made, 2 * elements((*lhs.shape, width)))
