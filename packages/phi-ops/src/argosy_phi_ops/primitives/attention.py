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
_TERMS = ("t h g d", "n b h d", "n b h v", "t", "t", "r m")


@primitive("attention")
def paged_attention(
    query: TensorType,
    key_cache: TensorType,
    value_cache: TensorType,
    positions: TensorType,
    rows: TensorType,
    block_tables: TensorType,
    *others: TensorType,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
    width: int = 0,
) -> TensorType:
    """Attention of ``query`` [t, h, g, d] (g heads share each of h cached ones) to what is cached up to its position.

    Token i is at ``positions[i]`` of the sequence whose blocks ``block_tables[rows[i]]`` [m] numbers: the key at place
    p is ``key_cache[table[p // b], p % b]`` of [n, b, h, d], and so is its value, the first ``width`` (0: all)
    channels of [n, b, h, v], so that both may be one cache; the result is [t, h, g, width or v]. Scores are multiplied
    with ``scale`` and bounded by ``softcap``; of the visible places the last ``window`` count (0: all). ``others`` are
    logits without a value [h, g] (sinks), and for caches of int8 what keys and values are multiplied with, float32
    [n, b, h] each. Sums are in float32 for narrower dtypes. Numbers of blocks and rows beyond their axis are clamped to
    it; a token that sees nothing gives NaN.
    """
    check_dtype("paged_attention", query, _FLOATS, "query")
    require(len(others) <= 3, f"prim.paged_attention: 3 other operands at most, got {len(others)}")
    sinks, scales = split_others(others)
    check_same_dtype("paged_attention", (query, *sinks, *(() if scales else (key_cache, value_cache))))
    for x, dtype in zip((key_cache, value_cache, *scales), ("int8",) * 2 + ("float32",) * 2, strict=False):
        if scales:
            check_dtype("paged_attention", x, (dtype,), "a cache with scales, or its scales,")
    for name, x in (("positions", positions), ("rows", rows), ("block_tables", block_tables)):
        check_dtype("paged_attention", x, ("int64",), name)
    require(window >= 0, f"prim.paged_attention: window {window}, expected 0 or more")
    _check_shapes((query, key_cache, value_cache, positions, rows, block_tables, *others))
    stored = value_cache.shape[3]
    require(
        isinstance(width, int) and width >= 0 and (width <= stored if isinstance(stored, int) else not width),
        f"prim.paged_attention: width {width}, values have {stored}",
    )
    return TensorType((*query.shape[:3], width or stored), query.dtype)


def split_others(others: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Sinks (one or none), and scales of keys and values (or none), among the further operands."""
    count = len(others) % 2
    return others[:count], others[count:]


def _terms(operands: Sequence[TensorType]) -> list[str]:
    sinks, scales = split_others(operands[len(_TERMS) :])
    return [*_TERMS, *["h g"] * len(sinks), *["n b h"] * len(scales)]


def _check_shapes(operands: Sequence[TensorType]) -> None:
    sizes: dict[str, Any] = {}
    for x, term in zip(operands, _terms(operands), strict=True):
        axes = term.split()
        fits = len(x.shape) == len(axes) and all(
            sizes.setdefault(a, n) == n for a, n in zip(axes, x.shape, strict=True)
        )
        require(fits, f"prim.paged_attention: {x} does not fit [{', '.join(axes)}] of {', '.join(map(str, operands))}")


@paged_attention.axes
def _(*operands: TensorType, width: int = 0, **_: object) -> AxisNotation:
    terms = [[(axis,) for axis in term.split()] for term in _terms(operands)]
    made = "w" if width and width != operands[2].shape[3] else "v"
    return AxisNotation(terms, [[(axis,) for axis in "thg" + made]], frozenset("nbrmd" if made == "v" else "nbrmdvw"))


@paged_attention.costs
def _(made: Sequence[TensorType], query: TensorType, *others: TensorType, **_: object) -> Cost:
    keys, _values, _positions, _rows, tables, *_others = others
    item, width = ITEM_SIZES[query.dtype], keys.shape[3] + made[0].shape[3]
    cached = elements((*tables.shape, *keys.shape[1:3], width)) * ITEM_SIZES[keys.dtype]
    work = 2 * elements((*query.shape[:3], tables.shape[1], keys.shape[1], width))
    return Cost(cached + elements(query.shape) * item, elements(made[0].shape) * item, work)
