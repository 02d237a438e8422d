"""Attention under the names of its fast kernels. Here all of them are one plain computation, differentiable everywhere.

Shapes: b batch, s queries, t keys, h heads of queries, k heads of keys and values (h is a multiple of k: groups of
query heads share one), d a head's width. Scores and sums are in float32 at least.
"""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.api import lazy_names
from argosy.argument_checks import validate_call
from argosy.nn.regularization import dropout as drop
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.errors import ShapeError
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "flash_attention", "flash_attention_v3_varlen", "flash_attn_qkvpacked", "flash_attn_unpadded",
    "flash_attn_varlen_func", "flash_attn_varlen_qkvpacked", "scaled_dot_product_attention",
]  # fmt: skip

_attention: Any = op("scaled_dot_product_attention")

__getattr__, __dir__ = lazy_names(__name__, globals())


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
    name: str | None = None,
    *,
    window: int | None = None,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
) -> Tensor:
    """``softmax(query key^T * scale + mask) value`` with operands [b, s, h, d] and [b, t, k, d] (Vaswani et al., 2017).

    ``scale`` is ``1 / sqrt(d)`` by default. A boolean mask keeps where it is True, a float one is added; it
    broadcasts to [b, h, s, t]. With ``is_causal`` query i sees the keys up to i. While ``training``, weights are
    set to zero with probability ``dropout_p`` and the rest divided by ``1 - dropout_p``. ``backend`` of "p2p"
    attends to keys of all ranks along the mesh dimension "sep", in zig-zag order, which go round; others are Paddle's
    choice of a kernel and change nothing. Beyond Paddle's: with ``is_causal`` a query sees the last ``window`` keys;
    ``softcap`` c > 0 makes scores ``c * tanh(scores / c)``; ``sinks`` [h] are logits that take weight and have no
    value. Raises ValueError for a ``dropout_p`` that is no probability and for shapes that do not fit.
    """
    if dropout_p and training and (not isinstance(dropout_p, (int, float)) or not 0 <= dropout_p <= 1):
        raise ValueError(f"scaled_dot_product_attention: dropout_p is a probability, from 0 to 1, got {dropout_p}")
    if backend == "p2p":
        if attn_mask is not None or window is not None:
            raise ValueError("scaled_dot_product_attention: with backend='p2p' there is no mask but is_causal")
        from argosy.nn.ring_attention import ring_attention  # with what distributed tensors need

        dropped_share = dropout_p if training else 0.0
        return ring_attention(query, key, value, is_causal, scale, dropped_share, softcap, sinks)
    further: dict[str, Any] = {"window": window, "softcap": softcap, "sinks": sinks}
    if window is None and not softcap and sinks is None:
        further = {}
    if dropout_p and training:
        dropped: Tensor = op("attention_with_dropout")(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa, **further
        )
        return dropped
    return _attention(query, key, value, attn_mask, 0.0, is_causal, training, backend, scale, enable_gqa, **further)


