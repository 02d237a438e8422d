"""Products of weights in few bits with a scale for each group of inputs: one product that reads them once.

Written in primitives, such a product is a batch of products, one for each group, whose results are scaled and summed
(`phi.weight_only_linear`); the batch would be in memory. Here it becomes ``cinn.scaled_product(x, weight, scales)``:
``sum over groups g of scales[g, o] * (sum over k in g of x[..., k] * weight[o, k])``.
"""

from __future__ import annotations

from argosy_cinn.dialect import SCALED
from argosy_cinn.rewrites.builders import create, defined_by, emit, result_type
from argosy_cinn.shapes import sizes
from argosy_pir.core import Operation
from argosy_pir.values import Value

#: Terms of a group that are whole vectors, whatever their width.
_UNIT = 32


def scaled_product(op: Operation) -> Value | None:
    """The product that a ``prim.reduce_sum`` over groups is; None where it is another sum."""
    scaled = defined_by(op.operand(0), "prim.mul") if tuple(op.attributes["axes"]) == (0,) else None
    if scaled is None:
        return None
    for product, factor in (scaled.operands, scaled.operands[::-1]):
        dot, spread = defined_by(product, "prim.dot_general"), defined_by(factor, "prim.broadcast")
        if dot is not None and spread is not None and _fits(dot, spread) and len(product.users) == 1:
            return _product(dot, spread.operand(0), op)
    return None


def _fits(dot: Operation, spread: Operation) -> bool:
    """Whether a batch of products has one for each group, and a scale for each group and output."""
    a, last = dot.attributes, len(dot.operand(0).shape) - 2
    axes = [tuple(a[name]) for name in ("lhs_batch", "lhs_contract", "rhs_batch", "rhs_contract")]
    if axes != [(last,), (last + 1,), (1,), (2,)] or dot.operand(1).ndim != 3 or dot.result.dtype != "float32":
        return False
    out, groups, each = sizes(dot.operand(1))
    known = all(isinstance(n, int) for n in (out, groups, each)) and 0 not in sizes(dot.operand(0))
    fits = tuple(spread.attributes["axes"]) == (0, last + 1) and sizes(spread.operand(0)) == (groups, out)
    return known and fits and each % _UNIT == 0 and min(out, groups) > 0


def _product(dot: Operation, scales: Value, op: Operation) -> Value:
    x, weight = dot.operands
    out, groups, each = sizes(weight)
    outer = sizes(x)[:-2]
    rows = emit("reshape", x, shape=(*outer, groups * each))
    matrix = emit("reshape", weight, shape=(out, groups * each))
    attributes = {
        "lhs_contract": (len(outer),), "rhs_contract": (1,), "lhs_batch": (), "rhs_batch": (),
        "accumulate": "float32",
    }  # fmt: skip
    return create(SCALED, (rows, matrix, scales), attributes, result_type(op), dot.location)
