"""Attention of several heads (Vaswani et al., 2017)."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from argosy.argument_checks import TensorLike, validate_call
from argosy.nn import functional as F
from argosy.nn.attention_backends import SDPBackend, sdpa_kernel
from argosy.nn.common import Linear
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["MultiHeadAttention", "SDPBackend", "additive_mask", "sdpa_kernel"]


def additive_mask(mask: Any, dtype: Any) -> Any:
    """A mask as a term of the scores: booleans (and integers) keep where True, others add 0 or a large negative."""
    if mask is None or mask.dtype.kind == "f":
        return mask if mask is None else mask.astype(dtype)
    return (mask.astype(dtype) - 1.0) * 1e9


class MultiHeadAttention(Layer):
    """Queries [N, T, embed_dim] attend to keys [N, S, kdim] and values [N, S, vdim]; the result is [N, T, embed_dim].

    attn_mask: broadcastable to [N, heads, T, S]; True keeps, floats are added to the scores. With ``need_weights``
    the weights [N, heads, T, S] come too, and last the cache when one was given.
    """

    Cache = namedtuple("Cache", ["k", "v"])
    StaticCache = namedtuple("StaticCache", ["k", "v"])

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        kdim: int | None = None,
        vdim: int | None = None,
        need_weights: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(f"MultiHeadAttention: embed_dim {embed_dim} does not split into {num_heads} heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.need_weights = dropout, need_weights
        attrs = (weight_attr, bias_attr)
        self.q_proj = Linear(embed_dim, embed_dim, *attrs)
        self.k_proj = Linear(self.kdim, embed_dim, *attrs)
        self.v_proj = Linear(self.vdim, embed_dim, *attrs)
        self.out_proj = Linear(embed_dim, embed_dim, *attrs)

    @validate_call
    def forward(
        self,
        query: TensorLike,
        key: TensorLike | None = None,
        value: TensorLike | None = None,
        attn_mask: TensorLike | None = None,
        cache: Any = None,
    ) -> Any:
        """The attended values; ``key`` and ``value`` default to ``query`` and ``key``."""
        key = query if key is None else key
        value = key if value is None else value
        q, k, v, *grown = self._prepare_qkv(query, key, value, cache)
        scores = F.matmul(q, k, transpose_y=True) * self.head_dim**-0.5
        mask = additive_mask(attn_mask, scores.dtype)
        weights = F.softmax(scores if mask is None else scores + mask)
        if self.dropout:
            weights = F.dropout(weights, self.dropout, training=self.training)
        mixed = F.matmul(weights, v).transpose([0, 2, 1, 3])
        out = self.out_proj(mixed.reshape([mixed.shape[0], mixed.shape[1], self.embed_dim]))
        more = [weights] if self.need_weights else []
        more += grown
        return (out, *more) if more else out

    def _prepare_qkv(self, query: Any, key: Any, value: Any, cache: Any = None) -> tuple[Any, ...]:
        """Queries, keys and values by heads, [N, heads, length, head dim], and the cache where there is one.

        ``forward`` takes them from here, as in Paddle, so that subclasses may turn them (rotary positions).
        """
        q = self._heads(self.q_proj(query))
        if isinstance(cache, self.StaticCache):
            return q, cache.k, cache.v, cache
        k, v = self.compute_kv(key, value)
        if cache is None:
            return q, k, v
        if isinstance(cache, self.Cache):
            k, v = F.concat([cache.k, k], axis=2), F.concat([cache.v, v], axis=2)
            cache = self.Cache(k, v)
        return q, k, v, cache

    def _heads(self, x: Any) -> Any:
        return x.reshape([x.shape[0], x.shape[1], self.num_heads, self.head_dim]).transpose([0, 2, 1, 3])

    def compute_kv(self, key: Any, value: Any) -> tuple[Any, Any]:
        """Projections of ``key`` and ``value``, by heads: [N, heads, S, head dim] each."""
        return self._heads(self.k_proj(key)), self._heads(self.v_proj(value))

    def gen_cache(self, key: Any, value: Any = None, type: Any = Cache) -> Any:
        """A cache to decode with: projections of ``key`` and ``value`` (StaticCache), or one to grow (Cache).

        Without ``value`` a Cache begins empty, with the batch size of ``key``; else it begins with both as they are.
        """
        if type is self.StaticCache:
            value = key if value is None else value
            return self.StaticCache(*self.compute_kv(key, value))
        if value is not None:
            return self.Cache(key, value)
        empty: Tensor = F.zeros([key.shape[0], self.num_heads, 0, self.head_dim], dtype=key.dtype)
        return self.Cache(empty, empty)
