"""Products of groups of rows, and attention over a paged cache, as sums over elements that are looked up where they are
read, for work-groups: neither matrices nor contexts are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from argosy_cinn.shapes import sizes
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.primitives.attention import split_others
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value

__all__ = ["ExpandIndexedProducts"]


@register_pass("expand-indexed-products")
@dataclass(frozen=True)
class ExpandIndexedProducts(Pass):
    """Rewrites ``prim.grouped_dot``, ``prim.grouped_outer`` and ``prim.paged_attention`` of known sizes."""

    def run(self, program: Program) -> bool:
        """Rewrite all blocks; True where anything changed."""
        found = [op for op in program.walk() if op.name in _RULES and _is_known(op)]
        for op in found:
            with emit_at(Builder.before(op)):
                op.replace_with([_RULES[op.name](op)])
        return bool(found)


def _is_known(op: Operation) -> bool:
    return all(isinstance(v.type, TensorType) and v.type.is_static for v in (*op.operands, *op.results))


def _axes(x: Value, names: str, wanted: str, extents: Mapping[str, int]) -> Value:
    """A tensor whose axes have ``names`` (a letter each) with those of ``wanted``, in that order; it is broadcast along
    others."""
    order = [names.index(name) for name in wanted if name in names]
    turned = prim.transpose(x, permutation=tuple(order))
    places = tuple(i for i, name in enumerate(wanted) if name in names)
    return prim.broadcast(turned, shape=tuple(extents[name] for name in wanted), axes=places)  # type: ignore[no-any-return]


def _wide(x: Value) -> Value:
    return x if x.dtype in ("float32", "float64") else prim.cast(x, dtype="float32")


def _take(x: Value, numbers: Value) -> Value:
    """Parts of ``x`` along its first axis."""
    return prim.gather(x, prim.reshape(numbers, shape=(*sizes(numbers), 1)), axes=(0,))  # type: ignore[no-any-return]


def _groups(starts: Value, rows: int) -> Value:
    """The group of each row; rows of none have -1."""
    extents = {"n": rows, "s": sizes(starts)[0]}
    row = prim.iota(shape=(rows, extents["s"]), axis=0, dtype="int64")
    begun = prim.cast(prim.ge(row, _axes(starts, "s", "ns", extents)), dtype="int64")
    group = prim.sub(prim.reduce_sum(begun, axes=(1,)), 1)
    return prim.select(prim.lt(group, extents["s"] - 1), group, -1)  # type: ignore[no-any-return]


def _grouped_dot(op: Operation) -> Value:
    lhs, rhs, starts = op.operands
    rows, columns = sizes(op.result)
    extents = {"n": rows, "k": sizes(lhs)[1], "m": columns}
    group = _groups(starts, rows)
    matrices = _axes(_take(rhs, group), "nmk" if op.attributes["transposed"] else "nkm", "nkm", extents)
    terms = prim.mul(_wide(_axes(lhs, "nk", "nkm", extents)), _wide(matrices))
    inside = prim.ge(_axes(group, "n", "nm", extents), 0)
    sums = prim.select(inside, prim.reduce_sum(terms, axes=(1,)), 0.0)
    return prim.cast(sums, dtype=op.result.dtype)  # type: ignore[no-any-return]


def _grouped_outer(op: Operation) -> Value:
    lhs, rhs, starts = op.operands
    (groups, depth, columns), rows = sizes(op.result), sizes(lhs)[0]
    extents = {"e": groups, "n": rows, "k": depth, "m": columns}
    terms = prim.mul(_wide(_axes(lhs, "nk", "enkm", extents)), _wide(_axes(rhs, "nm", "enkm", extents)))
    number = prim.iota(shape=(groups, rows, depth, columns), axis=0, dtype="int64")
    own = prim.eq(_axes(_groups(starts, rows), "n", "enkm", extents), number)
    return prim.cast(prim.reduce_sum(prim.select(own, terms, 0.0), axes=(1,)), dtype=op.result.dtype)  # type: ignore[no-any-return]


def _paged_attention(op: Operation) -> Value:
    query, keys, values, positions, rows, tables = op.operands[:6]
    sinks, scales = split_others(op.operands[6:])
    a = op.attributes
    t, h, g, width = sizes(op.result)
    blocks, size = sizes(tables)[1], sizes(keys)[1]
    extents = {"t": t, "h": h, "g": g, "m": blocks, "b": size, "d": sizes(query)[3], "v": width}
    table = _take(tables, rows)  # [t, m]

    def context(cache: Value, which: int, channels: str) -> Value:
        stored = sizes(cache)
        cache = prim.slice(cache, start=(0,) * 4, limit=(*stored[:3], extents[channels]), stride=(1,) * 4)
        found = _wide(_axes(_take(cache, table), f"tmbh{channels}", f"thgmb{channels}", extents))
        if scales:
            found = prim.mul(found, _axes(_take(scales[which], table), "tmbh", f"thgmb{channels}", extents))
        return found

    products = prim.mul(_wide(_axes(query, "thgd", "thgmbd", extents)), context(keys, 0, "d"))
    scores = prim.mul(prim.reduce_sum(products, axes=(5,)), a["scale"])
    if a["softcap"]:
        scores = prim.mul(prim.tanh(prim.div(scores, a["softcap"])), a["softcap"])
    shape = (t, h, g, blocks, size)
    block, inner = (prim.iota(shape=shape, axis=axis, dtype="int64") for axis in (3, 4))
    place, last = prim.add(prim.mul(block, size), inner), _axes(positions, "t", "thgmb", extents)
    seen = prim.le(place, last)
    if a["window"]:
        seen = prim.logical_and(seen, prim.gt(place, prim.sub(last, a["window"])))
    scores = prim.select(seen, scores, float("-inf"))
    top = prim.reduce_max(scores, axes=(3, 4))
    if sinks:
        logits = _wide(_axes(sinks[0], "hg", "thg", extents))
        top = prim.maximum(top, logits)
    powers = prim.exp(prim.sub(scores, _axes(top, "thg", "thgmb", extents)))
    total = prim.reduce_sum(powers, axes=(3, 4))
    if sinks:
        total = prim.add(total, prim.exp(prim.sub(logits, top)))
    weights = _axes(prim.div(powers, _axes(total, "thg", "thgmb", extents)), "thgmb", "thgmbv", extents)
    terms = prim.mul(weights, prim.select(_axes(seen, "thgmb", "thgmbv", extents), context(values, 1, "v"), 0.0))
    return prim.cast(prim.reduce_sum(terms, axes=(3, 4)), dtype=op.result.dtype)  # type: ignore[no-any-return]


_RULES: Mapping[str, Callable[[Operation], Value]] = {
    "prim.grouped_dot": _grouped_dot, "prim.grouped_outer": _grouped_outer, "prim.paged_attention": _paged_attention,
}  # fmt: skip
