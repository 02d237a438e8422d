"""Attention and rotary positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_infer.onnx.document import dtype_name
from argosy_infer.onnx.registry import onnx_operator
from argosy_infer.onnx.tensors import count_up, phi, prim, shape_of, size_number


def _heads(x: Any, count: int) -> Any:
    """[B, T, heads * width] as [B, heads, T, width]; four axes are so already."""
    sizes = shape_of(x)
    if len(sizes) == 4:
        return x
    apart = phi.reshape(x, [sizes[0], sizes[1], count, sizes[2] // count])
    return prim.transpose(apart, permutation=(0, 2, 1, 3))


@onnx_operator("Attention")
def attention(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    real_lengths: Any = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int = 0,
    q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    node: Any,
) -> Any:
    """Scaled products of queries and keys, masked, as weights of values; keys and values with what is cached before
    them are results, and the scores at the stage `qk_matmul_output_mode`: plain, masked, capped, weights."""
    flat = len(shape_of(query)) == 3
    q, k, v = _heads(query, q_num_heads), _heads(key, kv_num_heads), _heads(value, kv_num_heads)
    cached = 0 if past_key is None else shape_of(past_key)[2]
    if past_key is not None:
        k, v = prim.concat(past_key, k, axis=2), prim.concat(past_value, v, axis=2)
    hidden = _bias(q, k, mask, is_causal, cached, real_lengths)
    scores = None
    if node.outputs < 4 and softmax_precision is None and not (softcap and hidden is not None):
        q, keys, values = (_swap(each) for each in (q, k, v))
        mixed = _swap(phi.scaled_dot_product_attention(q, keys, values, hidden, scale=scale, softcap=softcap))
    else:
        weights, scores = _weights(q, _repeated(k, q), hidden, scale, softcap, softmax_precision, qk_matmul_output_mode)
        mixed = phi.matmul(weights, _repeated(v, q))
    if flat:
        sizes = shape_of(mixed)
        mixed = phi.reshape(_swap(mixed), [sizes[0], sizes[2], sizes[1] * sizes[3]])
    return mixed, k, v, scores


def _swap(x: Any) -> Any:
    """[B, heads, T, width] as [B, T, heads, width], and back."""
    return prim.transpose(x, permutation=(0, 2, 1, 3))


def _repeated(x: Any, q: Any) -> Any:
    """Heads of keys and values as many times as queries have more."""
    times = shape_of(q)[1] // shape_of(x)[1]
    return x if times == 1 else phi.repeat_interleave(x, times, 1)


def _bias(q: Any, k: Any, mask: Any, is_causal: int, cached: Any, real_lengths: Any) -> Any:
    """What is added to the scores; None for nothing."""
    dtype = q.payload.dtype.name
    queries, keys = shape_of(q)[2], shape_of(k)[2]
    shown, added = None, None
    if mask is not None:
        missing = keys - shape_of(mask)[-1]
        if missing:  # a mask that is too short hides the rest
            rank = len(shape_of(mask))
            fill = phi.full([], False, "bool") if mask.payload.dtype.name == "bool" else phi.full([], -np.inf, dtype)
            high = (0,) * (rank - 1) + (missing,)
            mask = prim.pad(mask, fill, low=(0,) * rank, high=high, interior=(0,) * rank)
        shown, added = (mask, None) if mask.payload.dtype.name == "bool" else (None, prim.cast(mask, dtype=dtype))
    for other in (_causal(queries, keys, cached) if is_causal else None, _present(keys, real_lengths)):
        if other is not None:
            shown = other if shown is None else prim.logical_and(shown, other)
    if shown is not None:
        hidden = prim.select(shown, phi.full([], 0.0, dtype), phi.full([], -np.inf, dtype))
        added = hidden if added is None else prim.add(added, hidden)
    if added is not None and len(shape_of(added)) < 4:
        added = phi.reshape(added, [1] * (4 - len(shape_of(added))) + list(shape_of(added)))
    return added


def _causal(queries: Any, keys: Any, cached: Any) -> Any:
    return prim.le(count_up(keys, 1, 2), prim.add(count_up(queries, 0, 2), size_number(cached)))


def _present(keys: Any, real_lengths: Any) -> Any:
    if real_lengths is None:
        return None
    lengths = phi.reshape(prim.cast(real_lengths, dtype="int64"), [-1, 1, 1, 1])
    return prim.lt(count_up(keys, 3, 4), lengths)


def _weights(
    q: Any, k: Any, bias: Any, scale: float | None, softcap: float, precision: int | None, mode: int
) -> tuple[Any, Any]:
    """The weights of values, and the scores at the stage ``mode``."""
    dtype = q.payload.dtype.name
    factor = float(np.sqrt(scale if scale is not None else 1 / np.sqrt(shape_of(q)[3])))
    scores = phi.matmul(q * factor, prim.transpose(k * factor, permutation=(0, 1, 3, 2)))
    masked = scores if bias is None else prim.add(scores, bias)
    capped = prim.tanh(masked * (1 / softcap)) * softcap if softcap else masked
    kind = dtype if precision is None else dtype_name(precision, "Attention")
    weights = prim.cast(phi.softmax(prim.cast(capped, dtype=kind), -1), dtype=dtype)
    return weights, (scores, masked, capped, weights)[mode]


@onnx_operator("RotaryEmbedding")
def rotary_embedding(
    x: Any,
    cosines: Any,
    sines: Any,
    positions: Any = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Any:
    """Pairs of channels, halves of each head or neighbours, turned by angles of positions (Su et al., 2021)."""
    flat = len(shape_of(x)) == 3
    heads = prim.transpose(_heads(x, num_heads), permutation=(0, 2, 1, 3))  # [B, T, heads, width]
    rows, steps, count, width = shape_of(heads)
    turned = rotary_embedding_dim or width
    first, rest = phi.slice(heads, [3], [0], [turned]), phi.slice(heads, [3], [turned], [width])
    if positions is not None:
        chosen = phi.reshape(positions, [rows * steps])
        cosines, sines = (
            phi.reshape(phi.index_select(each, chosen, 0), [rows, steps, shape_of(each)[-1]])
            for each in (cosines, sines)
        )
    cosines, sines = (phi.unsqueeze(phi.slice(each, [2], [0], [turned // 2]), 2) for each in (cosines, sines))
    even, odd = _pairs(first, interleaved)
    real = prim.sub(prim.mul(even, cosines), prim.mul(odd, sines))
    imaginary = prim.add(prim.mul(even, sines), prim.mul(odd, cosines))
    if interleaved:
        made = phi.reshape(phi.stack([real, imaginary], -1), [rows, steps, count, turned])
    else:
        made = prim.concat(real, imaginary, axis=3)
    made = made if turned == width else prim.concat(made, rest, axis=3)
    return phi.reshape(made, list(shape_of(x))) if flat else prim.transpose(made, permutation=(0, 2, 1, 3))


def _pairs(x: Any, interleaved: int) -> tuple[Any, Any]:
    width = shape_of(x)[3]
    if not interleaved:
        return phi.slice(x, [3], [0], [width // 2]), phi.slice(x, [3], [width // 2], [width])
    pairs = phi.reshape(x, [*shape_of(x)[:3], width // 2, 2])
    return tuple(phi.squeeze(phi.slice(pairs, [4], [i], [i + 1]), 4) for i in (0, 1))
