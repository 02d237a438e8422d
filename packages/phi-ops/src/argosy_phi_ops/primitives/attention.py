"""Attention over a paged cache, whose bounds of loops are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_phi_ops.declare.axes import AxisNotation
from argosy_phi_ops.primitives.checks import check_dtype, check_same_dtype, require
from argosy_phi_ops.primitives.cost import Cost, elements
from argosy_phi_ops.primitives.declaration import primitive
from argosy_pir.types import ITEM_SIZES, TensorType

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_TERMS = ("t h g d", "n b h d", "n b h v", "t", "t", "r m", "h g")


@primitive("attention")
def paged_attention(
    query: TensorType,
    key_cache: TensorType,
    value_cache: TensorType,
    positions: TensorType,
    rows: TensorType,
    block_tables: TensorType,
    *sinks: TensorType,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
) -> TensorType:
    """Attention of ``query`` [t, h, g, d] (g heads share each of h cached ones) to what is cached up to its position.

    Token i is at ``positions[i]`` of the sequence whose blocks ``block_tables[rows[i]]`` [m] numbers: the key at place
    p is ``key_cache[table[p // b], p % b]`` of [n, b, h, d], and so is its value of [n, b, h, v]; the result is [t, h,
    g, v]. Scores are multiplied with ``scale`` and bounded by ``softcap``; of the visible places the last ``window``
    count (0: all). ``sinks`` [h, g], where there are any, are logits without a value. Sums are in float32 for narrower
    dtypes. Numbers of blocks and rows beyond their axis are clamped to it; a token that sees nothing gives NaN.
    """
    check_dtype("paged_attention", query, _FLOATS, "query")
    check_same_dtype("paged_attention", (query, key_cache, value_cache, *sinks))
    for name, x in (("positions", positions), ("rows", rows), ("block_tables", block_tables)):
        check_dtype("paged_attention", x, ("int64",), name)
    require(len(sinks) <= 1, f"prim.paged_attention: one tensor of sinks, got {len(sinks)}")
    require(window >= 0, f"prim.paged_attention: window {window}, expected 0 or more")
    operands = (query, key_cache, value_cache, positions, rows, block_tables, *sinks)
    sizes: dict[str, Any] = {}
    for x, term in zip(operands, _TERMS, strict=False):
        axes = term.split()
        fits = len(x.shape) == len(axes) and all(
            sizes.setdefault(a, n) == n for a, n in zip(axes, x.shape, strict=True)
        )
        require(fits, f"prim.paged_attention: {x} does not fit [{', '.join(axes)}] of {', '.join(map(str, operands))}")
    return TensorType((*query.shape[:3], value_cache.shape[3]), query.dtype)


@paged_attention.axes
def _(*operands: TensorType, **_: object) -> AxisNotation:
    terms = [[(axis,) for axis in term.split()] for term in _TERMS[: len(operands)]]
    return AxisNotation(terms, [[(axis,) for axis in "thgv"]], frozenset("nbrmd"))


@paged_attention.costs
def _(made: Sequence[TensorType], query: TensorType, *others: TensorType, **_: object) -> Cost:
    keys, values, _positions, _rows, tables, *_sinks = others
    item, width = ITEM_SIZES[query.dtype], keys.shape[3] + values.shape[3]
    cached = elements((*tables.shape, *keys.shape[1:3], width))
    work = 2 * elements((*query.shape[:3], tables.shape[1], keys.shape[1], width))
    return Cost((cached + elements(query.shape)) * item, elements(made[0].shape) * item, work)
