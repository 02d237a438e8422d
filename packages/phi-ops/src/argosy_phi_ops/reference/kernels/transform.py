"""Fourier transforms without scaling: numpy's, or scipy's (extra ``[fft]``) where it is installed."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import numpy as np

from argosy_phi_ops.reference.kernels.registry import Array, kernel


def _fft_module() -> ModuleType:
    """scipy.fft keeps single precision for every numpy; numpy itself does so from 2.0 on."""
    if find_spec("scipy") is not None:
        return import_module("scipy.fft")
    return np.fft


def _complex_of(x: Array) -> np.dtype[np.complexfloating]:
    return np.dtype(np.complex64 if x.dtype in (np.float32, np.complex64) else np.complex128)


@kernel("fft")
def fft(x: Array, *, axes: Sequence[int], kind: str, inverse: bool = False, length: int = 0) -> Array:
    """Sum over the axes of ``x exp(-2 pi i ...)`` (+ when `inverse`), never scaled.

    kind: c2c; r2c (real `x`, the last of `axes` keeps its non-negative frequencies, n // 2 + 1 of them); c2r
    (the last of `axes` holds those, the real result has `length` along it).
    """
    module = _fft_module()
    along = tuple(axes)
    if kind == "c2c":
        # "forward" scaling leaves the inverse transform unscaled, "backward" the forward one.
        transform, norm = (module.ifftn, "forward") if inverse else (module.fftn, "backward")
        return np.asarray(transform(x, axes=along, norm=norm)).astype(x.dtype, copy=False)
    if kind == "r2c":
        spectrum = np.asarray(module.rfftn(x, axes=along)).astype(_complex_of(x), copy=False)
        return spectrum.conj() if inverse else spectrum
    if kind != "c2r":
        raise ValueError(f"prim.fft: kind {kind!r} is unknown; expected c2c, r2c or c2r")
    real_dtype = np.float32 if x.dtype == np.complex64 else np.float64
    sizes = [*(x.shape[axis] for axis in along[:-1]), length]
    signal = module.irfftn(x if inverse else x.conj(), s=sizes, axes=along, norm="forward")
    return np.asarray(signal).astype(real_dtype, copy=False)
