"""Attention over a paged key-value cache: what causal attention becomes in incremental decoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.nn.activation import softmax
from argosy_phi_ops.ops.nn.attention import capped, check_window, softmax_with_sinks
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
    in place. With one row of tables the tokens read their context together; with several, each token gathers its own.
    """
    check_window(window, True)
    tokens, heads, size = query.shape
    kv_heads = key.shape[1]
    if heads % kv_heads:
        raise ShapeError(f"paged_attention: {heads} query heads are not a multiple of {kv_heads} key-value heads")
    rows = prim.gather(block_tables, prim.reshape(sequences, shape=(tokens, 1)), axes=(0,))
    slots = _slots(rows, positions, key_cache.shape[1])
    key_cache, value_cache = (_insert(c, v, slots) for c, v in ((key_cache, key), (value_cache, value)))
    grouped = prim.reshape(query, shape=(tokens, kv_heads, heads // kv_heads, size))
    attend = _together if block_tables.shape[0] == 1 else _apart
    given = block_tables if block_tables.shape[0] == 1 else rows
    keys, values = (_context(c, given) for c in (key_cache, value_cache))
    rule = _Rule(scale if scale is not None else size**-0.5, window, softcap, sinks)
    mixed = attend(grouped, keys, values, positions, rule)
    return prim.reshape(mixed, shape=(tokens, heads, value.shape[2])), key_cache, value_cache


class _Rule(NamedTuple):
    """What makes weights of products: see the operator."""

    scale: float
    window: int | None
    softcap: float
    sinks: Tensor | None


def _apart(query: Tensor, keys: Tensor, values: Tensor, positions: Tensor, rule: _Rule) -> Tensor:
    """Each token [t, kv heads, group, d] with a context of its own [t, context, kv heads, d]."""
    scores = prim.dot_general(query, keys, lhs_contract=(3,), rhs_contract=(3,), lhs_batch=(0, 1), rhs_batch=(0, 2))
    weights = _weights(scores, positions, 0, rule, (1, 2))
    return prim.dot_general(weights, values, lhs_contract=(3,), rhs_contract=(1,), lhs_batch=(0, 1), rhs_batch=(0, 2))


def _together(query: Tensor, keys: Tensor, values: Tensor, positions: Tensor, rule: _Rule) -> Tensor:
    """Tokens of one sequence [t, kv heads, group, d], which share its context [1, context, kv heads, d]: for each of
    the kv heads the rows of all tokens and heads of the group."""
    tokens, kv_heads, group, size = query.shape
    shared = [prim.reshape(x, shape=x.shape[1:]) for x in (keys, values)]
    rows = prim.reshape(prim.transpose(query, permutation=(1, 0, 2, 3)), shape=(kv_heads, tokens * group, size))
    each = prim.reshape(prim.broadcast(positions, shape=(tokens, group), axes=(0,)), shape=(tokens * group,))
    scores = prim.dot_general(rows, shared[0], lhs_contract=(2,), rhs_contract=(2,), lhs_batch=(0,), rhs_batch=(1,))
    weights = _weights(scores, each, 1, rule._replace(sinks=_of_rows(rule.sinks, kv_heads, tokens, group)), (0, 1))
    mixed = prim.dot_general(weights, shared[1], lhs_contract=(2,), rhs_contract=(0,), lhs_batch=(0,), rhs_batch=(1,))
    apart = prim.reshape(mixed, shape=(kv_heads, tokens, group, values.shape[3]))
    return prim.transpose(apart, permutation=(1, 0, 2, 3))


def _of_rows(sinks: Tensor | None, kv_heads: int, tokens: Any, group: int) -> Tensor | None:
    """The sink of each row of a group's tokens and heads [kv heads, tokens * group]."""
    if sinks is None:
        return None
    each = prim.broadcast(prim.reshape(sinks, shape=(kv_heads, group)), shape=(kv_heads, tokens, group), axes=(0, 2))
    return prim.reshape(each, shape=(kv_heads, tokens * group))


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
    """Every cached entry that rows of a block table name [rows, blocks * block size, kv heads, d]."""
    count, blocks = rows.shape
    _, block_size, *rest = cache.shape
    taken = prim.gather(cache, prim.reshape(rows, shape=(count, blocks, 1)), axes=(0,))
    return prim.reshape(taken, shape=(count, blocks * block_size, *rest))


def _weights(scores: Tensor, positions: Tensor, axis: int, rule: _Rule, heads: tuple[int, int]) -> Tensor:
    """Weights [..., context] of the places that each index along ``axis`` sees: up to its position, and of these the
    last of a window. ``heads``: the axes that a sink for each row stands along."""
    shape = scores.shape
    scores = capped(scores * rule.scale, rule.softcap)
    places = prim.iota(shape=shape, axis=len(shape) - 1, dtype=positions.dtype)
    last = prim.broadcast(positions, shape=shape, axes=(axis,))
    scores = prim.select(places <= last, scores, float("-inf"))
    if rule.window is not None:
        scores = prim.select(places > last - rule.window, scores, float("-inf"))
    if rule.sinks is None:
        return softmax(scores)
    sinks = rule.sinks if rule.sinks.ndim == 2 else prim.reshape(rule.sinks, shape=[shape[i] for i in heads])
    return softmax_with_sinks(scores, sinks, heads)


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
