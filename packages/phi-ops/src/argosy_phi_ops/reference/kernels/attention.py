"""`paged_attention`: one sequence after the other, its context gathered."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_phi_ops.reference.kernels.registry import Array, ieee, kernel, round_narrow, widen


@kernel("paged_attention")
@ieee
def paged_attention(
    query: Array, key_cache: Array, value_cache: Array, positions: Array, rows: Array, block_tables: Array,
    *others: Array, scale: float, window: int = 0, softcap: float = 0.0, width: int = 0,
) -> Array:  # fmt: skip
    """[t, h, g, v]: see the primitive."""
    sinks, scales = others[: len(others) % 2], others[len(others) % 2 :]
    result = np.zeros((*query.shape[:3], width or value_cache.shape[3]), widen(query[:0]).dtype)
    factors = [x.astype(result.dtype) for x in scales] if scales else [None, None]
    tables = block_tables.clip(0, key_cache.shape[0] - 1)
    owners = rows.clip(0, block_tables.shape[0] - 1)
    for row in np.unique(owners):
        chosen = owners == row
        last = positions[chosen]
        keys, values = (
            _context(cache, factor, tables[row], int(last.max()) + 1)
            for cache, factor in zip((key_cache, value_cache), factors, strict=True)
        )
        scores = np.einsum("thgd,chd->thgc", widen(query[chosen]), keys) * scale
        if softcap:
            scores = np.tanh(scores / softcap) * softcap
        places = np.arange(len(keys))
        seen = places <= last[:, None]
        if window:
            seen &= places > last[:, None] - window
        scores = np.where(seen[:, None, None], scores, -np.inf)
        result[chosen] = np.einsum("thgc,chv->thgv", _weights(scores, sinks), values[..., : width or None])
    return round_narrow(result, query.dtype)


def _context(cache: Array, scales: Array | None, table: Array, length: int) -> Array:
    """The first `length` places [c, h, d], times their scales."""
    places = cache[table].reshape(len(table) * cache.shape[1], *cache.shape[2:])[: max(length, 0)]
    return widen(places) if scales is None else places * _context(scales[..., None], None, table, length)


def _weights(scores: Array, sinks: Sequence[Array]) -> Any:
    """Softmax over the last axis beside the sinks."""
    top = scores.max(axis=-1, initial=-np.inf, keepdims=True)
    if sinks:
        logits = widen(sinks[0])[None, :, :, None]
        top = np.maximum(top, logits)
    powers = np.exp(scores - top)
    return powers / (powers.sum(axis=-1, keepdims=True) + (np.exp(logits - top) if sinks else 0))
