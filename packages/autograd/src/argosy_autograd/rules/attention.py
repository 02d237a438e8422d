"""Derivatives of attention over a paged cache: those of the plain formula over each token's own context.

It serves programs that have been made incremental; training differentiates `scaled_dot_product_attention`.
"""

from __future__ import annotations

from typing import Any

from argosy_autograd.algebra import Value
from argosy_autograd.forward import jvp_values
from argosy_autograd.regions import emitter
from argosy_autograd.registry import jvp, vjp
from argosy_autograd.reverse import vjp_values
from argosy_phi_ops import prim
from argosy_phi_ops.primitives.attention import split_others


@vjp("paged_attention")
def _(g: Value, result: Value, *operands: Value, **attributes: Any) -> tuple[Value | None, ...]:
    leaves = [prim.copy(x) for x in operands]  # an operand may be computed of another one
    found = vjp_values([_gathered_attention(*leaves, **attributes)], [g], leaves, emitter())
    return tuple(found)


@jvp("paged_attention")
def _(result: Value, *both: Value | None, **attributes: Any) -> Value | None:
    operands, tangents = both[: len(both) // 2], both[len(both) // 2 :]
    leaves = [prim.copy(x) for x in operands]
    return jvp_values([_gathered_attention(*leaves, **attributes)], leaves, tangents, emitter())[0]


def _gathered_attention(
    query: Value, key_cache: Value, value_cache: Value, positions: Value, rows: Value, block_tables: Value,
    *others: Value, scale: float, window: int, softcap: float, width: int,
) -> Value:  # fmt: skip
    """Attention [t, h, g, v] over contexts gathered for each token."""
    from argosy_phi_ops.ops.nn.activation import softmax
    from argosy_phi_ops.ops.nn.attention import cap_scores, softmax_with_sinks

    tables = prim.gather(block_tables, prim.reshape(rows, shape=(rows.shape[0], 1)), axes=(0,))
    sinks, scales = split_others(others)
    if scales:
        raise NotImplementedError("prim.paged_attention: attention over caches of int8 has no derivative")
    keys, values = (_context(cache, tables) for cache in (key_cache, value_cache))
    if width:
        values = prim.slice(values, start=(0,) * 4, limit=(*values.shape[:3], width), stride=(1,) * 4)
    scores = prim.dot_general(query, keys, lhs_contract=(3,), rhs_contract=(3,), lhs_batch=(0, 1), rhs_batch=(0, 2))
    scores = cap_scores(prim.mul(scores, scale), softcap)
    places = prim.iota(shape=scores.shape, axis=3, dtype="int64")
    last = prim.broadcast(positions, shape=scores.shape, axes=(0,))
    seen = prim.le(places, last)
    if window:
        seen = prim.logical_and(seen, prim.gt(places, prim.sub(last, window)))
    scores = prim.select(seen, scores, float("-inf"))
    weights = softmax_with_sinks(scores, sinks[0], (1, 2)) if sinks else softmax(scores)
    made: Value = prim.dot_general(
        weights, values, lhs_contract=(3,), rhs_contract=(1,), lhs_batch=(0, 1), rhs_batch=(0, 2)
    )
    return made


def _context(cache: Value, tables: Value) -> Value:
    """What the tables name [t, places, h, d]."""
    tokens, blocks = tables.shape
    taken = prim.gather(cache, prim.reshape(tables, shape=(tokens, blocks, 1)), axes=(0,))
    made: Value = prim.reshape(taken, shape=(tokens, blocks * cache.shape[1], *cache.shape[2:]))
    return made
