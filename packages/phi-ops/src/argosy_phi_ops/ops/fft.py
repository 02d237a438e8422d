"""Discrete Fourier transforms, under the names and attributes of Paddle's kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import DTypeError
from argosy_phi_ops.ops.common.arguments import axis_of
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_tensorcore.tensor import Tensor


def _axes(name: str, x: Tensor, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(axis_of(name, axis, x.ndim) for axis in axes)


def _scale(name: str, x: Tensor, sizes: Sequence[Any], normalization: str, forward: bool) -> Tensor:
    """Scaled by one over the size: "backward" the inverse, "forward" the forward one, "ortho" both by its root."""
    if normalization not in ("backward", "ortho", "forward"):
        raise ValueError(f"{name}: normalization {normalization!r} is unknown; there are backward, ortho and forward")
    if normalization == ("backward" if forward else "forward"):
        return x
    size: Any = 1
    for n in sizes:
        size = size * n
    if isinstance(size, int):
        return prim.mul(x, 1 / sqrt(size) if normalization == "ortho" else 1 / size)
    real = {"complex64": "float32", "complex128": "float64"}.get(x.dtype, x.dtype)
    count = prim.cast(prim.dim_size(dim=size, dtype="int64"), dtype=real)
    factor = prim.rsqrt(count) if normalization == "ortho" else prim.div(1.0, count)
    return prim.mul(x, factor if x.dtype == real else prim.cast(factor, dtype=x.dtype))


def _is_over_nothing(x: Tensor, axes: Sequence[int]) -> bool:
    """Whether an axis has no elements: sums over nothing are zero."""
    return any(x.shape[axis] == 0 for axis in axes)


@operator()
def fft_c2c(x: Tensor, axes: Sequence[int], normalization: str = "backward", forward: bool = True) -> Tensor:
    """The complex transform over `axes`; real `x` is taken as complex."""
    if x.dtype not in COMPLEX:
        x = prim.cast(x, dtype="complex128" if x.dtype == "float64" else "complex64")
    along = _axes("fft_c2c", x, axes)
    if _is_over_nothing(x, along):
        return prim.constant(0.0, x.dtype, x.shape)
    result = prim.fft(x, axes=along, kind="c2c", inverse=not forward)
    return _scale("fft_c2c", result, [x.shape[axis] for axis in along], normalization, forward)


@fft_c2c.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    z = rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))
    yield Sample(z, [1])
    yield Sample(z, [0, -1], "ortho", False)
    yield Sample(z.astype(np.complex64), [0], "forward")
    yield Sample(rng.standard_normal((3, 4)), [1])


@operator()
def fft_r2c(
    x: Tensor, axes: Sequence[int], normalization: str = "backward", forward: bool = True, onesided: bool = True
) -> Tensor:
    """The transform of real `x` over `axes`; the last of them keeps its ``n // 2 + 1`` non-negative frequencies."""
    if x.dtype in COMPLEX:
        raise DTypeError(f"fft_r2c takes real numbers, got {x.type}")
    if not onesided:
        return fft_c2c(x, axes, normalization, forward)
    if x.dtype not in ("float32", "float64"):
        x = prim.cast(x, dtype="float32")
    along = _axes("fft_r2c", x, axes)
    if _is_over_nothing(x, along):
        sizes = [n // 2 + 1 if axis == along[-1] else n for axis, n in enumerate(x.shape)]
        return prim.constant(0.0, "complex128" if x.dtype == "float64" else "complex64", tuple(sizes))
    result = prim.fft(x, axes=along, kind="r2c", inverse=not forward)
    return _scale("fft_r2c", result, [x.shape[axis] for axis in along], normalization, forward)


@fft_r2c.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((3, 4))
    yield Sample(x, [1])
    yield Sample(x.astype(np.float32), [1, 0], "ortho")
    yield Sample(x, [1], onesided=False)
    yield Sample(x, [0], forward=False)


@operator()
def fft_c2r(
    x: Tensor, axes: Sequence[int], normalization: str = "backward", forward: bool = True, last_dim_size: int = 0
) -> Tensor:
    """The real transform of a one-sided spectrum over `axes`, of `last_dim_size` along the last one (0: even)."""
    along = _axes("fft_c2r", x, axes)
    length = last_dim_size or 2 * (x.shape[along[-1]] - 1)
    result = prim.fft(x, axes=along, kind="c2r", inverse=not forward, length=length)
    sizes = [*(x.shape[axis] for axis in along[:-1]), length]
    return _scale("fft_c2r", result, sizes, normalization, forward)


@fft_c2r.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    spectrum = np.fft.rfft(rng.standard_normal((3, 5)))
    yield Sample(spectrum, [1], forward=False, last_dim_size=5)
    yield Sample(spectrum, [0, 1], "ortho", last_dim_size=5)
    yield Sample(np.fft.rfft(rng.standard_normal((3, 4))), [-1], forward=False)
