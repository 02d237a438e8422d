"""`paged_attention`: one sequence after the other, its context gathered."""

from typing import Any

import numpy as np

from argosy_phi_ops.reference.kernels.registry import Array, ieee, kernel, round_narrow, widen


@kernel("paged_attention")
@ieee
def paged_attention(
    query: Array, key_cache: Array, value_cache: Array, positions: Array, rows: Array, block_tables: Array,
    *sinks: Array, scale: float, window: int = 0, softcap: float = 0.0,
) -> Array:  # fmt: skip
    """[t, h, g, v]: see the primitive."""
    result = np.zeros((*query.shape[:3], value_cache.shape[3]), widen(query[:0]).dtype)
    tables = block_tables.clip(0, key_cache.shape[0] - 1)
    owners = rows.clip(0, block_tables.shape[0] - 1)
    for row in np.unique(owners):
        chosen = owners == row
        last = positions[chosen]
        keys, values = (_context(cache, tables[row], int(last.max()) + 1) for cache in (key_cache, value_cache))
        scores = np.einsum("thgd,chd->thgc", widen(query[chosen]), keys) * scale
        if softcap:
            scores = np.tanh(scores / softcap) * softcap
        places = np.arange(len(keys))
        seen = places <= last[:, None]
        if window:
            seen &= places > last[:, None] - window
        scores = np.where(seen[:, None, None], scores, -np.inf)
        result[chosen] = np.einsum("thgc,chv->thgv", _weights(scores, sinks), values)
    return round_narrow(result, query.dtype)


def _context(cache: Array, table: Array, length: int) -> Array:
    """The first `length` places [c, h, d]."""
    places = cache[table].reshape(len(table) * cache.shape[1], *cache.shape[2:])
    return widen(places[: max(length, 0)])


def _weights(scores: Array, sinks: tuple[Array, ...]) -> Any:
    """Softmax over the last axis beside the sinks."""
    top = scores.max(axis=-1, initial=-np.inf, keepdims=True)
    if sinks:
        logits = widen(sinks[0])[None, :, :, None]
        top = np.maximum(top, logits)
    powers = np.exp(scores - top)
    return powers / (powers.sum(axis=-1, keepdims=True) + (np.exp(logits - top) if sinks else 0))
