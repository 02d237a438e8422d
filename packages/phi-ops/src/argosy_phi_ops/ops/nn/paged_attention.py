"""Attention over a paged key-value cache: what causal attention becomes in incremental decoding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.nn.attention import check_window
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
    window: int | None = None,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Causal attention of new tokens to all earlier ones of their sequences (Kwon et al., SOSP 2023).

    ``query`` [t, heads, d], ``key`` [t, kv heads, d] and ``value`` [t, kv heads, v] belong to ``t`` new tokens at
    ``positions`` [t] of the sequences in rows ``sequences`` [t] of ``block_tables`` [rows, blocks], whose entries
    number blocks of the caches [blocks in all, block size, kv heads, d] and [..., v]. Heads are a multiple of kv heads.
    ``scale`` is 1/sqrt(d) by default; ``window``, ``softcap`` and ``sinks`` [heads] are those of
    ``scaled_dot_product_attention``. Returns the attention [t, heads, v] and both caches with the new keys and values
    in place.
    """
    check_window(window, True)
    tokens, heads, size = query.shape
    kv_heads = key.shape[1]
    if heads % kv_heads:
        raise ShapeError(f"paged_attention: {heads} query heads are not a multiple of {kv_heads} key-value heads")
    slots = _slots(block_tables, sequences, positions, key_cache.shape[1])
    key_cache, value_cache = (_insert(c, v, slots) for c, v in ((key_cache, key), (value_cache, value)))
    group = heads // kv_heads
    mixed = prim.paged_attention(
        prim.reshape(query, shape=(tokens, kv_heads, group, size)), key_cache, value_cache, positions, sequences,
        block_tables, *(() if sinks is None else (prim.reshape(sinks, shape=(kv_heads, group)),)),
        scale=size**-0.5 if scale is None else scale, window=window or 0, softcap=softcap,
    )  # fmt: skip
    return prim.reshape(mixed, shape=(tokens, heads, value.shape[2])), key_cache, value_cache


def _slots(block_tables: Tensor, sequences: Tensor, positions: Tensor, block_size: int) -> Tensor:
    """Block and place in it for each new token [t, 2]."""
    tokens = positions.shape[0]
    entry = [prim.reshape(x, shape=(tokens, 1)) for x in (sequences, positions // block_size)]
    block = prim.gather(block_tables, prim.concat(*entry, axis=1), axes=(0, 1))
    inside = prim.reshape(positions % block_size, shape=(tokens, 1))
    return prim.concat(prim.reshape(block, shape=(tokens, 1)), inside, axis=1)


def _insert(cache: Tensor, new: Tensor, slots: Tensor) -> Tensor:
    """A scatter straight into the cache, which a compiler can do in place."""
    return prim.scatter(cache, slots, new, axes=(0, 1), kind="set")


@paged_attention.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    new = [rng.standard_normal((3, heads, 4)).astype(np.float32) for heads in (4, 2, 2)]
    caches = [rng.standard_normal((6, 2, 2, 4)).astype(np.float32) for _ in range(2)]
    yield Sample(*new, *caches, np.array([3, 4, 0]), np.array([0, 0, 1]), np.array([[5, 1, 2], [0, 0, 0]]))
    yield Sample(*new, *caches, np.array([3, 4, 5]), np.array([0, 0, 0]), np.array([[5, 1, 2]]))
    yield Sample(*new, *caches, np.array([3, 4, 5]), np.array([0, 0, 0]), np.array([[5, 1, 2]]), window=3)
    yield Sample(
        *new, *caches, np.array([3, 4, 0]), np.array([0, 0, 1]), np.array([[5, 1, 2], [0, 0, 0]]), window=2,
        softcap=1.5, sinks=rng.standard_normal(4).astype(np.float32),
    )  # fmt: skip
