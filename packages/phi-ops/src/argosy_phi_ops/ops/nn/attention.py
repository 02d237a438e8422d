"""Scaled dot-product attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.ops.nn.activation import softmax
from argosy_phi_ops.ops.nn.dropout import dropout
from argosy_phi_ops.reference import attention
from argosy_tensorcore.tensor import Tensor


@operator(promote="none")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    training: bool = True,
    backend: str | None = None,
    scale: float | None = None,
    enable_gqa: bool = True,
    window: int | None = None,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
) -> Tensor:
    """``softmax(query key^T * scale + mask) value`` with operands [batch, sequence, heads, dim] (Vaswani et al., 2017).

    `scale` is ``1 / sqrt(dim)`` by default. A boolean mask keeps where it is True, a float one is added; it broadcasts
    to [batch, heads, queries, keys]. With `is_causal` query i sees the keys up to i, and of these the last `window`
    alone (Beltagy et al., 2020). `softcap` c > 0 makes scores ``c * tanh(scores / c)`` (Gemma Team, 2024). `sinks`
    [heads] are logits that take weight and have no value (OpenAI, 2025). With `enable_gqa` fewer heads of key and value
    serve groups of query heads; values may be wider or narrower than keys. `backend` is Paddle's choice of a kernel and
    changes nothing. An operator that draws no random numbers has no dropout: :func:`attention_with_dropout` does.
    """
    check_window(window, is_causal)
    if dropout_p and training:
        raise OperatorError("scaled_dot_product_attention: with dropout this is the operator attention_with_dropout")
    value, weights = _weights(query, key, value, attn_mask, is_causal, scale, enable_gqa, window, softcap, sinks)
    return _mix(weights, value)


def check_window(window: int | None, is_causal: bool) -> None:
    """Raise OperatorError for a window of attention that shows no key, or that no causal mask bounds."""
    if window is not None and (window < 1 or not is_causal):
        raise OperatorError(f"attention: window {window} needs is_causal=True and at least the query's own key")


def _weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    window: int | None = None,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The value with as many heads as the query, and the weights [batch, heads, queries, keys]."""
    groups = _head_groups(query, key, value, enable_gqa)
    if groups > 1:
        key, value = _repeated_heads(key, groups), _repeated_heads(value, groups)
    scores = prim.dot_general(query, key, lhs_contract=(3,), rhs_contract=(3,), lhs_batch=(0, 2), rhs_batch=(0, 2))
    scores = prim.mul(scores, inverse_root(query.shape[3], query.dtype) if scale is None else scale)
    scores = _mask(cap_scores(scores, softcap), attn_mask, is_causal, window)
    return value, softmax(scores) if sinks is None else softmax_with_sinks(scores, sinks, (1,))


def cap_scores(scores: Tensor, softcap: float) -> Tensor:
    """``c * tanh(scores / c)`` for a `softcap` c, which is 0 where there is none."""
    return prim.mul(prim.tanh(prim.mul(scores, 1 / softcap)), softcap) if softcap else scores


