"""Sums over windows, of which norms of windows are made."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.common.windows import Padding
from argosy_phi_ops.ops.nn.pooling import Sizes, window_sums
from argosy_tensorcore.tensor import Tensor


@operator()
def sum_pool2d(
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    data_format: str = "NCHW",
) -> Tensor:
    """The sum of windows over two spatial axes; padding counts as zeros."""
    return window_sums("sum_pool2d", x, kernel_size, stride, padding, ceil_mode, data_format)


@sum_pool2d.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 5, 7))
    yield Sample(x, [3, 2], 2, 1)
    yield Sample(x, 3, 2, 1, ceil_mode=True)
    yield Sample(x, [2, 3], data_format="NHWC")
