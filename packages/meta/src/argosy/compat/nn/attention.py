"""Attention of several heads with the parameters and masks of another framework."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import validate_call
from argosy.compat.nn import functional as C
from argosy.compat.nn.layers import Linear
from argosy.nn import functional as F
from argosy.nn import initializer as I
from argosy.nn.layer import Layer
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.dtype import finfo
from argosy_tensorcore.tensor import Tensor

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Layer):
    """Queries attend to keys and values by ``num_heads`` heads (Vaswani et al., 2017); masks are True at what is left
    out, other than those of ``nn.MultiHeadAttention``.

    Tensors are [length, batch, features], with ``batch_first`` [batch, length, features], or lack the batch. Where
    keys and values have ``embed_dim`` features, the three projections are one weight, ``in_proj_weight``
    [3 embed_dim, embed_dim]; else ``q_proj_weight``, ``k_proj_weight`` [embed_dim, kdim] and ``v_proj_weight``.
    ``add_bias_kv`` adds a learned key and value at the end of each sequence, ``add_zero_attn`` a key and value of
    zeros. Raises ValueError for an ``embed_dim`` that does not split into the heads.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: embed_dim {embed_dim} does not split into {num_heads} heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim

        def parameter(wanted: bool, shape: list[int], initializer: Any = None) -> Any:
            kind: dict[str, Any] = {"is_bias": initializer is None, "default_initializer": initializer}
            return self.create_parameter(shape, dtype=dtype, device=device, **kind) if wanted else None

        whole = {"in_proj": (3 * embed_dim, embed_dim)}
        parts = {"q_proj": (embed_dim, embed_dim), "k_proj": (embed_dim, self.kdim), "v_proj": (embed_dim, self.vdim)}
        kept = whole if self._qkv_same_embed_dim else parts
        for name, shape in (whole | parts).items():
            setattr(self, f"{name}_weight", parameter(name in kept, [*shape], I.XavierUniform()))
        for name, (rows, _) in (whole | parts).items():
            setattr(self, f"{name}_bias", parameter(bias and name in kept, [rows]))
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            setattr(self, name, parameter(add_bias_kv, [1, 1, embed_dim], I.XavierNormal()))

    @validate_call
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """What is attended, laid out as ``query``, and the weights: the mean over heads [batch, T, S], all of them
        [batch, heads, T, S] with ``average_attn_weights=False``, or None with ``need_weights=False``.

        key_padding_mask: [batch, S]; attn_mask: [T, S] or [batch * heads, T, S]; each is bool, True where nothing
        attends, or floats added to the scores. ``is_causal`` masks what comes later if there is no ``attn_mask``.
        """
        batched, axis = query.ndim == 3, 0 if self.batch_first else 1
        given: list[Any] = [x if batched else x.unsqueeze(axis) for x in (query, key, value)]
        if not self.batch_first:
            given = [x.swapaxes(0, 1) for x in given]
        if key_padding_mask is not None and key_padding_mask.ndim == 1:
            key_padding_mask = key_padding_mask.unsqueeze(0)
        q, k, v = self._heads(given)
        steps, sources = q.shape[2], given[1].shape[1]
        causal = is_causal and attn_mask is None
        mask = self._mask(attn_mask, key_padding_mask, q, k.shape[2] - sources)
        if causal and (mask is not None or need_weights or k.shape[2] > sources):
            later = op("triu")(op("full")([steps, sources], True, "bool"), 1)
            mask, causal = _sum(mask, self._additive(later, q, k.shape[2] - sources)), False
        mixed, weights = self._attend(q, k, v, mask, causal, need_weights)
        out: Any = self.out_proj(mixed.swapaxes(1, 2).reshape([-1, steps, self.embed_dim]))
        if weights is not None and average_attn_weights:
            weights = weights.mean(axis=1)
        if not self.batch_first:
            out = out.swapaxes(0, 1)
        if batched:
            return out, weights
        return out.squeeze(axis), None if weights is None else weights.squeeze(0)

    def _heads(self, given: list[Any]) -> list[Any]:
        """Queries, keys and values by heads, [batch, heads, length, head_dim]."""
        parts: Any = self
        if self._qkv_same_embed_dim:
            weights = parts.in_proj_weight.chunk(3, axis=0)
            biases = [None] * 3 if parts.in_proj_bias is None else parts.in_proj_bias.chunk(3, axis=0)
        else:
            weights = [parts.q_proj_weight, parts.k_proj_weight, parts.v_proj_weight]
            biases = [parts.q_proj_bias, parts.k_proj_bias, parts.v_proj_bias]
        ends: list[list[Any]] = [[], [], []]
        if parts.bias_k is not None:
            ends = [[], [parts.bias_k], [parts.bias_v]]
        if self.add_zero_attn:
            zeros = op("full")([1, 1, self.embed_dim], 0.0, given[0].dtype)
            ends = [[], [*ends[1], zeros], [*ends[2], zeros]]
        batch, heads = given[0].shape[0], []
        for x, weight, bias, end in zip(given, weights, biases, ends, strict=True):
            rows: Any = C.linear(x, weight, bias)
            if end:
                rows = op("concat")([rows, *(e.expand([batch, -1, -1]) for e in end)], 1)
            heads.append(rows.reshape([batch, -1, self.num_heads, self.head_dim]).swapaxes(1, 2))
        return heads

    def _mask(self, attention: Any, padding: Any, q: Any, more: int) -> Any:
        """Both masks as one term of the scores; ``more`` keys at the end are seen by all."""
        if attention is not None:
            attention = self._additive(attention, q, more)
            if attention.ndim == 3:
                attention = attention.reshape([-1, self.num_heads, *attention.shape[1:]])
        if padding is not None:
            padding = self._additive(padding, q, more).unsqueeze([1, 2])
        return _sum(attention, padding)

    @staticmethod
    def _additive(mask: Any, q: Any, more: int) -> Any:
        if mask.dtype.kind == "b":
            hidden, seen = (op("full")([], value, q.dtype) for value in (finfo(q.dtype).min, 0.0))
            mask = op("where")(mask, hidden, seen)
        mask = mask.astype(q.dtype)
        if not more:
            return mask
        return op("concat")([mask, op("full")([*mask.shape[:-1], more], 0.0, q.dtype)], -1)

    def _attend(self, q: Any, k: Any, v: Any, mask: Any, causal: bool, need_weights: bool) -> tuple[Any, Any]:
        """The mixed values [batch, heads, T, head_dim], and the weights where they are wanted."""
        if not need_weights:
            attend: Any = C.scaled_dot_product_attention
            return attend(q, k, v, mask, self.dropout if self.training else 0.0, causal), None
        scores = op("matmul")(q, k, False, True) * self.head_dim**-0.5
        weights: Any = F.softmax(scores if mask is None else scores + mask)
        weights = F.dropout(weights, self.dropout, training=self.training)
        return op("matmul")(weights, v), weights


def _sum(a: Any, b: Any) -> Any:
    """The sum of the terms that there are."""
    return b if a is None else a if b is None else a + b
