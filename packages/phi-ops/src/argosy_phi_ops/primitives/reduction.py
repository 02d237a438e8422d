"""Reductions: the reduced axes disappear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_phi_ops.declare.axes import AxisNotation
from argosy_phi_ops.errors import DTypeError
from argosy_phi_ops.primitives.checks import BOOL, INTEGER, NUMERIC, ORDERED, check_axes, check_dtype, require
from argosy_phi_ops.primitives.cost import Cost, cost_of_moving, elements
from argosy_phi_ops.primitives.declaration import PRIMITIVES, Primitive, Shape, primitive
from argosy_pir.types import TensorType

CUMULATIVE_KINDS = ("sum", "prod", "max", "min", "logsumexp")


def _cost(made: Sequence[TensorType], x: TensorType, **_: Any) -> Cost:
    return cost_of_moving((x,), made, elements(x.shape))


def _reduction(name: str, allowed: frozenset[str], kind: str, doc: str) -> Primitive:
    def rule(x: TensorType, *, axes: Shape) -> TensorType:
        check_dtype(name, x, allowed)
        check_axes(name, axes, len(x.shape))
        return TensorType(tuple(n for i, n in enumerate(x.shape) if i not in axes), x.dtype)

    def notation(x: TensorType, *, axes: Shape) -> AxisNotation:
        term = [(f"d{i}",) for i in range(len(x.shape))]
        return AxisNotation([term], [[t for i, t in enumerate(term) if i not in axes]], reduction=kind)

    new = Primitive(rule, "reduction", name=name)
    new.doc = doc
    new.axes(notation)
    new.costs(_cost)
    PRIMITIVES[name] = new
    return new


reduce_sum = _reduction("reduce_sum", NUMERIC, "sum", "Sum over ``axes``; 0 over none. Integers wrap.")
reduce_prod = _reduction("reduce_prod", NUMERIC, "prod", "Product over ``axes``; 1 over none.")
reduce_max = _reduction(
    "reduce_max", ORDERED, "max", "Maximum over ``axes``; NaN if any is; the least value over none."
)
reduce_min = _reduction(
    "reduce_min", ORDERED, "min", "Minimum over ``axes``; NaN if any is; the largest value over none."
)
reduce_and = _reduction("reduce_and", BOOL, "and", "Whether all hold.")
reduce_or = _reduction("reduce_or", BOOL, "or", "Whether any holds.")


def _arg(name: str, doc: str) -> Primitive:
    def rule(x: TensorType, *, axis: int, dtype: str = "int64") -> TensorType:
        check_dtype(name, x, ORDERED)
        check_axes(name, (axis,), len(x.shape))
        require(dtype in INTEGER, f"prim.{name}: dtype {dtype} is not an integer", DTypeError)
        return TensorType(x.shape[:axis] + x.shape[axis + 1 :], dtype)

    def notation(x: TensorType, *, axis: int, dtype: str = "int64") -> AxisNotation:
        term = [(f"d{i}",) for i in range(len(x.shape))]
        return AxisNotation([term], [term[:axis] + term[axis + 1 :]], frozenset({f"d{axis}"}))

    new = Primitive(rule, "reduction", name=name)
    new.doc = doc
    new.axes(notation)
    new.costs(_cost)
    PRIMITIVES[name] = new
    return new


argmax = _arg("argmax", "Index of the first maximum along ``axis``; of the first NaN if there is one.")
argmin = _arg("argmin", "Index of the first minimum along ``axis``; of the first NaN if there is one.")


@primitive("reduction")
def cumulative(x: TensorType, *, axis: int, kind: str, reverse: bool = False) -> TensorType:
    """Inclusive running ``kind`` (sum, prod, max, min, logsumexp) along ``axis``, from the end when ``reverse``."""
    require(kind in CUMULATIVE_KINDS, f"prim.cumulative: kind {kind!r}, expected one of {', '.join(CUMULATIVE_KINDS)}")
    check_dtype("cumulative", x, NUMERIC if kind in ("sum", "prod") else NUMERIC & ORDERED)
    check_axes("cumulative", (axis,), len(x.shape))
    return x


@cumulative.axes
def _(x: TensorType, *, axis: int, kind: str, reverse: bool = False) -> AxisNotation:
    term = [(f"d{i}",) for i in range(len(x.shape))]
    return AxisNotation([term], [term], frozenset({f"d{axis}"}))
