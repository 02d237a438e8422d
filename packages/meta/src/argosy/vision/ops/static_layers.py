"""The deformable convolution as a function of static programs, which makes its own parameters."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import validate_call
from argosy.static.layers import plain_attribute, require_sizes
from argosy.vision.ops.deformable_convolution import DeformConv2D
from argosy_tensorcore.tensor import Tensor

__all__ = ["deform_conv2d"]


@validate_call
def deform_conv2d(
    x: Tensor,
    offset: Tensor,
    mask: Tensor | None,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    deformable_groups: int = 1,
    im2col_step: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> Tensor:
    """``vision.ops.DeformConv2D(...)(x, offset, mask)``. im2col_step: taken as Paddle takes it, and of no effect."""
    channels = require_sizes("deform_conv2d", x, [1])[0]
    settings = (stride, padding, dilation, deformable_groups, groups, plain_attribute(weight_attr), bias_attr)
    return DeformConv2D(channels, num_filters, filter_size, *settings)(x, offset, mask)
