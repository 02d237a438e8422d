"""Libraries of Fourier transforms behind one interface, best first: ducc0, scipy, numpy.

ducc0 (extra ``[fft]``; Reinecke's library, which jax uses, too) keeps single precision, has its own vector code for
each processor, keeps its plans, and writes results where they are wanted. scipy is next; numpy is always there.
Transforms are over several axes, unscaled, and of either sign of the exponent. The lines of a transform are
independent, so the number of threads does not change a bit of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from argosy_hwadapt.cpu.features import physical_cores
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_phi_ops.settings import NUM_THREADS

__all__ = ["Library", "fft_library", "library", "threads_for"]

_WORTH_THREADS = 1 << 16
"""Elements from which on a second thread pays."""


class Library(Protocol):
    """Transforms along ``axes``; ``out``, where given, takes the result and does not overlap ``x``."""

    def c2c(self, x: Array, axes: Sequence[int], inverse: bool, out: Array | None) -> Array:
        """Complex to complex."""

    def r2c(self, x: Array, axes: Sequence[int], inverse: bool, out: Array | None) -> Array:
        """Real to the ``n // 2 + 1`` first frequencies along the last of ``axes``."""

    def c2r(self, x: Array, axes: Sequence[int], inverse: bool, length: int, out: Array | None) -> Array:
        """The way back, to ``length`` along the last of ``axes``."""


class _Ducc:
    """ducc0."""

    def __init__(self) -> None:
        self._fft: Any = import_module("ducc0").fft

    def c2c(self, x: Array, axes: Sequence[int], inverse: bool, out: Array | None) -> Array:
        made: Array = self._fft.c2c(x, axes=axes, forward=not inverse, out=out, nthreads=threads_for(x))
        return made

    def r2c(self, x: Array, axes: Sequence[int], inverse: bool, out: Array | None) -> Array:
        made: Array = self._fft.r2c(x, axes=axes, forward=not inverse, out=out, nthreads=threads_for(x))
        return made

    def c2r(self, x: Array, axes: Sequence[int], inverse: bool, length: int, out: Array | None) -> Array:
        half, threads = _fit(x, axes[-1], length // 2 + 1), threads_for(x)
        made: Array = self._fft.c2r(half, axes=axes, lastsize=length, forward=not inverse, out=out, nthreads=threads)
        return made


class _Numpy:
    """numpy.fft; before numpy 2 it computes in double precision."""

    def __init__(self) -> None:
        self._fft: Any = np.fft

    def c2c(self, x: Array, axes: Sequence[int], inverse: bool, out: Array | None) -> Array:
        # "forward" scaling leaves the inverse transform unscaled, "backward" the forward one.
        transform, norm = (self._fft.ifftn, "forward") if inverse else (self._fft.fftn, "backward")
        return _place(transform(x, axes=axes, norm=norm, **self._options(x)), x.dtype, out)

    def r2c(self, x: Array, axes: Sequence[int], inverse: bool, out: Array | None) -> Array:
        spectrum = self._fft.rfftn(x, axes=axes, **self._options(x))
        wide = np.complex64 if x.dtype == np.float32 else np.complex128
        return _place(spectrum.conj() if inverse else spectrum, np.dtype(wide), out)

    def c2r(self, x: Array, axes: Sequence[int], inverse: bool, length: int, out: Array | None) -> Array:
        sizes = [*(x.shape[axis] for axis in axes[:-1]), length]
        turned = x if inverse else x.conj()
        signal = self._fft.irfftn(turned, s=sizes, axes=axes, norm="forward", **self._options(x))
        return _place(signal, np.dtype(np.float32 if x.dtype == np.complex64 else np.float64), out)

    def _options(self, x: Array) -> dict[str, Any]:
        return {}


class _Scipy(_Numpy):
    """scipy.fft, which keeps single precision beside any numpy."""

    def __init__(self) -> None:
        self._fft = import_module("scipy.fft")

    def _options(self, x: Array) -> dict[str, Any]:
        return {"workers": threads_for(x)}


_LIBRARIES: dict[str, Callable[[], Library]] = {"ducc0": _Ducc, "scipy": _Scipy, "numpy": _Numpy}


def _place(made: Any, dtype: np.dtype[Any], out: Array | None) -> Array:
    if out is None:
        return np.asarray(made).astype(dtype, copy=False)
    out[...] = made
    return out


def fft_library(name: str) -> Library:
    """The library of that name: "ducc0", "scipy" or "numpy". Raises ``ModuleNotFoundError`` where it is missing."""
    return _LIBRARIES[name]()


@cache
def library() -> Library:
    """The best one that is installed."""
    return fft_library(next(name for name in _LIBRARIES if find_spec(name) is not None))


def _fit(x: Array, axis: int, size: int) -> Array:
    """``x`` with ``size`` elements along ``axis``: the first ones, or zeros after them."""
    missing = size - x.shape[axis]
    if missing <= 0:
        return x[tuple(slice(size) if i == axis % x.ndim else slice(None) for i in range(x.ndim))]
    return np.pad(x, [(0, missing if i == axis % x.ndim else 0) for i in range(x.ndim)])


def threads_for(x: Array) -> int:
    """How many threads transform ``x``: one where it is small, else as many as compiled programs use."""
    return NUM_THREADS.read() or physical_cores() if x.size >= _WORTH_THREADS else 1
