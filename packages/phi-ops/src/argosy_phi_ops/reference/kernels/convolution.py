"""`conv` by the textbook: dilate, pad, gather every window (im2col), and multiply matrices."""

from collections.abc import Sequence
from math import prod

import numpy as np

from argosy_phi_ops.reference.kernels.layout import pad
from argosy_phi_ops.reference.kernels.registry import Array, kernel, quiet, round_narrow, widen


def _pad(x: Array, padding: Sequence[Sequence[int]], dilation: Sequence[int]) -> Array:
    """`x` [N, C, *S] with `dilation - 1` zeros between neighbours and (before, after) zeros around each
    spatial axis.
    """
    low = [0, 0, *(before for before, _ in padding)]
    high = [0, 0, *(after for _, after in padding)]
    return pad(x, np.zeros((), x.dtype), low=low, high=high, interior=[0, 0, *(d - 1 for d in dilation)])


def _windows(x: Array, kernel_sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Array:
    """A view [N, C, *out, *K] of every window of `x` [N, C, *S]."""
    reach = [(k - 1) * d + 1 for k, d in zip(kernel_sizes, dilation, strict=True)]
    spatial = tuple(range(2, x.ndim))
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=spatial)
    every = [slice(None), slice(None), *(slice(None, None, s) for s in strides)]
    return view[(*every, *(slice(None, None, d) for d in dilation))]


_COLUMNS = 1 << 28
"""Bytes of windows laid side by side at a time."""


@kernel("conv")
def conv(
    x: Array,
    w: Array,
    *,
    strides: Sequence[int],
    padding: Sequence[Sequence[int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    groups: int = 1,
) -> Array:
    """Cross-correlation of x [N, C, *S] with w [O, C/groups, *K]: [N, O, *out]; padding is (before, after)
    per axis.

    Narrow floats accumulate in float32.
    """
    n, sizes = x.shape[0], w.shape[2:]
    outer = _pad(widen(x), padding, lhs_dilation)
    out = _output_sizes(outer.shape[2:], sizes, strides, rhs_dilation)
    if not prod(out) or not x.size or not w.size:
        return np.zeros((n, w.shape[0], *out), x.dtype)
    windows = _windows(outer, sizes, strides, rhs_dilation)
    filters = widen(w).reshape(groups, w.shape[0] // groups, -1).transpose(0, 2, 1)  # [G, C/G K, O/G]
    row = windows[:, :, :1].size * windows.itemsize
    step = max(1, _COLUMNS // row)  # windows side by side take many times the memory of x
    parts = [_product(windows[:, :, i : i + step], filters, len(sizes)) for i in range(0, out[0], step)]
    return round_narrow(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2), x.dtype)


def _product(windows: Array, filters: Array, rank: int) -> Array:
    """[N, O, *out] of windows [N, C, *out, *K] and filters [G, C/G K, O/G]."""
    n, groups, out = windows.shape[0], filters.shape[0], windows.shape[2 : 2 + rank]
    grouped = windows.reshape(n, groups, -1, *windows.shape[2:])
    order = (0, 1, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank))  # [N, G, *out, C/G, *K]
    columns = grouped.transpose(order).reshape(n, groups, prod(out), -1)
    product = quiet.run(np.matmul, columns, filters)  # [N, G, out, O/G]
    found: Array = product.transpose(0, 1, 3, 2).reshape(n, -1, *out)
    return found


def _output_sizes(
    sizes: Sequence[int], kernel_sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> list[int]:
    reach = [(k - 1) * d + 1 for k, d in zip(kernel_sizes, dilation, strict=True)]
    return [max((n - r) // s + 1, 0) for n, r, s in zip(sizes, reach, strides, strict=True)]
