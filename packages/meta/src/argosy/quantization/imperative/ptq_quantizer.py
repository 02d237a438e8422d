"""Quantizers: they look at tensors, then say where integers end."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from argosy.nn.common import Linear
from argosy.nn.conv import Conv2DTranspose
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "SUPPORT_ACT_QUANTIZERS", "SUPPORT_WT_QUANTIZERS", "AbsmaxQuantizer", "BaseQuantizer", "HistQuantizer",
    "KLQuantizer", "PerChannelAbsmaxQuantizer", "cal_kl_threshold",
]  # fmt: skip

Array = npt.NDArray[Any]


class BaseQuantizer(metaclass=ABCMeta):
    """Looks at tensors with :meth:`sample_data`; :meth:`cal_thresholds` then fills ``thresholds``, one entry for each
    tensor of a call."""

    def __init__(self, quant_bits: int = 8) -> None:
        if not isinstance(quant_bits, int) or not 0 < quant_bits <= 16:
            raise ValueError(f"{type(self).__name__}(): argument 'quant_bits' is from 1 to 16, got {quant_bits!r:.60}")
        self.quant_bits = quant_bits
        self.abs_max_vals: list[Any] = []
        self.thresholds: list[Any] = []

    @abstractmethod
    def sample_data(self, layer: Any, tensors: tuple[Tensor, ...]) -> None:
        """Look at the tensors of one call."""

    @abstractmethod
    def cal_thresholds(self) -> None:
        """Make thresholds of what was seen."""


class AbsmaxQuantizer(BaseQuantizer):
    """The largest magnitude of each tensor."""

    def sample_data(self, layer: Any, tensors: tuple[Tensor, ...]) -> None:
        """Look at the tensors of one call."""
        found = [_largest(to_numpy(x)) for x in tensors]
        self.abs_max_vals = [max(pair) for pair in zip(self.abs_max_vals or found, found, strict=True)]

    def cal_thresholds(self) -> None:
        """The magnitudes themselves."""
        self.thresholds = self.abs_max_vals


class PerChannelAbsmaxQuantizer(BaseQuantizer):
    """The largest magnitude of each channel: of axis 1 in linear and transposed convolution layers, else of axis 0."""

    def sample_data(self, layer: Any, tensors: tuple[Tensor, ...]) -> None:
        """Look at the tensors of one call."""
        axis = 1 if isinstance(layer, Conv2DTranspose | Linear) else 0
        found = [[_largest(part) for part in np.moveaxis(to_numpy(x), axis, 0)] for x in tensors]
        before = self.abs_max_vals or found
        self.abs_max_vals = [
            [max(pair) for pair in zip(old, new, strict=True)] for old, new in zip(before, found, strict=True)
        ]

    def cal_thresholds(self) -> None:
        """The magnitudes themselves."""
        self.thresholds = self.abs_max_vals


class _HistogramQuantizer(BaseQuantizer):
    """Keeps a histogram of magnitudes of each tensor, which grows with them."""

    def __init__(self, quant_bits: int = 8, bins: int = 1024, upsample_bins: int = 64) -> None:
        super().__init__(quant_bits)
        self.bins, self.upsample_bins = bins, upsample_bins
        self.hists: list[Array | None] = []

    def sample_data(self, layer: Any, tensors: tuple[Tensor, ...]) -> None:
        """Look at the tensors of one call."""
        if not self.hists:
            self.hists, self.abs_max_vals = [None] * len(tensors), [0.0] * len(tensors)
        for i, x in enumerate(tensors):
            self._add(i, np.abs(to_numpy(x)))

    def _add(self, i: int, magnitudes: Array) -> None:
        largest, hist = _largest(magnitudes), self.hists[i]
        if largest == 0.0:
            return
        if hist is None:
            self.abs_max_vals[i], self.hists[i] = largest, self._histogram(magnitudes, largest)
            return
        if largest > self.abs_max_vals[i]:
            largest, hist = self._widen(hist, self.abs_max_vals[i], largest)
            self.abs_max_vals[i] = largest
        self.hists[i] = hist + self._histogram(magnitudes, self.abs_max_vals[i])

    def _histogram(self, magnitudes: Array, end: float) -> Array:
        return np.histogram(magnitudes, self.bins, (0.0, end))[0].astype(np.float32)

    def _widen(self, hist: Array, end: float, largest: float) -> tuple[float, Array]:
        """The histogram over at least ``largest``: its bins cut into ``upsample_bins`` parts, these put together."""
        width = end / (self.bins * self.upsample_bins)
        together = int(np.ceil(largest / (self.bins * width)))
        fine = np.zeros(self.bins * together, np.float32)
        fine[: self.bins * self.upsample_bins] = np.repeat(hist, self.upsample_bins)
        counts = fine.reshape(self.bins, together).sum(-1, dtype=np.float64) / self.upsample_bins
        return self.bins * width * together, counts.astype(np.float32)

    def cal_thresholds(self) -> None:
        """The thresholds of the histograms; 0 of a tensor that was 0 throughout."""
        pairs = zip(self.hists, self.abs_max_vals, strict=True)
        self.thresholds = [end if hist is None else self._threshold(hist, end) for hist, end in pairs]

    @abstractmethod
    def _threshold(self, hist: Array, end: float) -> float:
        """The threshold of one histogram of [0, end]."""


class HistQuantizer(_HistogramQuantizer):
    """What ``hist_percent`` of the magnitudes lie below."""

    def __init__(
        self, quant_bits: int = 8, bins: int = 1024, upsample_bins: int = 64, hist_percent: float = 0.99999
    ) -> None:
        super().__init__(quant_bits, bins, upsample_bins)
        self.hist_percent = hist_percent

    def _threshold(self, hist: Array, end: float) -> float:
        shares = np.cumsum(hist / np.sum(hist, dtype=np.float64))
        return float((np.argmax(shares >= self.hist_percent) - 0.5) * (end / len(hist)))


class KLQuantizer(_HistogramQuantizer):
    """Where the magnitudes, cut off there and quantised, lose the least information (Kullback-Leibler)."""

    def _threshold(self, hist: Array, end: float) -> float:
        return cal_kl_threshold(hist, end / len(hist), self.quant_bits)


def cal_kl_threshold(hist: Array, bin_width: float, bits: int) -> float:
    """Where to cut magnitudes off so that integers of ``bits`` lose the least information of them (Migacz, 8-bit
    inference with TensorRT, 2017). hist: their counts, [bins]."""
    levels, half = 2 ** (bits - 1) - 1, (len(hist) - 1) // 2
    ends = [i for i in range(half, len(hist)) if i and hist[i - 1] != 0]
    counts = hist.astype(np.float64)
    if ends:
        best = min(ends, key=lambda i: _divergence(counts, i, levels))
    else:
        best = int(max(np.flatnonzero(counts[1 : half + 1]) + 1, default=0))
    return float((best + 0.5) * bin_width)


def _divergence(hist: Array, end: int, levels: int) -> float:
    """How far the first ``end`` bins, the rest added to the last of them, are from their quantisation."""
    kept, cut = hist[:end], hist[:end].copy()
    cut[-1] += hist[end:].sum()
    level = np.minimum(np.arange(end) // max(end // levels, 1), levels - 1)
    some = cut != 0
    sums = np.bincount(level, kept, levels)
    many = np.bincount(level, some, levels)
    quantised = np.where(some, (sums / np.maximum(many, 1))[level], 0.0)
    p, q = cut[some] / hist.sum(), quantised[some] / quantised.sum()
    with np.errstate(divide="ignore"):
        return float((p * np.log(p / q)).sum())


def _largest(values: Array) -> float:
    return float(np.abs(values).max())


SUPPORT_ACT_QUANTIZERS: Sequence[type[BaseQuantizer]] = [AbsmaxQuantizer, HistQuantizer, KLQuantizer]
SUPPORT_WT_QUANTIZERS: Sequence[type[BaseQuantizer]] = [AbsmaxQuantizer, PerChannelAbsmaxQuantizer]
