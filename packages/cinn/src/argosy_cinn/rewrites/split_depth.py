"""Products of few elements and many terms, for work-groups: their depth is split, and the parts' sums are added.

A product has a group for each tile of its result. Where these are few, each part of the depth is a product of its own,
in one batch, and a sum in fixed order adds them (split-K; Osama et al., "Stream-K", 2023). Shapes alone decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from argosy_cinn.shapes import ceil_div, sizes
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.dims import evaluate_dim
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value

__all__ = ["SplitDepth"]

#: Elements of a tile of a product's result, how many of these are enough, and the fewest terms of a part.
_TILE, _GROUPS, _TERMS = (64, 16), 32, 512
#: Sums in these are not rounded in between; those of the others are float32 until the end.
_DTYPES = frozenset({"float32", "float64", "int32", "int64"})
_NARROW = frozenset({"float16", "bfloat16"})


@register_pass("split-depth")
@dataclass(frozen=True)
class SplitDepth(Pass):
    """Rewrites each ``prim.dot_general`` of known sizes that has few tiles and many terms."""

    def run(self, program: Program) -> bool:
        """Rewrite all blocks; True where anything changed."""
        known = [op for op in program.walk() if op.name == "prim.dot_general" and _is_known(op)]
        found = [(op, parts) for op in known if (parts := _parts(op, {})) > 1]
        for op, parts in found:
            with emit_at(Builder.before(op)):
                op.replace_with([_split(op, parts)])
        return bool(found)


def is_split_at(program: Program, symbols: Mapping[str, int]) -> bool:
    """Whether a product of ``program``, whose sizes were not known, is split where they are these."""
    products = [op for op in program.walk() if op.name == "prim.dot_general"]
    return any(not _is_known(op) and _parts(op, symbols) > 1 for op in products)


def _is_known(op: Operation) -> bool:
    return all(isinstance(v.type, TensorType) and v.type.is_static for v in op.operands)


def _parts(op: Operation, symbols: Mapping[str, int]) -> int:
    """Into how many parts to split the longest contracted axis; 1 for none. Zeros fill the last part where no divisor
    is near."""
    contracted = op.attributes["lhs_contract"]
    if not contracted or op.result.dtype not in _DTYPES | _NARROW:
        return 1
    lhs, rhs = ([evaluate_dim(size, symbols) for size in sizes(v)] for v in op.operands)
    depth = prod(lhs[i] for i in contracted)
    batch = prod(lhs[i] for i in op.attributes["lhs_batch"])
    rows, columns = prod(lhs) // max(1, depth * batch), prod(rhs) // max(1, depth * batch)
    tiles = batch * ceil_div(rows, _TILE[0]) * ceil_div(columns, _TILE[1])
    longest = max(lhs[i] for i in contracted)
    most = min(ceil_div(_GROUPS, max(1, tiles)), depth // _TERMS, longest)
    return next((n for n in range(most, most // 2, -1) if longest % n == 0), max(most, 1))


def _split(op: Operation, parts: int) -> Value:
    dtype, operands = op.result.dtype, []
    accumulate = "float32" if dtype in _NARROW else op.attributes.get("accumulate", "")
    attributes: dict[str, Any] = {"accumulate": accumulate}
    shape = sizes(op.operand(0))
    place = max(range(len(op.attributes["lhs_contract"])), key=lambda i: shape[op.attributes["lhs_contract"][i]])
    for side, x in zip(("lhs", "rhs"), op.operands, strict=True):
        contracted, batch = op.attributes[f"{side}_contract"], op.attributes[f"{side}_batch"]
        axis = contracted[place]
        operands.append(_split_axis(x, axis, parts))
        attributes[f"{side}_contract"] = tuple([i + (i >= axis) for i in contracted])
        attributes[f"{side}_batch"] = (axis, *[i + (i > axis) for i in batch])
    total = prim.reduce_sum(prim.dot_general(*operands, **attributes), axes=(0,))
    return prim.cast(total, dtype=dtype) if dtype in _NARROW else total  # type: ignore[no-any-return]


def _split_axis(x: Value, axis: int, parts: int) -> Value:
    shape = sizes(x)
    size = ceil_div(shape[axis], parts)
    if size * parts != shape[axis]:
        none = (0,) * len(shape)
        after = tuple(size * parts - shape[axis] if i == axis else 0 for i in range(len(shape)))
        x = prim.pad(x, prim.constant(0, x.dtype), low=none, high=after, interior=none)
    return prim.reshape(x, shape=(*shape[:axis], parts, size, *shape[axis + 1 :]))  # type: ignore[no-any-return]
