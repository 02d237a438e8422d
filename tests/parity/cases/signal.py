"""Frames of signals and their short-time spectra."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import tensor as t


def cases() -> Iterator[Case]:
    yield from _frames()
    yield from _spectra()
    yield from _back()


def _frames() -> Iterator[Case]:
    for hop in (1, 2, 5):
        yield call("signal.frame", t(2, 9), 4, hop)
        yield call("signal.frame", t(9, 2), 4, hop, axis=0)
        yield call("signal.overlap_add", t(2, 4, 3), hop)
        yield call("signal.overlap_add", t(3, 4, 2), hop, axis=0)
    yield call("signal.frame", t(9), 3, 2)
    yield call("signal.frame", t(9), 3, 2, 0)
    yield call("signal.frame", t(9), 10, 2)
    yield call("signal.frame", t(9), 3, 0)
    yield call("signal.frame", t(2, 9), 3, 1, 1)
    yield call("signal.overlap_add", t(4, 3), 2)
    yield call("signal.overlap_add", t(3, 4), 2, 0)


def _spectra() -> Iterator[Case]:
    x = t(2, 16)
    yield call("signal.stft", x, 8)
    yield call("signal.stft", t(16), 8)
    yield call("signal.stft", x, 8, 3)
    yield call("signal.stft", x, 8, 3, 5)
    yield call("signal.stft", x, 8, 3, 5, t(5))
    yield call("signal.stft", x, 7, 3)
    yield call("signal.stft", x, 8, center=False)
    yield call("signal.stft", x, 8, pad_mode="constant")
    yield call("signal.stft", x, 8, normalized=True)
    yield call("signal.stft", x, 8, onesided=False)
    yield call("signal.stft", t(2, 16, dtype="float64"), 8)
    yield call("signal.stft", t(2, 16, dtype="complex64"), 8, center=False, onesided=False)
    yield call("signal.stft", x, 17)
    yield call("signal.stft", x, 8, 0)
    yield call("signal.stft", x, 8, 2, 9)
    yield call("signal.stft", x, 8, 2, 5, t(4))
    yield call("Tensor.stft", x, 8)


def _back() -> Iterator[Case]:
    x = t(2, 5, 7, dtype="complex64")
    yield call("signal.istft", x, 8)
    yield call("signal.istft", t(5, 7, dtype="complex64"), 8)
    yield call("signal.istft", x, 8, 3)
    yield call("signal.istft", x, 8, 2, 6)
    yield call("signal.istft", x, 8, 2, 6, t(6, low=0.5))
    yield call("signal.istft", x, 8, center=False)
    yield call("signal.istft", x, 8, normalized=True)
    yield call("signal.istft", x, 8, length=9)
    yield call("signal.istft", t(2, 8, 7, dtype="complex64"), 8, onesided=False)
    yield call("signal.istft", t(2, 8, 7, dtype="complex64"), 8, onesided=False, return_complex=True)
    yield call("signal.istft", t(2, 5, 7, dtype="complex128"), 8)
    yield call("signal.istft", t(2, 5, 7), 8)
    yield call("signal.istft", x, 9)
    yield call("signal.istft", x, 8, 8, 4, center=False)
    yield call("Tensor.istft", x, 8)
