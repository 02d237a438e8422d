"""Attention over a paged key-value cache: what causal attention becomes in incremental decoding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.operator import Sample, operator
from argosy_tensorcore.tensor import Tensor


@operator(promote="none")
def paged_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    positions: Tensor,
    sequences: Tensor,
    block_tables: Tensor,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Causal attention of new tokens to all earlier ones of their sequences (Kwon et al., SOSP 2023).

    ``query`` [t, heads, d], ``key`` and ``value`` [t, kv heads, d] belong to ``t`` new tokens at ``positions`` [t] of
    the sequences in rows ``sequences`` [t] of ``block_tables`` [rows, blocks], whose entries number blocks of the
    caches [blocks in all, block size, kv heads, d]. Heads are a multiple of kv heads. ``scale`` is 1/sqrt(d) by
    default. Returns the attention [t, heads, d] and both caches with the new keys and values in place.
    """
    tokens, heads, size = query.shape
    kv_heads = key.shape[1]
    if heads % kv_heads:
        raise ShapeError(f"paged_attention: {heads} query heads are not a multiple of {kv_heads} key-value heads")
    rows = prim.gather(block_tables, prim.reshape(sequences, shape=(tokens, 1)), axes=(0,))
    slots = _slots(rows, positions, key_cache.shape[1])
    key_cache, value_cache = (_insert(c, v, slots) for c, v in ((key_cache, key), (value_cache, value)))
    keys, values = (_context(c, rows) for c in (key_cache, value_cache))
    grouped = prim.reshape(query, shape=(tokens, kv_heads, heads // kv_heads, size))
    scores = prim.dot_general(grouped, keys, lhs_contract=(3,), rhs_contract=(3,), lhs_batch=(0, 1), rhs_batch=(0, 2))
    scores = scores * (scale if scale is not None else size**-0.5)
    weights = _causal_softmax(scores, positions)
    mixed = prim.dot_general(weights, values, lhs_contract=(3,), rhs_contract=(1,), lhs_batch=(0, 1), rhs_batch=(0, 2))
    return prim.reshape(mixed, shape=(tokens, heads, size)), key_cache, value_cache


def _slots(rows: Tensor, positions: Tensor, block_size: int) -> Tensor:
    """Block and place in it for each new token [t, 2]."""
    tokens = positions.shape[0]
    number = prim.reshape(positions // block_size, shape=(tokens, 1))
    block = prim.gather(rows, number, axes=(1,), batch=1)
    inside = prim.reshape(positions % block_size, shape=(tokens, 1))
    return prim.concat(prim.reshape(block, shape=(tokens, 1)), inside, axis=1)


def _insert(cache: Tensor, new: Tensor, slots: Tensor) -> Tensor:
    """A scatter straight into the cache, which a compiler can do in place."""
    return prim.scatter(cache, slots, new, axes=(0, 1), kind="set")


def _context(cache: Tensor, rows: Tensor) -> Tensor:
    """Every cached entry of each token's sequence [t, blocks * block size, kv heads, d]."""
    tokens, blocks = rows.shape
    _, block_size, *rest = cache.shape
    taken = prim.gather(cache, prim.reshape(rows, shape=(tokens, blocks, 1)), axes=(0,))
    return prim.reshape(taken, shape=(tokens, blocks * block_size, *rest))


def _causal_softmax(scores: Tensor, positions: Tensor) -> Tensor:
    past = prim.iota(shape=scores.shape, axis=3, dtype=positions.dtype)
    visible = past <= prim.broadcast(positions, shape=scores.shape, axes=(0,))
    masked = prim.select(visible, scores, prim.constant(float("-inf"), scores.dtype, scores.shape))
    top = prim.stop_gradient(prim.reduce_max(masked, axes=(3,)))
    weights = prim.exp(masked - prim.broadcast(top, shape=scores.shape, axes=(0, 1, 2)))
    return weights / prim.broadcast(prim.reduce_sum(weights, axes=(3,)), shape=scores.shape, axes=(0, 1, 2))


@paged_attention.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    new = [rng.standard_normal((3, heads, 4)).astype(np.float32) for heads in (4, 2, 2)]
    caches = [rng.standard_normal((6, 2, 2, 4)).astype(np.float32) for _ in range(2)]
    yield Sample(*new, *caches, np.array([3, 4, 0]), np.array([0, 0, 1]), np.array([[5, 1, 2], [0, 0, 0]]))
