"""Dropout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.common.arguments import INPUT, axes_of
from argosy_phi_ops.ops.random.values import uniform_values
from argosy_tensorcore.tensor import Tensor


@operator(random=True, aliases=INPUT)
def dropout(
    x: Tensor,
    p: float = 0.5,
    axis: int | Sequence[int] | None = None,
    training: bool = True,
    inplace: bool = False,
    mode: str = "upscale_in_train",
    rng: Tensor | None = None,
    counter: int = 0,
) -> Tensor:
    """Elements set to zero with probability `p` while `training` (Hinton et al., 2012).

    With `axis` one decision is made for each index along it. "upscale_in_train" divides what is kept by ``1 - p``;
    "downscale_in_infer" multiplies by it when not training. `inplace` promises nothing.
    """
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise ValueError(f"dropout: mode {mode!r} is unknown; there are upscale_in_train and downscale_in_infer")
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is a probability, from 0 to 1, got {p}")
    upscale = mode == "upscale_in_train"
    if not training or p == 0:
        return x if upscale or training else prim.mul(x, 1.0 - p)
    if p == 1:
        return prim.mul(x, 0.0)
    axes = range(x.ndim) if axis is None else axes_of("dropout", axis, x.ndim)
    shape = tuple(n if i in axes else 1 for i, n in enumerate(x.shape))
    keep = prim.ge(uniform_values(rng, counter, shape, "float32"), float(p))
    kept = prim.mul(x, 1.0 / (1.0 - p)) if upscale else x
    return prim.select(keep, kept, prim.constant(0, x.dtype, x.shape))


@dropout.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((4, 5))
    yield Sample(x, 0.3)
    yield Sample(x, 0.3, 1)
    yield Sample(x, 0.3, mode="downscale_in_infer")
    yield Sample(x, 0.3, training=False, mode="downscale_in_infer")
    yield Sample(x, 0.3, training=False)
    yield Sample(x, 1)
