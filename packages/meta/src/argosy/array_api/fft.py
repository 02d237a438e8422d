"""Fourier transforms of the array API standard."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from argosy import fft as transforms
from argosy.array_api.dtypes import check_device
from argosy_tensorcore.dtype import DType, as_dtype, default_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip

Axes = Sequence[builtins.int] | None


def _one(found: Any) -> Tensor:
    tensor: Tensor = found
    return tensor


def fft(x: Tensor, /, *, n: builtins.int | None = None, axis: builtins.int = -1, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform along ``axis``, of ``n`` elements."""
    return _one(transforms.fft(x, n, axis, norm))


def ifft(x: Tensor, /, *, n: builtins.int | None = None, axis: builtins.int = -1, norm: str = "backward") -> Tensor:
    """The inverse of :func:`fft`."""
    return _one(transforms.ifft(x, n, axis, norm))


def rfft(x: Tensor, /, *, n: builtins.int | None = None, axis: builtins.int = -1, norm: str = "backward") -> Tensor:
    """The transform of real numbers: the frequencies that are not negative."""
    return _one(transforms.rfft(x, n, axis, norm))


def irfft(x: Tensor, /, *, n: builtins.int | None = None, axis: builtins.int = -1, norm: str = "backward") -> Tensor:
    """The inverse of :func:`rfft`, of ``n`` (by default an even number of) real elements."""
    return _one(transforms.irfft(x, n, axis, norm))


def hfft(x: Tensor, /, *, n: builtins.int | None = None, axis: builtins.int = -1, norm: str = "backward") -> Tensor:
    """The transform of a Hermitian signal, real."""
    return _one(transforms.hfft(x, n, axis, norm))


def ihfft(x: Tensor, /, *, n: builtins.int | None = None, axis: builtins.int = -1, norm: str = "backward") -> Tensor:
    """The inverse of :func:`hfft`."""
    return _one(transforms.ihfft(x, n, axis, norm))


def fftn(x: Tensor, /, *, s: Axes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The Fourier transform along several axes, all by default."""
    return _one(transforms.fftn(x, s, axes, norm))


def ifftn(x: Tensor, /, *, s: Axes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The inverse of :func:`fftn`."""
    return _one(transforms.ifftn(x, s, axes, norm))


def rfftn(x: Tensor, /, *, s: Axes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The transform of real numbers along several axes."""
    return _one(transforms.rfftn(x, s, axes, norm))


def irfftn(x: Tensor, /, *, s: Axes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The inverse of :func:`rfftn`."""
    return _one(transforms.irfftn(x, s, axes, norm))


def fftfreq(
    n: builtins.int, /, *, d: builtins.float = 1.0, dtype: DType | None = None, device: object = None
) -> Tensor:
    """The frequencies of :func:`fft` over samples at distance ``d``."""
    check_device("fftfreq", device)
    return _one(transforms.fftfreq(n, d, _name(dtype)))


def rfftfreq(
    n: builtins.int, /, *, d: builtins.float = 1.0, dtype: DType | None = None, device: object = None
) -> Tensor:
    """The frequencies of :func:`rfft` over samples at distance ``d``."""
    check_device("rfftfreq", device)
    return _one(transforms.rfftfreq(n, d, _name(dtype)))


def _name(dtype: DType | None) -> str:
    return (default_dtype() if dtype is None else as_dtype(dtype)).name


def fftshift(x: Tensor, /, *, axes: builtins.int | Axes = None) -> Tensor:
    """The frequency zero moved to the middle."""
    return _one(transforms.fftshift(x, axes))


def ifftshift(x: Tensor, /, *, axes: builtins.int | Axes = None) -> Tensor:
    """The inverse of :func:`fftshift`."""
    return _one(transforms.ifftshift(x, axes))