def softmax_with_sinks(scores: Tensor, sinks: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Softmax over the last axis beside logits along `axes`, whose weights are left out."""
    rows = scores.shape[:-1]
    outer = tuple(range(len(rows)))
    sinks = prim.broadcast(prim.cast(sinks, dtype=scores.dtype), shape=rows, axes=axes)
    top = prim.stop_gradient(prim.maximum(prim.reduce_max(scores, axes=(len(rows),)), sinks))
    powers = prim.exp(prim.sub(scores, prim.broadcast(top, shape=scores.shape, axes=outer)))
    total = prim.add(prim.reduce_sum(powers, axes=(len(rows),)), prim.exp(prim.sub(sinks, top)))
    return prim.div(powers, prim.broadcast(total, shape=scores.shape, axes=outer))


def _mix(weights: Tensor, value: Tensor) -> Tensor:
    mixed = prim.dot_general(weights, value, lhs_contract=(3,), rhs_contract=(1,), lhs_batch=(0, 1), rhs_batch=(0, 2))
    return prim.transpose(mixed, permutation=(0, 2, 1, 3))


@scaled_dot_product_attention.specialize
def _(types: Sequence[Any], attributes: dict[str, Any]) -> Any:
    dtype = types[0].dtype
    plain = attention.fits([t.shape for t in types], dtype.name, attributes)
    if not plain or any(t.dtype is not dtype for t in types):
        return None
    causal = attributes["is_causal"]
    return lambda q, k, v: attention.attend(q, k, v, attention.scale_of(q, attributes), causal)


def inverse_root(size: Any, dtype: str) -> Any:
    """``1 / sqrt(size)``: a number, or a 0-D value where the size is symbolic."""
    if isinstance(size, int):
        return 1 / sqrt(size)
    return prim.rsqrt(prim.cast(prim.dim_size(dim=size, dtype="int64"), dtype=dtype))


def _head_groups(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> int:
    if not query.ndim == key.ndim == value.ndim == 4:
        raise ShapeError(
            "scaled_dot_product_attention takes [batch, sequence, heads, dim], got "
            f"query {query.type}, key {key.type}, value {value.type}"
        )
    heads, shared = query.shape[2], key.shape[2]
    if heads == shared:
        return 1
    if not enable_gqa or heads % shared:
        raise ShapeError(f"scaled_dot_product_attention: {shared} heads of key cannot serve {heads} heads of query")
    return int(heads // shared)


def _repeated_heads(x: Tensor, times: int) -> Tensor:
    batch, length, heads, dim = x.shape
    spread = prim.broadcast(x, shape=(batch, length, heads, times, dim), axes=(0, 1, 2, 4))
    return prim.reshape(spread, shape=(batch, length, heads * times, dim))


def _mask(scores: Tensor, mask: Tensor | None, is_causal: bool, window: int | None = None) -> Tensor:
    if is_causal:
        rows, columns = (prim.iota(shape=scores.shape, axis=axis, dtype="int64") for axis in (2, 3))
        scores = prim.select(prim.le(columns, rows), scores, float("-inf"))
        if window is not None:
            scores = prim.select(prim.gt(columns, prim.sub(rows, window)), scores, float("-inf"))
    if mask is None:
        return scores
    if mask.dtype == "bool":
        return prim.select(mask, scores, float("-inf"))
    return prim.add(scores, mask if mask.dtype == scores.dtype else prim.cast(mask, dtype=scores.dtype))


@scaled_dot_product_attention.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    query, key, value = (rng.standard_normal((2, 5, 4, 3)) for _ in range(3))
    yield Sample(query, key, value)
    yield Sample(query, key, value, is_causal=True)
    yield Sample(query[:, :3], key, value, rng.standard_normal((2, 1, 3, 5)))
    yield Sample(query, key, value, np.tril(np.ones((5, 5), bool)), scale=0.5)
    yield Sample(query, key[:, :, :2], value[:, :, :2])
    yield Sample(query, key, value[..., :2], is_causal=True, window=2, softcap=1.5, sinks=rng.standard_normal(4))


@operator(promote="none", random=True)
def attention_with_dropout(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.5,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = True,
    window: int | None = None,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
    rng: Tensor | None = None,
    counter: int = 0,
) -> Tensor:
    """:func:`scaled_dot_product_attention` whose weights are set to zero with probability `dropout_p`; what is kept is
    divided by ``1 - dropout_p``."""
    check_window(window, is_causal)
    value, weights = _weights(query, key, value, attn_mask, is_causal, scale, enable_gqa, window, softcap, sinks)
    return _mix(dropout.body(weights, dropout_p, rng=rng, counter=counter), value)


@attention_with_dropout.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    query, key, value = (rng.standard_normal((2, 5, 4, 3)) for _ in range(3))
    yield Sample(query, key, value, None, 0.3, is_causal=True)
    yield Sample(query[:, :3], key[:, :, :2], value[:, :, :2], rng.standard_normal((2, 1, 3, 5)), scale=0.5)
