"""Convolution of sparse tensors [N, *spatial, C] whose channels are dense, by rows of values that windows reach.

Memory and time go with the pairs of stored values and results, not with the grid. Where the results lie depends on
indices, which are read.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.sparse.nn.functional.neighbours import Window, rule_book
from argosy.sparse.tensors import SparseCooTensor, scatter_sum
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.ops.common.arguments import per_axis
from argosy_phi_ops.ops.common.windows import padding_pairs
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "channels_of", "conv2d", "conv3d", "convolve", "subm_conv2d", "subm_conv2d_igemm", "subm_conv3d",
    "subm_conv3d_igemm", "window_of",
]  # fmt: skip

Sizes = int | Sequence[int]
Padding = int | str | Sequence[Any]


@validate_call
def conv2d(
    x: SparseCooTensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str = "NHWC",
    name: str | None = None,
) -> SparseCooTensor:
    """Cross-correlation of x [N, H, W, C] with weight [kh, kw, C, C'], at all positions that a stored value reaches.

    x: COO with dense channels; groups: 1 only, as in Paddle; padding as in :func:`argosy.nn.functional.conv2d`.
    """
    return convolve("conv2d", x, weight, bias, (stride, padding, dilation), groups, data_format, False)


@validate_call
def conv3d(
    x: SparseCooTensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> SparseCooTensor:
    """:func:`conv2d` of x [N, D, H, W, C] with weight [kd, kh, kw, C, C']."""
    return convolve("conv3d", x, weight, bias, (stride, padding, dilation), groups, data_format, False)


@validate_call
def subm_conv2d(
    x: SparseCooTensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str = "NHWC",
    key: str | None = None,
    name: str | None = None,
) -> SparseCooTensor:
    """The submanifold form of :func:`conv2d`: results at the positions of x, in its order, under the window's middle.

    stride and padding have no effect, as in Paddle; ``key``, the name of positions that calls share, neither.
    """
    return convolve("subm_conv2d", x, weight, bias, (stride, padding, dilation), groups, data_format, True)


@validate_call
def subm_conv3d(
    x: SparseCooTensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str = "NDHWC",
    key: str | None = None,
    name: str | None = None,
) -> SparseCooTensor:
    """:func:`subm_conv2d` of x [N, D, H, W, C] with weight [kd, kh, kw, C, C']."""
    return convolve("subm_conv3d", x, weight, bias, (stride, padding, dilation), groups, data_format, True)


subm_conv2d_igemm = subm_conv2d
"""The same: in Paddle the name of another algorithm."""

subm_conv3d_igemm = subm_conv3d
"""The same: in Paddle the name of another algorithm."""


def channels_of(owner: str, x: Any, data_format: str) -> Any:
    """``x`` as values [nnz, C] in a grid. Raises TypeError or ValueError where it is none of that format."""
    if not isinstance(x, SparseCooTensor):
        raise TypeError(f"{owner}(): argument 'x' must be a SparseCooTensor, got {type(x).__name__}")
    wanted = "NDHWC" if owner.endswith("3d") else "NHWC"
    if data_format != wanted:
        raise ValueError(f"{owner}(): data_format should be {wanted!r}, got {data_format!r}")
    if x.ndim != len(wanted) or x.dense_dim() != 1:
        kinds = f"{list(x.shape)} with {x.dense_dim()} dense axes"
        raise ValueError(f"{owner}(): argument 'x' must be of {wanted} with dense channels, got {kinds}")
    return x if np.unique(x.keys()).size == x.nnz() else x.coalesce()


def window_of(owner: str, x: Any, sizes: Sequence[int], stride: Any, padding: Any, dilation: Any, kept: bool) -> Window:
    """The window of these settings over the spatial axes of ``x``."""
    rank = x.ndim - 2
    strides = per_axis(owner, stride, rank, "stride")
    dilations = per_axis(owner, dilation, rank, "dilation")
    pairs = padding_pairs(owner, padding, x.shape[1:-1], sizes, strides, dilations, True)
    return Window(tuple(sizes), tuple(strides), tuple(pairs), tuple(dilations), kept)


def convolve(
    owner: str,
    x: Any,
    weight: Any,
    bias: Any,
    settings: tuple[Any, Any, Any],
    groups: int,
    data_format: str,
    kept: bool,
) -> SparseCooTensor:
    """The convolution of which all others are forms; settings: stride, padding, dilation."""
    if groups != 1:
        raise NotImplementedError(f"{owner}(): groups {groups}; sparse convolutions have one group")
    found = channels_of(owner, x, data_format)
    if len(weight.shape) != found.ndim or weight.shape[-2] != found.shape[-1]:
        wanted = f"[*kernel, {found.shape[-1]}, channels] of {found.ndim} axes"
        raise ValueError(f"{owner}(): argument 'weight' must be {wanted}, got {list(weight.shape)}")
    sizes = [int(n) for n in weight.shape[:-2]]
    window = window_of(owner, found, sizes, *settings, kept)
    shape = [found.shape[0], *window.result(found.shape[1:-1]), weight.shape[-1]]
    if min(shape) < 1:
        raise ValueError(f"{owner}(): a kernel {sizes} does not fit into {list(found.shape[1:-1])}")
    rules = rule_book(found.indices().numpy(), found.sparse_shape, window)
    values = _gathered_products(found.values(), weight, rules.taken, rules.counts)
    values = scatter_sum(values, Tensor(rules.given), rules.indices.shape[1])
    values = values if bias is None else values + bias
    if kept:
        return SparseCooTensor(found.indices(), values, shape, found.is_coalesced())
    return SparseCooTensor(Tensor(rules.indices), values, shape, True)


def _gathered_products(values: Any, weight: Any, taken: Any, counts: list[int]) -> Any:
    """For each pair its row of ``values`` times the matrix [C, C'] of its place in the window."""
    rows = op("gather")(values, Tensor(taken), 0)
    matrices = weight.reshape([-1, *weight.shape[-2:]])
    parts, start = [], 0
    for place, count in enumerate(counts):
        if count:
            parts.append(op("matmul")(rows[start : start + count], matrices[place]))
            start += count
    return op("concat")(parts) if parts else op("zeros")([0, weight.shape[-1]], values.dtype.name)
