"""Attention on arrays [batch, sequence, heads, dim], for eager execution: products of all heads at once, in place
otherwise. What :mod:`argosy_phi_ops.ops.nn.attention` decomposes gives the same up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from argosy_phi_ops.reference.kernels.registry import Array, ieee

__all__ = ["attend", "fits", "gradients", "scale_of"]


def fits(shapes: Sequence[tuple[int, ...]], dtype: str, attributes: dict[str, Any]) -> bool:
    """Whether operands of these shapes are attended to plainly: as many heads everywhere, no mask but the causal one,
    no dropout."""
    if len(shapes) != 3 or dtype not in ("float32", "float64") or any(len(s) != 4 or 0 in s for s in shapes):
        return False
    query, key, value = shapes
    alike = query[0] == key[0] and query[2:] == key[2:] and key[:3] == value[:3]
    if attributes.get("window") is not None or attributes.get("softcap"):
        return False
    return alike and not (attributes["dropout_p"] and attributes["training"])


def scale_of(query: Array, attributes: dict[str, Any]) -> float:
    """What scores are multiplied with."""
    scale = attributes["scale"]
    return 1 / sqrt(query.shape[3]) if scale is None else float(scale)


@ieee
def attend(query: Array, key: Array, value: Array, scale: float, causal: bool) -> Array:
    """``softmax(query key^T * scale) value``."""
    mixed = np.matmul(_weights(query, key, scale, causal), _by_head(value))
    return np.ascontiguousarray(_by_head(mixed))


@ieee
def gradients(
    g: Array, query: Array, key: Array, value: Array, scale: float, causal: bool, wants: Sequence[bool]
) -> tuple[Array | None, Array | None, Array | None]:
    """Gradients of the operands from that of the result, with the weights computed again."""
    weights, g = _weights(query, key, scale, causal), _by_head(g)
    for_value = np.matmul(weights.swapaxes(2, 3), g) if wants[2] else None
    for_query = for_key = None
    if wants[0] or wants[1]:
        scores = np.matmul(g, _by_head(value).swapaxes(2, 3))
        scores -= np.einsum("bhqk,bhqk->bhq", scores, weights)[..., None]
        scores *= weights
        scores *= scale
        for_query = np.matmul(scores, _by_head(key)) if wants[0] else None
        for_key = np.matmul(scores.swapaxes(2, 3), _by_head(query)) if wants[1] else None
    found = [None if x is None else np.ascontiguousarray(_by_head(x)) for x in (for_query, for_key, for_value)]
    return found[0], found[1], found[2]


def _by_head(x: Array) -> Array:
    """[batch, sequence, heads, dim] as [batch, heads, sequence, dim], and back."""
    return x.transpose(0, 2, 1, 3)


def _weights(query: Array, key: Array, scale: float, causal: bool) -> Array:
    """[batch, heads, queries, keys]; rows sum to 1."""
    scores: Array = np.matmul(_by_head(query), _by_head(key).swapaxes(2, 3))
    scores *= scale
    if causal:
        np.copyto(scores, -np.inf, where=_causal_mask(*scores.shape[2:]))
    scores -= scores.max(axis=3, keepdims=True)
    np.exp(scores, out=scores)
    scores *= 1 / scores.sum(axis=3, keepdims=True)
    return scores


@lru_cache(maxsize=8)
def _causal_mask(queries: int, keys: int) -> Array:
    """Which keys come after their query."""
    return np.arange(keys) > np.arange(queries)[:, None]
