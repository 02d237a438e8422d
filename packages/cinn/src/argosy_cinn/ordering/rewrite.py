"""Sorts become orders: ``cinn.order`` gives the position of every element of the result, and what is sorted is looked
up by it, fused with whatever reads it. Of a top-k, no more is looked up than is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy_cinn.dialect import ORDER
from argosy_cinn.forms.dtypes import DTYPES
from argosy_cinn.rewrites.builders import replacements
from argosy_cinn.shapes import sizes
from argosy_phi_ops import prim
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.rewrite.driver import apply_patterns
from argosy_pir.types import TensorType
from argosy_pir.values import OpResult, Value

#: Orders hold positions as int32.
_LONGEST = 1 << 31
#: Rows have to be this many times longer than what is taken of them.
_FEW = 8


@register_pass("sort-to-order")
@dataclass(frozen=True)
class SortToOrder(Pass):
    """Rewrites every ``prim.sort`` that there is code for as an order and look-ups by it."""

    def run(self, program: Program) -> bool:
        """Rewrite the program's own block; True where anything changed."""
        return apply_patterns(program.block, _PATTERNS, max_iterations=1, fold=False).has_changed


def _has_order(op: Operation) -> bool:
    length = op.operands[0].shape[op.attributes["axis"]]
    return all(x.dtype in DTYPES for x in op.operands) and (not isinstance(length, int) or length < _LONGEST)


def _sort(op: Operation) -> list[Value] | None:
    if not _has_order(op):
        return None
    a = op.attributes
    first = op.operands[0]
    if 0 in first.shape or first.shape[a["axis"]] == 1:
        return list(op.operands)
    attributes = {"axis": a["axis"], "descending": bool(a.get("descending"))}
    shape = list(first.shape)
    wanted = _leading_count(op)
    if wanted is not None:
        shape[a["axis"]] = wanted
    order = Builder.before(op).create(ORDER, op.operands[: a["keys"]], attributes, (TensorType(shape, "int32"),)).result
    results = [_gather_in_order(x, order, a["axis"]) for x in op.operands]
    return results if wanted is None else [_pad(x, y, a["axis"]) for x, y in zip(results, op.operands, strict=True)]


def _leading_count(op: Operation) -> int | None:
    """How many leading elements are read at all, where that is few enough to look for them alone."""
    axis, length = op.attributes["axis"], op.operands[0].shape[op.attributes["axis"]]
    if op.attributes["keys"] > 1 or not isinstance(length, int):
        return None
    users = [user for result in op.results for user in result.users]
    if not users or any(user.name != "prim.slice" for user in users):
        return None
    wanted = max(user.attributes["limit"][axis] for user in users)
    return wanted if isinstance(wanted, int) and 0 < wanted * _FEW <= length else None


def _pad(x: Value, whole: Value, axis: int) -> Value:
    """The leading elements as a tensor of the whole shape, whose other elements nobody reads."""
    high = [0] * len(x.shape)
    high[axis] = sizes(whole)[axis] - sizes(x)[axis]
    zeros = (0,) * len(high)
    nothing = prim.constant(0, x.dtype)
    padded: Value = prim.pad(x, nothing, low=zeros, high=tuple(high), interior=zeros)
    return padded


def _gather_in_order(x: Value, order: Value, axis: int) -> Value:
    """Elements of ``x`` along an axis, in an order; positions themselves are the order."""
    if isinstance(x, OpResult) and x.op.name == "prim.iota" and x.op.attributes["axis"] == axis:
        found: Value = prim.cast(order, dtype=x.dtype)
        return found
    rank = len(x.shape)
    last = (*(i for i in range(rank) if i != axis), axis)
    back = tuple(last.index(i) for i in range(rank))
    moved, places = prim.transpose(x, permutation=last), prim.transpose(order, permutation=last)
    places = prim.reshape(places, shape=(*places.shape, 1))
    taken = prim.gather(moved, places, axes=(rank - 1,), batch=rank - 1)
    found = prim.transpose(taken, permutation=back)
    return found


_PATTERNS = replacements("rewrite.sort", {"prim.sort": _sort})
