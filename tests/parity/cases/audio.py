"""Windows, mel scales, decibels, and layers from signals to spectrograms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parity.case import Case, call, layer
from parity.inputs import given
from parity.inputs import tensor as t

WINDOWS: tuple[Any, ...] = (
    "hamming", "hann", "triang", "bohman", "blackman", "cosine", "tukey", "taylor", "nuttall", "bartlett",
    ("gaussian", 3.0), ("general_gaussian", 1.5, 2.0), ("exponential", None, 2.0), ("kaiser", 4.0), ("tukey", 0.3),
    ("tukey", 1.0), ("taylor", 3, 25, False), ("general_hamming", 0.6),
)  # fmt: skip
FUNCTIONAL = "audio.functional."


def cases() -> Iterator[Case]:
    for window in WINDOWS:
        for length in (7, 16):
            yield call(FUNCTIONAL + "get_window", window, length)
        yield call(FUNCTIONAL + "get_window", window, 7, False, "float32")
    for length in (0, 1, -1):
        yield call(FUNCTIONAL + "get_window", "hann", length)
    yield call(FUNCTIONAL + "get_window", "kaiser", 4)
    yield call(FUNCTIONAL + "get_window", "no such window", 4)
    yield from _scales()
    yield from _layers()


def _scales() -> Iterator[Case]:
    frequencies = given([10.0, 500.0, 999.0, 1001.0, 4000.0])
    for htk in (False, True):
        for value in (0.0, 200.0, 5000.0):
            yield call(FUNCTIONAL + "hz_to_mel", value, htk)
            yield call(FUNCTIONAL + "mel_to_hz", value / 100, htk)
        yield call(FUNCTIONAL + "hz_to_mel", frequencies, htk)
        yield call(FUNCTIONAL + "mel_to_hz", t(5, low=0, high=60), htk)
        yield call(FUNCTIONAL + "mel_frequencies", 10, 50.0, 8000.0, htk)
        for norm in ("slaney", 2.0, 1.0):
            yield call(FUNCTIONAL + "compute_fbank_matrix", 16000, 64, 8, 20.0, None, htk, norm)
    yield call(FUNCTIONAL + "fft_frequencies", 16000, 32)
    for top in (None, 80.0, 3.0, -1.0):
        yield call(FUNCTIONAL + "power_to_db", t(3, 4, low=0), 2.0, 1e-3, top)
    for norm in ("ortho", None):
        yield call(FUNCTIONAL + "create_dct", 5, 8, norm)


def _layers() -> Iterator[Case]:
    x = t(2, 200)
    features = "audio.features."
    yield layer(features + "Spectrogram", x, n_fft=64, hop_length=32)
    yield layer(
        features + "Spectrogram", x, n_fft=64, hop_length=40, win_length=50, window="blackman", power=2.0, center=False
    )
    yield layer(features + "MelSpectrogram", x, sr=8000, n_fft=64, hop_length=32, n_mels=10)
    yield layer(features + "LogMelSpectrogram", x, sr=8000, n_fft=64, n_mels=10, top_db=60.0)
    yield layer(features + "MFCC", x, sr=8000, n_mfcc=7, n_fft=64, n_mels=8, power=1.0)
