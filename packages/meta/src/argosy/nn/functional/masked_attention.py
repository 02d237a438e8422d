"""Attention with sparse masks: bounds by column (FlashMask, Wang et al., 2024), or rows of a CSR matrix."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy.argument_checks import validate_call
from argosy.nn.functional.flash_attention import _no_seed, attend, lower
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = ["flashmask_attention", "sparse_attention"]

_BLOCK = 128


@validate_call
def flashmask_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    startend_row_indices: Tensor | None = None,
    *,
    dropout: float = 0.0,
    causal: bool = False,
    window_size: int | tuple[int, int] | None = None,
    return_softmax_lse: bool = False,
    return_seed_offset: bool = False,
    fixed_seed_offset: Tensor | None = None,
    rng_name: str = "",
    training: bool = True,
    name: str | None = None,
    softmax_scale: float | None = None,
    block_mask: Tensor | None = None,
) -> Tensor | list[Tensor]:
    """Attention of query [b, s, h, d] with key and value [b, t, k, d], masked by rows for each column.

    ``startend_row_indices`` [b, 1 or k or h, t, n] int32 hides from key j, when ``causal`` (n = 1) the queries from its
    number on, or (n = 2) from the first number to the second, and those before j; else (n = 2) those from the first
    number on and those before the second, or (n = 4) the two ranges. ``window_size`` takes its place: a query sees that
    many keys to the left and the right. ``block_mask`` [b, 1 or k or h, s / 128, t / 128] keeps whole blocks where 1.
    With ``return_softmax_lse`` a list with the logarithms of sums [b, h, s] as well. A query that sees nothing gives 0.
    """
    this = "flashmask_attention"
    _no_seed(this, fixed_seed_offset)
    if return_seed_offset:
        raise NotImplementedError(f"{this}: return_seed_offset is not implemented")
    heads = query.shape[2]
    if window_size is not None:
        if startend_row_indices is not None:
            raise ValueError(f"{this}: window_size and startend_row_indices exclude each other")
        startend_row_indices = _window(query.shape[1], key.shape[1], window_size, causal)
    if startend_row_indices is None:
        if block_mask is not None:
            raise ValueError(f"{this}: block_mask needs startend_row_indices beside it")
        mask = lower(query.shape[1], key.shape[1]) if causal else None
    else:
        mask = _mask_of_bounds(this, startend_row_indices, query, key, causal, heads)
    if block_mask is not None:
        mask = op("logical_and")(mask, _blocks(this, block_mask, query.shape[1], key.shape[1], heads))
    mixed, _, logs = attend(this, query, key, value, mask, softmax_scale, dropout if training else 0.0)
    return [mixed, logs] if return_softmax_lse else mixed


def _window(rows: int, columns: int, window: int | tuple[int, int], causal: bool) -> Tensor:
    left, right = (window, window) if isinstance(window, int) else window
    down = np.clip(np.arange(columns) + left + 1, 0, rows)
    bounds = [down] if causal else [down, np.clip(np.arange(columns) - right, 0, rows)]
    return Tensor(np.stack(bounds, -1).astype("int32")[None, None])


def _mask_of_bounds(name: str, bounds: Tensor, query: Tensor, key: Tensor, causal: bool, heads: int) -> Tensor:
    """The mask [b, heads or 1, s, t] that the rows' bounds describe."""
    sizes = (1, 2) if causal else (2, 4)
    if bounds.dtype.name != "int32":
        raise TypeError(f"{name}: startend_row_indices should be int32, got {bounds.dtype.name}")
    shape = list(bounds.shape)
    fits = len(shape) == 4 and shape[0] in (1, key.shape[0]) and shape[2] == key.shape[1] and shape[3] in sizes
    if not fits or shape[1] not in (1, key.shape[2], heads):
        raise ValueError(
            f"{name}: startend_row_indices should be [{key.shape[0]}, 1 or {key.shape[2]} or {heads}, {key.shape[1]}, "
            f"{sizes[0]} or {sizes[1]}] with causal={causal}, got {shape}"
        )
    row = op("reshape")(op("arange")(0, query.shape[1], 1, "int32"), [1, 1, -1, 1])
    column = op("reshape")(op("arange")(0, key.shape[1], 1, "int32"), [1, 1, 1, -1])
    numbers = [op("unsqueeze")(bounds[..., i], 2) for i in range(shape[3])]
    hidden = row >= numbers[0]
    if shape[3] == sizes[1]:
        hidden = op("logical_and")(hidden, row < numbers[1])
    if causal:
        upper = row < column
    elif shape[3] == 2:
        upper = row < numbers[1]
    else:
        upper = op("logical_and")(row >= numbers[2], row < numbers[3])
    return _for_heads(op("logical_not")(op("logical_or")(hidden, upper)), heads)


