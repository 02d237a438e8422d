"""Short-time Fourier transforms: frames of a signal, their spectra, and back."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from typing import Any

import numpy as np

from argosy import fft
from argosy.argument_checks import validate_call
from argosy.nn import functional as F
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["frame", "istft", "overlap_add", "stft"]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


@validate_call
def frame(x: Tensor, frame_length: int, hop_length: int, axis: int = -1, name: str | None = None) -> Tensor:
    """Overlapping windows of ``x``, each ``hop_length`` after the one before.

    With axis -1 a signal [..., n] gives [..., frame_length, frames], with axis 0 [n, ...] gives
    [frames, frame_length, ...]. Raises ``ValueError`` for another axis, and for windows longer than the signal.
    """
    _require(axis in (0, -1), f"frame: axis is 0 or -1, got {axis}")
    size = x.shape[axis]
    _require(hop_length > 0, f"frame: hop_length should be positive, got {hop_length}")
    _require(0 < frame_length <= size, f"frame: frame_length should be from 1 to {size}, got {frame_length}")
    count = 1 + (size - frame_length) // hop_length
    place = _places(frame_length, count, hop_length)
    at = 0 if axis == 0 else len(x.shape) - 1
    flat = get_operator("gather")(x, Tensor((place.T if axis == 0 else place).ravel()), at)
    inner = [count, frame_length] if axis == 0 else [frame_length, count]
    return flat.reshape([*x.shape[:at], *inner, *x.shape[at + 1 :]])


def _places(frame_length: int, count: int, hop_length: int) -> np.ndarray:
    """Which element of the signal each element [frame_length, frames] is."""
    return np.arange(frame_length)[:, None] + hop_length * np.arange(count)[None, :]


@validate_call
def overlap_add(x: Tensor, hop_length: int, axis: int = -1, name: str | None = None) -> Tensor:
    """The sum of windows laid ``hop_length`` apart: what :func:`frame` makes of ones, counts how often each is used.

    With axis -1 windows [..., frame_length, frames] give [..., n], with axis 0 [frames, frame_length, ...] give
    [n, ...], where n is ``(frames - 1) * hop_length + frame_length``.
    """
    _require(axis in (0, -1), f"overlap_add: axis is 0 or -1, got {axis}")
    _require(hop_length > 0, f"overlap_add: hop_length should be positive, got {hop_length}")
    rank = len(x.shape)
    _require(rank >= 2, f"overlap_add: windows have two axes or more, got {list(x.shape)}")
    count, length = x.shape[:2] if axis == 0 else (x.shape[-1], x.shape[-2])
    place = _places(length, count, hop_length)
    at = 0 if axis == 0 else rank - 2
    outer = [*x.shape[:at], *x.shape[at + 2 :]]
    flat = x.reshape([*outer[:at], length * count, *outer[at:]])
    zeros = get_operator("zeros")([*outer[:at], (count - 1) * hop_length + length, *outer[at:]], x.dtype.name)
    return get_operator("index_add")(zeros, Tensor((place.T if axis == 0 else place).ravel()), at, flat)


@validate_call
def stft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """The spectra of overlapping windows of ``x`` [n] or [batch, n]: [(batch,) frequencies, frames], complex.

    hop_length: from one window to the next, ``n_fft // 4`` by default; window: weights of ``win_length`` elements (by
    default n_fft ones), padded with zeros to ``n_fft``; center: pad the signal by half a window on both sides, so that
    windows are centred at multiples of the hop; normalized: divide by the root of ``n_fft``; onesided: leave out
    negative frequencies, by default of real signals. Raises ``ValueError`` for sizes that do not fit.
    """
    rank = len(x.shape)
    _require(rank in (1, 2), f"stft: x should have one or two axes, got {list(x.shape)}")
    hop, weights = _weights("stft", x, n_fft, hop_length, win_length, window)
    _require(n_fft <= x.shape[-1], f"stft: n_fft should be from 1 to the length {x.shape[-1]}, got {n_fft}")
    batch: Any = x if rank == 2 else x.unsqueeze(0)
    if center:
        _require(pad_mode in ("reflect", "constant"), f"stft: pad_mode is 'reflect' or 'constant', got {pad_mode!r}")
        batch = F.pad(batch.unsqueeze(1), [n_fft // 2, n_fft // 2], pad_mode, data_format="NCL").squeeze(1)
    frames = frame(batch, n_fft, hop) * weights.unsqueeze(-1)
    is_complex = frames.dtype.kind == "c"
    _require(not (is_complex and onesided), "stft: onesided needs a real signal and a real window")
    norm = "ortho" if normalized else "backward"
    half = not is_complex if onesided is None else onesided
    spectra = fft.rfft(frames, axis=1, norm=norm) if half else fft.fft(frames, axis=1, norm=norm)
    return spectra if rank == 2 else spectra.squeeze(0)


def _weights(
    owner: str, x: Tensor, n_fft: int, hop: int | None, win_length: int | None, window: Tensor | None
) -> tuple[int, Any]:
    """The hop, and the window padded to ``n_fft``."""
    hop = n_fft // 4 if hop is None else hop
    length = n_fft if win_length is None else win_length
    _require(hop > 0, f"{owner}: hop_length should be positive, got {hop}")
    _require(0 < length <= n_fft, f"{owner}: win_length should be from 1 to n_fft ({n_fft}), got {length}")
    if window is None:
        real = {"complex64": "float32", "complex128": "float64"}.get(x.dtype.name, x.dtype.name)
        window = get_operator("ones")([length], real)
    shape = list(window.shape)
    _require(shape == [length], f"{owner}: window should have the shape [{length}], got {shape}")
    before = (n_fft - length) // 2
    return hop, F.pad(window, [before, n_fft - length - before]) if length < n_fft else window


@validate_call
def istft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool = True,
    length: int | None = None,
    return_complex: bool = False,
    name: str | None = None,
) -> Tensor:
    """The signal [n] or [batch, n] whose :func:`stft` is nearest to ``x`` (Griffin and Lim, 1984).

    length: of the signal, by default what the windows cover; return_complex: of spectra with all frequencies. Raises
    ``ValueError`` for sizes that do not fit, and where an element of the signal lies under no window.
    """
    rank = len(x.shape)
    _require(x.dtype.kind in "fc", f"istft: x should be complex, got {x.dtype.name}")
    if x.dtype.kind == "f":
        x = get_operator("cast")(x, "complex128" if x.dtype.name == "float64" else "complex64")
    _require(rank in (2, 3), f"istft: x should have two or three axes, got {list(x.shape)}")
    hop, weights = _weights("istft", x, n_fft, hop_length, win_length, window)
    wanted = n_fft // 2 + 1 if onesided else n_fft
    _require(x.shape[-2] == wanted, f"istft: {wanted} frequencies are expected of n_fft={n_fft}, got {x.shape[-2]}")
    _require(x.shape[-1] > 0, "istft: x should hold a frame")
    spectra: Any = x if rank == 3 else x.unsqueeze(0)
    frames = _frames_of(spectra, n_fft, normalized, onesided, return_complex, weights) * weights.unsqueeze(-1)
    cut = slice(*_extent((x.shape[-1] - 1) * hop + n_fft, n_fft, center, length))
    signal = overlap_add(frames, hop)[:, cut]
    square: Any = (weights * weights).unsqueeze(-1).expand([n_fft, x.shape[-1]])
    envelope: Any = overlap_add(square, hop)[cut]
    if not envelope.payload.is_traced:
        _require(bool(envelope.abs().min() >= 1e-11), "istft: the windows should reach every element of the signal")
    signal = signal / envelope
    return signal if rank == 3 else signal.squeeze(0)


def _frames_of(spectra: Any, n_fft: int, normalized: bool, onesided: bool, is_complex: bool, weights: Any) -> Any:
    norm = "ortho" if normalized else "backward"
    if is_complex:
        _require(not onesided, "istft: return_complex needs onesided=False")
        return fft.ifft(spectra, axis=1, norm=norm)
    _require(weights.dtype.kind != "c", "istft: a complex window needs return_complex=True")
    return fft.irfft(spectra if onesided else spectra[:, : n_fft // 2 + 1], n_fft, axis=1, norm=norm)


def _extent(size: int, n_fft: int, center: bool, length: int | None) -> tuple[int, int]:
    """Where the signal lies in what the windows cover."""
    start = n_fft // 2 if center else 0
    if length is not None:
        return start, min(start + length, size)
    return start, size - start
