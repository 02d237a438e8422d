"""Fourier transforms without scaling, by the best library that is installed (see `fourier`)."""

from collections.abc import Sequence

from argosy_phi_ops.reference.kernels.fourier import fft_library, library
from argosy_phi_ops.reference.kernels.registry import Array, kernel, kernel_into


@kernel("fft")
def fft(x: Array, *, axes: Sequence[int], kind: str, inverse: bool = False, length: int = 0) -> Array:
    """Sum over the axes of ``x exp(-2 pi i ...)`` (+ when `inverse`), never scaled.

    kind: c2c; r2c (real `x`, the last of `axes` keeps its non-negative frequencies, n // 2 + 1 of them); c2r
    (the last of `axes` holds those, the real result has `length` along it).
    """
    return _transform(x, axes, kind, inverse, length, None)


@kernel_into("fft")
def fft_into(out: Array, x: Array, *, axes: Sequence[int], kind: str, inverse: bool = False, length: int = 0) -> None:
    """The same, written to `out`."""
    _transform(x, axes, kind, inverse, length, out)


def _transform(x: Array, axes: Sequence[int], kind: str, inverse: bool, length: int, out: Array | None) -> Array:
    along, best = tuple(axes), library() if x.size and axes else fft_library("numpy")  # ducc0 wants elements
    if kind == "c2c":
        return best.c2c(x, along, inverse, out)
    if kind == "r2c":
        return best.r2c(x, along, inverse, out)
    if kind != "c2r":
        raise ValueError(f"prim.fft: kind {kind!r} is unknown; expected c2c, r2c or c2r")
    return best.c2r(x, along, inverse, length, out)
