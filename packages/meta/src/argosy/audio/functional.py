"""Mel scales, banks of filters, decibels and cosine transforms."""

# mypy: disable-error-code="operator,no-any-return"
from __future__ import annotations

import math
from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy.argument_checks import validate_call
from argosy.signal.windows import get_window
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "compute_fbank_matrix", "create_dct", "fft_frequencies", "get_window", "hz_to_mel", "mel_frequencies",
    "mel_to_hz", "power_to_db",
]  # fmt: skip

_STEP = 200.0 / 3
"""Hertz of one mel below 1000 Hz, where Slaney's scale (1998) is linear; above it 27 mels are a factor of 6.4."""
_BREAK = 1000.0
_LOG_STEP = math.log(6.4) / 27.0


@validate_call
def hz_to_mel(freq: Tensor | float, htk: bool = False) -> Any:
    """Mels of frequencies in Hz, on Slaney's scale, or with ``htk`` by ``2595 log10(1 + f / 700)``."""
    if not isinstance(freq, Tensor):
        return float(_mels(np.asarray(freq, np.float64), htk))
    if htk:
        return 2595.0 * op("log10")(1.0 + freq / 700.0)
    above = _BREAK / _STEP + op("log")(freq / _BREAK + 1e-10) / _LOG_STEP
    return op("where")(freq > _BREAK, above, freq / _STEP)


def _mels(freq: np.ndarray, htk: bool) -> np.ndarray:
    if htk:
        return 2595.0 * np.log10(1.0 + freq / 700.0)
    above = _BREAK / _STEP + np.log(np.maximum(freq, _BREAK) / _BREAK + 1e-10) / _LOG_STEP
    return np.where(freq >= _BREAK, above, freq / _STEP)


@validate_call
def mel_to_hz(mel: Tensor | float, htk: bool = False) -> Any:
    """Frequencies in Hz of mels: the inverse of :func:`hz_to_mel`."""
    if not isinstance(mel, Tensor):
        return float(_frequencies(np.asarray(mel, np.float64), htk))
    if htk:
        return 700.0 * (op("pow")(10.0, mel / 2595.0) - 1.0)
    above = _BREAK * op("exp")(_LOG_STEP * (mel - _BREAK / _STEP))
    return op("where")(mel > _BREAK / _STEP, above, mel * _STEP)


def _frequencies(mel: np.ndarray, htk: bool) -> np.ndarray:
    if htk:
        return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    return np.where(mel >= _BREAK / _STEP, _BREAK * np.exp(_LOG_STEP * (mel - _BREAK / _STEP)), mel * _STEP)


def _tensor(array: np.ndarray, dtype: str) -> Tensor:
    return Tensor(array.astype(as_dtype(dtype).numpy))


def _spread_mels(n_mels: int, f_min: float, f_max: float, htk: bool) -> np.ndarray:
    """Frequencies in Hz whose mels lie at equal distances."""
    low, high = _mels(np.asarray([f_min, f_max], np.float64), htk)
    return _frequencies(np.linspace(low, high, n_mels), htk)


@validate_call
def mel_frequencies(
    n_mels: int = 64, f_min: float = 0.0, f_max: float = 11025.0, htk: bool = False, dtype: str = "float32"
) -> Tensor:
    """``n_mels`` frequencies in Hz from ``f_min`` to ``f_max`` at equal distances on the mel scale."""
    return _tensor(_spread_mels(n_mels, f_min, f_max, htk), dtype)


@validate_call
def fft_frequencies(sr: int, n_fft: int, dtype: str = "float32") -> Tensor:
    """The frequencies in Hz of the ``1 + n_fft // 2`` elements of a real signal's spectrum, at ``sr`` samples a
    second."""
    return _tensor(np.linspace(0.0, sr / 2, 1 + n_fft // 2), dtype)


@validate_call
def compute_fbank_matrix(
    sr: int,
    n_fft: int,
    n_mels: int = 64,
    f_min: float = 0.0,
    f_max: float | None = None,
    htk: bool = False,
    norm: str | float | None = "slaney",
    dtype: str = "float32",
) -> Tensor:
    """Triangular filters [n_mels, 1 + n_fft // 2] that overlap by half, spread over the mel scale.

    norm: "slaney" for triangles of equal area, a number for rows of that norm, None for triangles of height 1.
    """
    edges = _spread_mels(n_mels + 2, f_min, sr / 2 if f_max is None else f_max, htk)
    ramps = edges[:, None] - np.linspace(0.0, sr / 2, 1 + n_fft // 2)[None, :]
    rising, falling = -ramps[:-2] / np.diff(edges)[:-1, None], ramps[2:] / np.diff(edges)[1:, None]
    weights = np.maximum(0.0, np.minimum(rising, falling))
    if norm == "slaney":
        weights *= (2.0 / (edges[2:] - edges[:-2]))[:, None]
    elif isinstance(norm, (int, float)):
        weights /= np.maximum(np.linalg.norm(weights, norm, axis=-1, keepdims=True), 1e-12)
    elif norm is not None:
        raise ValueError(f"compute_fbank_matrix(): argument 'norm' should be 'slaney', a number or None, got {norm!r}")
    return _tensor(weights, dtype)


@validate_call
def power_to_db(spect: Tensor, ref_value: float = 1.0, amin: float = 1e-10, top_db: float | None = 80.0) -> Tensor:
    """Decibels of powers against ``ref_value``; powers below ``amin`` count as it, and what is more than ``top_db``
    below the greatest is raised to there."""
    for argument, value in (("amin", amin), ("ref_value", ref_value)):
        if value <= 0:
            raise ValueError(f"power_to_db(): argument {argument!r} should be positive, got {value}")
    if top_db is not None and top_db < 0:
        raise ValueError(f"power_to_db(): argument 'top_db' should not be negative, got {top_db}")
    found: Any = 10.0 * op("log10")(op("maximum")(spect, op("full_like")(spect, amin)))
    found = found - 10.0 * math.log10(max(ref_value, amin))
    return found if top_db is None else op("maximum")(found, found.max() - top_db)


@validate_call
def create_dct(n_mfcc: int, n_mels: int, norm: str | None = "ortho", dtype: str = "float32") -> Tensor:
    """The matrix [n_mels, n_mfcc] of a discrete cosine transform (type II), orthogonal with ``norm`` "ortho"."""
    if norm not in (None, "ortho"):
        raise ValueError(f"create_dct(): argument 'norm' should be 'ortho' or None, got {norm!r}")
    rows = np.cos(math.pi / n_mels * (np.arange(n_mels) + 0.5) * np.arange(n_mfcc)[:, None])
    if norm is None:
        rows *= 2.0
    else:
        rows[:1] /= math.sqrt(2.0)
        rows *= math.sqrt(2.0 / n_mels)
    return _tensor(rows.T, dtype)
