"""Fourier transforms, windows and what is made of spectra."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_infer.onnx.document import dtype_name
from argosy_infer.onnx.registry import Values, onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of, tensor_of


def _complex(x: Any) -> Any:
    """Tensors [..., 1 or 2] of real or of real and imaginary parts as complex ones [...]."""
    last = len(shape_of(x)) - 1
    real = phi.squeeze(phi.slice(x, [last], [0], [1]), last)
    if shape_of(x)[last] == 1:
        return phi.complex(real, phi.zeros_like(real))
    return phi.complex(real, phi.squeeze(phi.slice(x, [last], [1], [2]), last))


def _fitted(x: Any, axis: int, count: int) -> Any:
    """``count`` elements along an axis: the first ones, or zeros after them."""
    n, rank = shape_of(x)[axis], len(shape_of(x))
    if n >= count:
        return phi.slice(x, [axis], [0], [count]) if n > count else x
    high = tuple(count - n if i == axis else 0 for i in range(rank))
    return prim.pad(x, phi.full([], 0, x.payload.dtype.name), low=(0,) * rank, high=high, interior=(0,) * rank)


def _transform(x: Any, length: Any, axis: int, inverse: int, onesided: int) -> Any:
    if inverse and onesided:
        raise NotImplementedError("DFT, inverse and of one side")
    dtype = x.payload.dtype.name
    wide = x if dtype in ("float32", "float64") else prim.cast(x, dtype="float32")
    count = shape_of(x)[axis] if length is None else int(length.reshape(-1)[0])
    found = phi.fft_c2c(_complex(_fitted(wide, axis, count)), [axis], "backward", not inverse)
    if onesided:
        found = phi.slice(found, [axis], [0], [count // 2 + 1])
    return prim.cast(phi.as_real(found), dtype=dtype)


@onnx_operator("DFT", since=17)
def dft_by_attribute(
    x: Any, dft_length: Values | None = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Any:
    """The discrete Fourier transform along an axis; the last axis of ``x`` and of the result has parts of numbers."""
    return _transform(x, dft_length, axis % len(shape_of(x)), inverse, onesided)


@onnx_operator("DFT", since=20)
def dft(
    x: Any, dft_length: Values | None = None, axis: Values | None = None, *, inverse: int = 0, onesided: int = 0
) -> Any:
    """The discrete Fourier transform along an axis, by default the one before the last."""
    along = -2 if axis is None else int(axis.reshape(-1)[0])
    return _transform(x, dft_length, along % len(shape_of(x)), inverse, onesided)


@onnx_operator("STFT")
def stft(
    signal: Any, frame_step: Values, window: Any = None, frame_length: Values | None = None, *, onesided: int = 1
) -> Any:
    """Transforms of frames of a signal [N, T, 1 or 2]: [N, frames, frequencies, 2]."""
    step = int(frame_step.reshape(-1)[0])
    length = shape_of(window)[0] if frame_length is None else int(frame_length.reshape(-1)[0])
    rows, steps, parts = shape_of(signal)
    count = 1 + (steps - length) // step
    places = np.arange(count)[:, None] * step + np.arange(length)[None]
    frames = phi.index_select(signal, tensor_of(places.reshape(-1).astype(np.int64)), 1)
    frames = phi.reshape(frames, [rows, count, length, parts])
    if window is not None:
        frames = prim.mul(frames, phi.reshape(window, [1, 1, length, 1]))
    return _transform(frames, None, 2, 0, onesided)


_WINDOWS: dict[str, tuple[float, ...]] = {
    "HannWindow": (0.5, 0.5),
    "HammingWindow": (25 / 46, 21 / 46),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}
"""Factors of cosines, their signs in turn."""


def _declare(name: str, factors: tuple[float, ...]) -> None:
    @onnx_operator(name)
    def window(size: Values, *, output_datatype: int = 1, periodic: int = 1) -> Any:
        count = int(size.reshape(-1)[0])
        angle = 2 * np.pi * np.arange(count) / max(count if periodic else count - 1, 1)
        found = sum((-1) ** k * factor * np.cos(k * angle) for k, factor in enumerate(factors))
        return prim.cast(tensor_of(found), dtype=dtype_name(output_datatype, name))


for _name, _factors in _WINDOWS.items():
    _declare(_name, _factors)


@onnx_operator("MelWeightMatrix")
def mel_weight_matrix(
    num_mel_bins: Values,
    dft_length: Values,
    sample_rate: Values,
    lower: Values,
    upper: Values,
    *,
    output_datatype: int = 1,
) -> Any:
    """Triangles over frequencies whose centres are even on the mel scale: [dft_length / 2 + 1, bins]."""
    bins, length, rate = (int(each.reshape(-1)[0]) for each in (num_mel_bins, dft_length, sample_rate))
    low, high = (2595 * np.log10(1 + float(each.reshape(-1)[0]) / 700) for each in (lower, upper))
    mel = low + np.arange(bins + 2) * ((high - low) / (bins + 2))
    places = ((length + 1) * (700 * (10 ** (mel / 2595) - 1)) // rate).astype(int)
    found = np.zeros((length // 2 + 1, bins))
    for i in range(bins):
        left, centre, right = places[i : i + 3]
        if left == centre:
            found[centre, i] = 1
        else:
            found[left : centre + 1, i] = np.arange(centre + 1 - left) / (centre - left)
        if right > centre:
            found[centre:right, i] = (right - np.arange(centre, right)) / (right - centre)
    return prim.cast(tensor_of(found), dtype=dtype_name(output_datatype, "MelWeightMatrix"))
