"""Where magnitudes are cut off, by histogram: what a share of them lie below, or the least loss of information."""

from __future__ import annotations

from typing import Any

from argosy.framework.creation import to_tensor
from argosy.quantization.factory import ObserverFactory
from argosy.quantization.imperative.ptq_quantizer import HistQuantizer, KLQuantizer
from argosy.quantization.observers.abs_max import AbsmaxObserverLayer

__all__ = ["HistObserver", "HistObserverLayer", "KLObserver", "KLObserverLayer"]


class HistObserverLayer(AbsmaxObserverLayer):
    """One scale: what ``percent`` of the magnitudes of all calls lie below, by a histogram of ``bins_count`` bins."""

    _quantizer: HistQuantizer | KLQuantizer

    def __init__(self, layer: Any, quant_bits: int = 8, bins_count: int = 1024, percent: float = 0.99999) -> None:
        super().__init__(layer, quant_bits)
        if not 0 < percent <= 1:
            raise ValueError(f"HistObserver: percent is a share from 0 to 1, got {percent}")
        self._quantizer = HistQuantizer(quant_bits, bins_count, hist_percent=percent)

    def forward(self, input: Any) -> Any:
        """The input."""
        self._quantizer.sample_data(None, (input.detach(),))
        return input

    def cal_thresholds(self) -> None:
        """Let the scale be the histogram's so far; later values change nothing."""
        if self._scale is None and self._quantizer.hists:
            self._quantizer.cal_thresholds()
            self._scale = to_tensor(self._quantizer.thresholds[0], "float32")
        self._zero_point = None if self._scale is None else self._scale * 0


class KLObserverLayer(HistObserverLayer):
    """One scale: where integers lose the least information of the magnitudes (Migacz, 2017), by a histogram of
    ``bins_count`` bins."""

    def __init__(self, layer: Any, quant_bits: int = 8, bins_count: int = 1024) -> None:
        super().__init__(layer, quant_bits, bins_count)
        self._quantizer = KLQuantizer(quant_bits, bins_count)


class HistObserver(ObserverFactory):
    """Makes observers by a share of magnitudes. quant_bits: of an integer; bins_count: of a histogram; percent: the
    share."""

    made = HistObserverLayer

    def __init__(self, quant_bits: int = 8, bins_count: int = 1024, percent: float = 0.99999) -> None:
        super().__init__(quant_bits=quant_bits, bins_count=bins_count, percent=percent)


class KLObserver(ObserverFactory):
    """Makes observers by the least loss of information. quant_bits: of an integer; bins_count: of a histogram."""

    made = KLObserverLayer

    def __init__(self, quant_bits: int = 8, bins_count: int = 1024) -> None:
        super().__init__(quant_bits=quant_bits, bins_count=bins_count)
