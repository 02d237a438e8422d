"""Layers from signals to spectrograms, on the mel scale, in decibels, and to cepstral coefficients."""

from __future__ import annotations

from typing import Any

from argosy import signal
from argosy.audio.functional import compute_fbank_matrix, create_dct, power_to_db
from argosy.nn.layer import Layer
from argosy.signal.windows import get_window
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = ["MFCC", "LogMelSpectrogram", "MelSpectrogram", "Spectrogram"]


class Spectrogram(Layer):
    """The absolute values, to the power ``power``, of short-time Fourier transforms: [..., samples] to
    [..., 1 + n_fft // 2, frames]."""

    fft_window: Tensor

    def __init__(
        self,
        n_fft: int = 512,
        hop_length: int | None = 512,
        win_length: int | None = None,
        window: str | tuple[Any, ...] = "hann",
        power: float = 1.0,
        center: bool = True,
        pad_mode: str = "reflect",
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        if power <= 0:
            raise ValueError(f"Spectrogram(): argument 'power' should be positive, got {power}")
        self.power = power
        length = n_fft if win_length is None else win_length
        self._settings = (n_fft, hop_length, length, center, pad_mode)
        self.register_buffer("fft_window", get_window(window, length, fftbins=True, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """The spectrogram."""
        n_fft, hop_length, win_length, center, pad_mode = self._settings
        spectrum = signal.stft(x, n_fft, hop_length, win_length, self.fft_window, center, pad_mode)
        return op("pow")(op("abs")(spectrum), self.power)  # type: ignore[no-any-return]


class MelSpectrogram(Layer):
    """A spectrogram through triangular filters on the mel scale: [..., samples] to [..., n_mels, frames]."""

    fbank_matrix: Tensor

    def __init__(
        self,
        sr: int = 22050,
        n_fft: int = 2048,
        hop_length: int | None = 512,
        win_length: int | None = None,
        window: str | tuple[Any, ...] = "hann",
        power: float = 2.0,
        center: bool = True,
        pad_mode: str = "reflect",
        n_mels: int = 64,
        f_min: float = 50.0,
        f_max: float | None = None,
        htk: bool = False,
        norm: str | float | None = "slaney",
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self._spectrogram = Spectrogram(n_fft, hop_length, win_length, window, power, center, pad_mode, dtype)
        self.n_mels, self.f_min, self.htk, self.norm = n_mels, f_min, htk, norm
        self.f_max = sr // 2 if f_max is None else f_max
        self.register_buffer(
            "fbank_matrix", compute_fbank_matrix(sr, n_fft, n_mels, f_min, self.f_max, htk, norm, dtype)
        )

    def forward(self, x: Tensor) -> Tensor:
        """The mel spectrogram."""
        return op("matmul")(self.fbank_matrix, self._spectrogram(x))  # type: ignore[no-any-return]


class LogMelSpectrogram(Layer):
    """A mel spectrogram in decibels."""

    def __init__(
        self,
        sr: int = 22050,
        n_fft: int = 512,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: str | tuple[Any, ...] = "hann",
        power: float = 2.0,
        center: bool = True,
        pad_mode: str = "reflect",
        n_mels: int = 64,
        f_min: float = 50.0,
        f_max: float | None = None,
        htk: bool = False,
        norm: str | float | None = "slaney",
        ref_value: float = 1.0,
        amin: float = 1e-10,
        top_db: float | None = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self._melspectrogram = MelSpectrogram(
            sr, n_fft, hop_length, win_length, window, power, center, pad_mode, n_mels, f_min, f_max, htk, norm, dtype
        )
        self.ref_value, self.amin, self.top_db = ref_value, amin, top_db

    def forward(self, x: Tensor) -> Tensor:
        """The mel spectrogram in decibels."""
        return power_to_db(self._melspectrogram(x), self.ref_value, self.amin, self.top_db)


class MFCC(Layer):
    """Cepstral coefficients of a mel spectrogram in decibels: [batch, samples] to [batch, n_mfcc, frames]."""

    dct_matrix: Tensor

    def __init__(
        self,
        sr: int = 22050,
        n_mfcc: int = 40,
        n_fft: int = 512,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: str | tuple[Any, ...] = "hann",
        power: float = 2.0,
        center: bool = True,
        pad_mode: str = "reflect",
        n_mels: int = 64,
        f_min: float = 50.0,
        f_max: float | None = None,
        htk: bool = False,
        norm: str | float | None = "slaney",
        ref_value: float = 1.0,
        amin: float = 1e-10,
        top_db: float | None = None,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        if n_mfcc > n_mels:
            raise ValueError(f"MFCC(): argument 'n_mfcc' should be at most n_mels, got {n_mfcc} and {n_mels}")
        self._log_melspectrogram = LogMelSpectrogram(
            sr, n_fft, hop_length, win_length, window, power, center, pad_mode, n_mels, f_min, f_max, htk, norm,
            ref_value, amin, top_db, dtype,
        )  # fmt: skip
        self.register_buffer("dct_matrix", create_dct(n_mfcc, n_mels, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """The coefficients."""
        found = op("matmul")(self.dct_matrix, self._log_melspectrogram(x), True)
        return found  # type: ignore[no-any-return]