def _for_heads(mask: Tensor, heads: int) -> Tensor:
    return mask if mask.shape[1] in (1, heads) else op("repeat_interleave")(mask, heads // mask.shape[1], 1)


def _blocks(name: str, mask: Tensor, rows: int, columns: int, heads: int) -> Tensor:
    wanted = [-(-rows // _BLOCK), -(-columns // _BLOCK)]
    if mask.ndim != 4 or list(mask.shape[2:]) != wanted:
        raise ValueError(f"{name}: block_mask should be [b, heads, {wanted[0]}, {wanted[1]}], got {list(mask.shape)}")
    wide = op("repeat_interleave")(op("repeat_interleave")(mask.astype("bool"), _BLOCK, 2), _BLOCK, 3)
    return _for_heads(wide[:, :, :rows, :columns], heads)


@validate_call
def sparse_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sparse_csr_offset: Tensor,
    sparse_csr_columns: Tensor,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """Attention of operands [b, h, s, d] where query i sees the keys ``columns[offset[i]:offset[i + 1]]`` alone.

    ``sparse_csr_offset`` [b, h, s + 1] and ``sparse_csr_columns`` [b, h, n] are int32 and read on the host. A 0 in
    ``key_padding_mask`` [b, s] or ``attn_mask`` [s, s] hides as well. The scores are computed densely.
    """
    this = "sparse_attention"
    batch, heads, length = query.shape[:3]
    offsets, columns = to_numpy(sparse_csr_offset), to_numpy(sparse_csr_columns)
    if list(offsets.shape) != [batch, heads, length + 1] or list(columns.shape[:2]) != [batch, heads]:
        raise ValueError(
            f"{this}: for a query {list(query.shape)} sparse_csr_offset should be {[batch, heads, length + 1]} and "
            f"sparse_csr_columns {[batch, heads, 'n']}, got {list(offsets.shape)} and {list(columns.shape)}"
        )
    kept = np.zeros((batch, heads, length, key.shape[2]), bool)
    for b in range(batch):
        for h in range(heads):
            _fill(this, kept[b, h], offsets[b, h], columns[b, h])
    mask = Tensor(kept)
    if key_padding_mask is not None:
        hidden = op("reshape")(key_padding_mask, [batch, 1, 1, -1])
        mask = op("logical_and")(mask, op("not_equal")(hidden, 0.0))
    if attn_mask is not None:
        mask = op("logical_and")(mask, op("not_equal")(attn_mask, 0.0))
    q, k, v = (op("transpose")(x, [0, 2, 1, 3]) for x in (query, key, value))
    return op("transpose")(attend(this, q, k, v, mask)[0], [0, 2, 1, 3])


def _fill(name: str, kept: np.ndarray, offsets: np.ndarray, columns: Sequence[int] | np.ndarray) -> None:
    """Mark the elements of one CSR matrix in ``kept``."""
    counts = np.diff(offsets)
    used = np.asarray(columns)[: int(offsets[-1])]
    if offsets[0] != 0 or (counts < 0).any() or len(used) != offsets[-1]:
        raise ValueError(f"{name}: sparse_csr_offset should rise from 0 to at most {len(columns)}, got {offsets}")
    if len(used) and not (used.min() >= 0 and used.max() < kept.shape[1]):
        raise ValueError(f"{name}: sparse_csr_columns should lie in [0, {kept.shape[1]}), got {used}")
    kept[np.repeat(np.arange(len(counts)), counts), used] = True