def attend(
    name: str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    softcap: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """(mixed [b, s, h, d], weights [b, h, s, t], log of the sums [b, h, s]) of operands [b, s, h, d] and [b, t, k, d].

    ``mask`` (bool, broadcasting to [b, h, s, t]) keeps where True; a query that may see nothing gives 0 and a logarithm
    of -inf. ``softcap`` c > 0 makes scores ``c * tanh(scores / c)``. Raises ValueError naming shapes that do not fit.
    """
    groups = _groups(name, query, key, value)
    q, k, v = (_widen(op("transpose")(x, [0, 2, 1, 3])) for x in (query, key, value))
    if groups > 1:
        k, v = (op("repeat_interleave")(x, groups, 1) for x in (k, v))
    width = query.shape[-1]
    scores = op("matmul")(q, k, transpose_y=True) * (scale if scale is not None else 1 / sqrt(width) if width else 1.0)
    if softcap:
        scores = op("tanh")(scores / softcap) * softcap
    if mask is not None:
        scores = op("where")(mask, scores, float("-inf"))
    weights, logs = _softmax(scores)
    mixed = op("matmul")(drop(weights, dropout) if dropout else weights, v)
    return op("transpose")(mixed, [0, 2, 1, 3]).astype(query.dtype), weights, logs


def _softmax(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Weights along the last axis and the logarithms of their sums; a row of -inf has weights 0."""
    highest = op("max")(scores, -1, True).detach() if scores.shape[-1] else op("zeros")([*scores.shape[:-1], 1])
    highest = op("where")(op("isfinite")(highest), highest, op("zeros_like")(highest))
    powers = op("exp")(scores - highest)
    total = op("sum")(powers, -1, keepdim=True)
    none = op("equal")(total, 0.0)
    weights = powers / op("where")(none, op("ones_like")(total), total)
    return weights, op("squeeze")(op("log")(total.detach()) + highest, -1)


def _widen(x: Tensor) -> Tensor:
    return x.astype("float32") if x.dtype.itemsize < 4 else x


def _groups(name: str, query: Tensor, key: Tensor, value: Tensor) -> int:
    shapes = f"query {list(query.shape)}, key {list(key.shape)}, value {list(value.shape)}"
    if not query.ndim == key.ndim == value.ndim == 4:
        raise ShapeError(f"{name}: operands are [batch, sequence, heads, dim], got {shapes}")
    if query.shape[3] != key.shape[3] or list(key.shape[:3]) != list(value.shape[:3]) or query.shape[0] != key.shape[0]:
        raise ShapeError(f"{name}: batches, widths of heads and lengths of key and value should agree, got {shapes}")
    if not key.shape[2] or query.shape[2] % key.shape[2]:
        raise ShapeError(f"{name}: heads of query should be a multiple of those of key and value, got {shapes}")
    return query.shape[2] // key.shape[2]


def _no_seed(name: str, fixed_seed_offset: Any) -> None:
    if fixed_seed_offset is not None:
        raise NotImplementedError(f"{name}: fixed_seed_offset is not implemented; dropout draws from argosy.seed()")


def lower(rows: Any, columns: Any) -> Tensor:
    """The causal mask [rows, columns], aligned at the last row and column: True where a query may see the key."""
    if not (isinstance(rows, int) and isinstance(columns, int)):  # sizes that are open while capturing
        last = op("arange")(columns - rows, columns)
        return op("less_equal")(op("arange")(columns), op("unsqueeze")(last, 1))
    return Tensor(np.tril(np.ones((rows, columns), bool), columns - rows))


@validate_call
def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    *,
    fixed_seed_offset: Tensor | None = None,
    rng_name: str = "",
    training: bool = True,
    name: str | None = None,
    softmax_scale: float | None = None,
) -> tuple[Tensor, Tensor | None]:
    """(attention of query [b, s, h, d] with key and value [b, t, k, d], the weights if ``return_softmax``, else None).

    With ``causal`` a query sees the keys up to its own place, the last query all of them.
    """
    _no_seed("flash_attention", fixed_seed_offset)
    probability = dropout if training else 0.0
    if not return_softmax and not probability and _is_one_operator(query, key, value, causal):
        wide = [x.astype("float32") if x.dtype.itemsize < 4 else x for x in (query, key, value)]
        mixed = op("scaled_dot_product_attention")(*wide, is_causal=causal, scale=softmax_scale)
        return mixed.astype(query.dtype), None
    mask = lower(query.shape[1], key.shape[1]) if causal else None
    mixed, weights, _ = attend("flash_attention", query, key, value, mask, softmax_scale, probability)
    return mixed, weights.astype(query.dtype) if return_softmax else None


def _is_one_operator(query: Tensor, key: Tensor, value: Tensor, causal: bool) -> bool:
    """Whether attention is the operator's, which keeps no weights: of sizes that are known, with as many heads of the
    keys, and, where it is causal, as many places."""
    shapes = [tuple(x.shape) for x in (query, key, value)]
    if any(len(shape) != 4 or not all(type(n) is int for n in shape) for shape in shapes):
        return False
    q, k, v = shapes
    alike = q[0] == k[0] and q[2:] == k[2:] and k == v and query.dtype == key.dtype == value.dtype
    return alike and min(*q, *k) > 0 and (q[1] == k[1] or not causal)


@validate_call
def flash_attn_qkvpacked(
    qkv: Tensor,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    *,
    fixed_seed_offset: Tensor | None = None,
    rng_name: str = "",
    training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor | None]:
    """:func:`flash_attention` of one tensor [b, s, h / k + 2, k, d]: the query heads, then key, then value."""
    if qkv.ndim != 5 or qkv.shape[2] < 3:
        raise ValueError(f"flash_attn_qkvpacked: qkv is [b, s, h / k + 2, k, d], got {list(qkv.shape)}")
    query, key, value = _unpack(qkv)
    return flash_attention(
        query, key, value, dropout, causal, return_softmax, fixed_seed_offset=fixed_seed_offset, training=training
    )


def _unpack(qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    *lead, groups, heads, width = qkv.shape
    query = op("reshape")(qkv[..., :-2, :, :], [*lead, (groups - 2) * heads, width])
    return query, qkv[..., -2, :, :], qkv[..., -1, :, :]


class _Spans:
    """Where the sequences of a packed batch lie: (first row, rows) of each."""

    def __init__(self, name: str, argument: str, cumulative: Any, total: int, padded: int | None, used: Any) -> None:
        edges = to_numpy(cumulative) if type(cumulative) is Tensor else np.asarray(cumulative)
        if edges.ndim != 1 or not len(edges) or edges.dtype.kind not in "iu":
            raise ValueError(f"{name}: {argument} should be integers [b + 1], got {edges.dtype} {list(edges.shape)}")
        lengths = np.diff(edges)
        if edges[0] != 0 or (lengths < 0).any():
            raise ValueError(f"{name}: {argument} should rise from 0, got {edges.tolist()}")
        starts = edges[:-1] if padded is None else np.arange(len(lengths)) * padded
        if used is not None:
            lengths = np.minimum(lengths, to_numpy(used) if type(used) is Tensor else used)
        if len(lengths) and (starts + lengths).max() > total:
            raise ValueError(f"{name}: {argument} {edges.tolist()} reaches beyond the {total} rows there are")
        self.parts = [(int(a), int(n)) for a, n in zip(starts, lengths, strict=True)]


def _each(
    name: str,
    tensors: tuple[Tensor, Tensor, Tensor],
    spans: tuple[_Spans, _Spans],
    masks: Any,
    scale: float | None,
    dropout: float = 0.0,
    softcap: float = 0.0,
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """(mixed [rows, h, d], zero in rows of no sequence; weights and logarithms by sequence)."""
    query, key, value = tensors
    if len(spans[0].parts) != len(spans[1].parts):
        raise ValueError(f"{name}: {len(spans[0].parts)} sequences of queries, {len(spans[1].parts)} of keys")
    pieces, weights, logs, row = [], [], [], 0
    for (a, n), (b, m) in zip(spans[0].parts, spans[1].parts, strict=True):
        pieces.append(_empty_rows(query, a - row))
        q, k, v = (op("unsqueeze")(x, 0) for x in (query[a : a + n], key[b : b + m], value[b : b + m]))
        mixed, w, log = attend(name, q, k, v, masks(n, m), scale, dropout, softcap)
        pieces.append(op("squeeze")(mixed, 0))
        weights.append(w)
        logs.append(op("squeeze")(log, 0))
        row = a + n
    pieces.append(_empty_rows(query, query.shape[0] - row))
    return op("concat")(pieces, 0), weights, logs


def _empty_rows(like: Tensor, rows: int) -> Tensor:
    return op("zeros")([rows, *like.shape[1:]], like.dtype)


def _causal(rows: int, columns: int) -> Tensor:
    return lower(rows, columns)


def _all(rows: int, columns: int) -> None:
    return None


def _padded_weights(weights: Sequence[Tensor], rows: int, columns: int) -> Tensor:
    """[b, h, rows, columns] of the weights of sequences, zero where a sequence is shorter."""
    pad = op("pad")
    filled = [pad(w, [0, columns - w.shape[3], 0, rows - w.shape[2]]) for w in weights]
    return op("concat")(filled, 0)


def flash_attn_unpadded(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: float,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    fixed_seed_offset: Tensor | None = None,
    rng_name: str = "",
    training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Attention within each of several sequences that lie one behind the other: [rows, h, d] with [rows, k, d].

    Sequence i has the rows from ``cu_seqlens[i]`` to ``cu_seqlens[i + 1]``, which are read on the host. Returns (mixed
    [rows, h, d], weights [b, h, max_seqlen_q, max_seqlen_k] if ``return_softmax``, else None).
    """
    this = "flash_attn_unpadded"
    _no_seed(this, fixed_seed_offset)
    spans = (
        _Spans(this, "cu_seqlens_q", cu_seqlens_q, query.shape[0], None, None),
        _Spans(this, "cu_seqlens_k", cu_seqlens_k, key.shape[0], None, None),
    )
    mixed, weights, _ = _each(
        this, (query, key, value), spans, _causal if causal else _all, scale, dropout if training else 0.0
    )
    return mixed, _padded_weights(weights, max_seqlen_q, max_seqlen_k) if return_softmax else None


@validate_call
def flash_attn_varlen_qkvpacked(
    qkv: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: float,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    fixed_seed_offset: Tensor | None = None,
    rng_name: str = "",
    varlen_padded: bool = True,
    training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor | None]:
    """:func:`flash_attn_unpadded` of one tensor [rows, h / k + 2, k, d].

    With ``varlen_padded`` sequence i begins at row ``i * max_seqlen`` and rows behind its end give 0.
    """
    this = "flash_attn_varlen_qkvpacked"
    _no_seed(this, fixed_seed_offset)
    if qkv.ndim != 4 or qkv.shape[1] < 3:
        raise ValueError(f"{this}: qkv is [rows, h / k + 2, k, d], got {list(qkv.shape)}")
    rows = qkv.shape[0]
    spans = (
        _Spans(this, "cu_seqlens_q", cu_seqlens_q, rows, max_seqlen_q if varlen_padded else None, None),
        _Spans(this, "cu_seqlens_k", cu_seqlens_k, rows, max_seqlen_k if varlen_padded else None, None),
    )
    mixed, weights, _ = _each(
        this, _unpack(qkv), spans, _causal if causal else _all, scale, dropout if training else 0.0
    )
    return mixed, _padded_weights(weights, max_seqlen_q, max_seqlen_k) if return_softmax else None


def flash_attn_varlen_func(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    seqused_q: Tensor | None = None,
    seqused_k: Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    qv: Tensor | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    window_size: Sequence[int] = (-1, -1),
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: bool | None = None,
    sm_margin: int = 0,
) -> tuple[Tensor, Tensor]:
    """Attention within sequences that lie one behind the other: (mixed [rows, h, d], logarithms of sums [h, rows]).

    ``seqused`` [b] says how many rows of each sequence count; a query sees ``window_size[0]`` keys to its left and
    ``window_size[1]`` to its right (-1: all). The last three arguments are hints for one GPU and change nothing.
    Raises NotImplementedError for ``qv`` and scales of float8 operands.
    """
    this = "flash_attn_varlen_func"
    for argument, given in (("qv", qv), ("q_descale", q_descale), ("k_descale", k_descale), ("v_descale", v_descale)):
        if given is not None:
            raise NotImplementedError(f"{this}: {argument} is not implemented")
    spans = (
        _Spans(this, "cu_seqlens_q", cu_seqlens_q, query.shape[0], None, seqused_q),
        _Spans(this, "cu_seqlens_k", cu_seqlens_k, key.shape[0], None, seqused_k),
    )
    left, right = window_size[0], 0 if causal else window_size[1]
    mixed, _, logs = _each(
        this, (query, key, value), spans, lambda n, m: _band(n, m, left, right), softmax_scale, softcap=softcap
    )
    return mixed, _logs(logs, spans[0], query)


def _band(rows: int, columns: int, left: int, right: int) -> Tensor | None:
    if left < 0 and right < 0:
        return None
    distance = np.arange(columns) - (np.arange(rows)[:, None] + columns - rows)
    kept = np.ones((rows, columns), bool)
    if left >= 0:
        kept &= distance >= -left
    if right >= 0:
        kept &= distance <= right
    return Tensor(kept)


def _logs(logs: Sequence[Tensor], spans: _Spans, query: Tensor) -> Tensor:
    """[h, rows], -inf in rows of no sequence."""
    pieces, row = [], 0
    for (a, n), log in zip(spans.parts, logs, strict=True):
        pieces += [op("full")([query.shape[1], a - row], float("-inf"), log.dtype), log]
        row = a + n
    last = op("full")([query.shape[1], query.shape[0] - row], float("-inf"), pieces[1].dtype if logs else "float32")
    return op("concat")([*pieces, last], 1)


@validate_call
def flash_attention_v3_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    seqused_q: Tensor | None = None,
    seqused_k: Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    qv: Tensor | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    window_size: Sequence[int] = (-1, -1),
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: bool | None = None,
    sm_margin: int = 0,
) -> tuple[Tensor, Tensor]:
    """The same as :func:`flash_attn_varlen_func`."""
    return flash_attn_varlen_func(
        query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, seqused_q, seqused_k,
        softmax_scale, causal, qv, q_descale, k_descale, v_descale, window_size, softcap,
    )  # fmt: skip
