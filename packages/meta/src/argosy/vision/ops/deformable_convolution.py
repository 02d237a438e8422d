"""Convolution that samples where it is told to (Dai et al., 2017; with modulation, Zhu et al., 2019)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from argosy.argument_checks import Sizes, validate_call
from argosy.nn.initializer import Normal
from argosy.nn.layer import Layer
from argosy.vision.image import beside
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["DeformConv2D", "deform_conv2d"]


def _pair(name: str, value: Any) -> tuple[int, int]:
    first, second = (value, value) if isinstance(value, int) else value
    if first < 0 or second < 0:
        raise ValueError(f"deform_conv2d: {name} should not be negative, got {value!r}")
    return first, second


@validate_call
def deform_conv2d(
    x: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    deformable_groups: int = 1,
    groups: int = 1,
    mask: Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """A convolution whose taps are moved by ``offset`` and weighed by ``mask``.

    x: ``[N, C, H, W]``; offset: ``[N, 2 * D * kh * kw, Ho, Wo]``, pairs (y, x) for each of D groups of channels and
    each tap; weight: ``[M, C / groups, kh, kw]``; mask: ``[N, D * kh * kw, Ho, Wo]``. Gives ``[N, M, Ho, Wo]``; samples
    outside of ``x`` are 0. Differentiable in all tensors.
    """
    n, channels, height, width = x.shape
    outputs, _, kh, kw = weight.shape
    stride, padding, dilation = _pair("stride", stride), _pair("padding", padding), _pair("dilation", dilation)
    rows, columns = offset.shape[2:]
    taps, group = kh * kw, deformable_groups
    if offset.shape[1] != 2 * group * taps or channels % group or channels % groups:
        raise ValueError(
            f"deform_conv2d: offset {offset.shape} and x {x.shape} do not fit a kernel {kh} x {kw} with "
            f"{group} deformable groups and {groups} groups"
        )
    due = tuple(
        (size + 2 * padding[i] - dilation[i] * (k - 1) - 1) // stride[i] + 1
        for i, (size, k) in enumerate(((height, kh), (width, kw)))
    )
    if (rows, columns) != due:
        raise ValueError(f"deform_conv2d: offset should have the output's size {due}, got {(rows, columns)}")
    moved = offset.reshape([n, group, taps, 2, rows, columns])
    at = []
    for i, (count, size) in enumerate(((rows, kh), (columns, kw))):
        tap = np.arange(size) * dilation[i]
        tap = np.repeat(tap, kw) if i == 0 else np.tile(tap, kh)
        base = np.arange(count) * stride[i] - padding[i]
        grid = tap[:, None, None] + (base[:, None] if i == 0 else base[None, :])
        at.append(moved[:, :, :, i] + beside(x, grid.astype(x.dtype.numpy)))
    sampled = _bilinear(x.reshape([n, group, -1, height * width]), at[0], at[1], height, width)
    if mask is not None:
        sampled = sampled * mask.reshape([n, group, 1, taps, rows * columns])
    patches = sampled.reshape([n, groups, channels // groups * taps, rows * columns])
    kernels = weight.reshape([groups, outputs // groups, -1])
    made = get_operator("matmul")(kernels, patches).reshape([n, outputs, rows, columns])
    return made if bias is None else made + bias.reshape([1, -1, 1, 1])


def _bilinear(x: Tensor, y_at: Tensor, x_at: Tensor, height: int, width: int) -> Tensor:
    """``x [N, D, C, H*W]`` at points ``[N, D, taps, Ho, Wo]``: ``[N, D, C, taps, Ho*Wo]``."""
    n, group, channels, _ = x.shape
    taps = y_at.shape[2]
    where, gather = get_operator("where"), get_operator("take_along_axis")
    top, left = y_at.floor(), x_at.floor()
    result: Tensor | None = None
    for down in (0, 1):
        for across in (0, 1):
            row, column = top + down, left + across
            share = (1 - (y_at - row).abs()) * (1 - (x_at - column).abs())
            inside = (row >= 0) & (row <= height - 1) & (column >= 0) & (column <= width - 1)
            share = where(inside, share, share * 0)
            place = row.clip(0, height - 1) * width + column.clip(0, width - 1)
            index = place.detach().cast("int64").reshape([n, group, 1, -1]).expand([n, group, channels, -1])
            part = gather(x, index, 3) * share.reshape([n, group, 1, -1])
            result = part if result is None else result + part
    assert result is not None
    return result.reshape([n, group, channels, taps, -1])


class DeformConv2D(Layer):
    """:func:`deform_conv2d` with weights of its own; called with ``(x, offset, mask=None)``."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        deformable_groups: int = 1,
        groups: int = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        super().__init__()
        if in_channels % groups:
            raise ValueError(f"DeformConv2D: {in_channels} channels are no multiple of {groups} groups")
        size = _pair("kernel_size", kernel_size)
        self._options = (stride, padding, dilation, deformable_groups, groups)
        spread = math.sqrt(2.0 / (size[0] * size[1] * in_channels))
        self.weight: Any = self.create_parameter(
            [out_channels, in_channels // groups, *size], weight_attr, default_initializer=Normal(0.0, spread)
        )
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        """The convolved features."""
        return deform_conv2d(x, offset, self.weight, self.bias, *self._options, mask=mask)
