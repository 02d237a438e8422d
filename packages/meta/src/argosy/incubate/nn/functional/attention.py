"""Attention with its projections, its residual connection and its normalisation, and attention of unequal lengths."""

# mypy: disable-error-code="operator,no-any-return,index"
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from argosy.argument_checks import validate_call
from argosy.incubate.nn.functional.linear import fused_matmul_bias
from argosy.incubate.nn.functional.residual import check_ring
from argosy.nn import functional as F
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "fused_dot_product_attention", "fused_multi_head_attention", "variable_length_memory_efficient_attention",
]  # fmt: skip


@validate_call
def fused_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scaling_factor: float | None = None,
    training: bool = True,
    name: str | None = None,
) -> Tensor:
    """Attention of [batch, length, heads, width]; ``attn_mask`` is added to the scores, which are scaled by
    ``scaling_factor``, by default one over the root of the width."""
    if is_causal and attn_mask is not None:
        raise ValueError("fused_dot_product_attention(): argument 'attn_mask' should be None when is_causal is True")
    factor = query.shape[-1] ** -0.5 if scaling_factor is None else scaling_factor
    drop = partial(F.dropout, p=dropout_p, training=training)
    return _attend(query, key, value, attn_mask, factor, drop, is_causal)


def _attend(
    q: Any, k: Any, v: Any, mask: Tensor | None, factor: float, drop: Callable[[Any], Any], causal: bool = False
) -> Any:
    """Attention of operands [batch, length, heads, width]; ``drop`` is dropout of the weights."""
    q, k, v = (x.transpose([0, 2, 1, 3]) for x in (q, k, v))
    scores = op("matmul")(q * factor, k, False, True)
    if causal:
        seen = op("tril")(op("ones")(list(scores.shape[-2:]), "bool"))
        scores = op("where")(seen, scores, float("-inf"))
    if mask is not None:
        scores = scores + mask.cast(scores.dtype.name)
    return op("matmul")(drop(op("softmax")(scores, -1)), v).transpose([0, 2, 1, 3])


@validate_call
def fused_multi_head_attention(
    x: Tensor,
    qkv_weight: Tensor,
    linear_weight: Tensor,
    pre_layer_norm: bool = False,
    pre_ln_scale: Tensor | None = None,
    pre_ln_bias: Tensor | None = None,
    ln_scale: Tensor | None = None,
    ln_bias: Tensor | None = None,
    pre_ln_epsilon: float = 1e-5,
    qkv_bias: Tensor | None = None,
    linear_bias: Tensor | None = None,
    cache_kv: Tensor | None = None,
    attn_mask: Tensor | None = None,
    dropout_rate: float = 0.5,
    attn_dropout_rate: float = 0.5,
    ln_epsilon: float = 1e-5,
    training: bool = True,
    mode: str = "upscale_in_train",
    ring_id: int = -1,
    add_residual: bool = True,
    num_heads: int = -1,
    transpose_qkv_wb: bool = False,
    name: str | None = None,
) -> Any:
    """Self-attention of x [batch, length, width] with its projections: ``x + dropout(linear(attention(x)))``, then
    normalised, or, with ``pre_layer_norm``, with what is attended to normalised before; without ``x`` in front unless
    ``add_residual``.

    qkv_weight: [3, heads, head width, width], or [width, 3 * width] with ``transpose_qkv_wb`` and ``num_heads``;
    qkv_bias: [3, heads, head width], or [3 * width]; attn_mask: added to the scores [batch, heads, length, length];
    cache_kv: [2, batch, heads, earlier, head width], keys and values of earlier places: a longer one comes back, too.
    Returns the result [batch, length, width], with a ``cache_kv`` also the longer cache: (result, cache).
    """
    check_ring("fused_multi_head_attention", ring_id)
    if x.ndim != 3:
        raise ValueError(f"fused_multi_head_attention(): argument 'x' should have 3 axes, got {list(x.shape)}")
    width = x.shape[-1:]
    out = F.layer_norm(x, width, pre_ln_scale, pre_ln_bias, pre_ln_epsilon) if pre_layer_norm else x
    q, k, v = _project(out, qkv_weight, qkv_bias, num_heads if transpose_qkv_wb else 0)
    if cache_kv is not None:
        k, v = (op("concat")([cache_kv[i].transpose([0, 2, 1, 3]), new], 1) for i, new in enumerate((k, v)))
    drop = partial(F.dropout, p=attn_dropout_rate, training=training, mode=mode)
    out = _attend(q, k, v, attn_mask, q.shape[-1] ** -0.5, drop)
    out = fused_matmul_bias(op("flatten")(out, 2, 3), linear_weight, linear_bias)
    out = F.dropout(out, dropout_rate, training=training, mode=mode)
    out = x + out if add_residual else out
    out = out if pre_layer_norm else F.layer_norm(out, width, ln_scale, ln_bias, ln_epsilon)
    if cache_kv is None:
        return out
    return out, op("stack")([k.transpose([0, 2, 1, 3]), v.transpose([0, 2, 1, 3])])


def _project(x: Any, weight: Tensor, bias: Tensor | None, heads: int) -> tuple[Any, Any, Any]:
    """Queries, keys and values [batch, length, heads, head width]; ``heads`` is 0 where the weight says them."""
    width = x.shape[-1]
    if heads:
        if list(weight.shape) != [width, 3 * width] or width % heads:
            raise _misfit(f"[{width}, {3 * width}], and num_heads should divide {width}", weight)
        heads_, matrix = heads, weight
    else:
        if weight.ndim != 4 or weight.shape[0] != 3 or weight.shape[3] != width:
            raise _misfit(f"[3, heads, head width, {width}]", weight)
        heads_, matrix = weight.shape[1], op("flatten")(weight, 0, 2).transpose([1, 0])
    out = fused_matmul_bias(x, matrix, None if bias is None else bias.reshape([-1]))
    parts = out.reshape([*x.shape[:2], 3, heads_, -1])
    return parts[:, :, 0], parts[:, :, 1], parts[:, :, 2]


def _misfit(wanted: str, weight: Tensor) -> ValueError:
    return ValueError(
        f"fused_multi_head_attention(): argument 'qkv_weight' should be {wanted}, got {list(weight.shape)}"
    )


@validate_call
def variable_length_memory_efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    seq_lens: Tensor,
    kv_seq_lens: Tensor,
    mask: Tensor | None = None,
    scale: float | None = None,
    causal: bool = False,
    pre_cache_length: int = 0,
) -> Tensor:
    """Attention of [batch, heads, length, width] of which a row has its own lengths, ``seq_lens`` and ``kv_seq_lens``
    [batch, 1] of integers; queries past theirs give zeros. ``mask`` is added to the scores.

    causal: a query sees keys up to its own place, and ``pre_cache_length`` more.
    """
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = op("matmul")(query * factor, key, False, True)
    if mask is not None:
        scores = scores + mask
    rows, columns = (op("arange")(n).reshape(s) for n, s in zip(scores.shape[-2:], ([-1, 1], [1, -1]), strict=True))
    queries, keys = (lengths.astype("int64").reshape([-1, 1, 1, 1]) for lengths in (seq_lens, kv_seq_lens))
    seen = columns < keys
    if causal:
        seen = op("logical_and")(seen, columns <= rows + pre_cache_length)
    weights = op("softmax")(op("where")(seen, scores, float("-inf")), -1)
    return op("where")(rows < queries, op("matmul")(weights, value), 0.0)
