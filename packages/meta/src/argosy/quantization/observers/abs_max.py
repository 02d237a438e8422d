"""The largest absolute value seen."""

from __future__ import annotations

from typing import Any

from argosy.quantization.base import BaseObserver
from argosy.quantization.factory import ObserverFactory

__all__ = ["AbsmaxObserver", "AbsmaxObserverLayer"]


class AbsmaxObserverLayer(BaseObserver):
    """One scale: the largest absolute value of all calls."""

    def __init__(self, layer: Any, quant_bits: Any = 8) -> None:
        super().__init__()
        self._quant_bits = quant_bits
        self._max: Any = None
        self._scale: Any = None
        self._zero_point: Any = None

    def forward(self, input: Any) -> Any:
        """The input."""
        largest = input.detach().abs().max()
        self._max = largest if self._max is None else self._max.astype(input.dtype).maximum(largest)
        return input

    def cal_thresholds(self) -> None:
        """Let the scale be the largest value so far; later ones change nothing."""
        if self._scale is None:
            self._scale = self._max
        self._zero_point = None if self._scale is None else self._scale * 0

    def scales(self) -> Any:
        """The largest value, 0-D; None before the first call."""
        if self._scale is None:
            self.cal_thresholds()
        return self._scale

    def zero_points(self) -> Any:
        """0, as values are symmetric."""
        return self._zero_point

    def quant_axis(self) -> int:
        """-1: one scale."""
        return -1

    def bit_length(self) -> Any:
        """``quant_bits``."""
        return self._quant_bits


class AbsmaxObserver(ObserverFactory):
    """Makes observers of the largest absolute value. quant_bits: of an integer."""

    made = AbsmaxObserverLayer

    def __init__(self, quant_bits: Any = 8) -> None:
        super().__init__(quant_bits=quant_bits)
