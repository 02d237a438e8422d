"""Quantisation by a moving average of the largest absolute value."""

from __future__ import annotations

from typing import Any

from argosy.nn.quant.fake_quant import MovingMaximum
from argosy.quantization.base import BaseQuanter
from argosy.quantization.factory import QuanterFactory

__all__ = ["FakeQuanterWithAbsMaxObserver", "FakeQuanterWithAbsMaxObserverLayer"]


class FakeQuanterWithAbsMaxObserverLayer(MovingMaximum, BaseQuanter):
    """In training ``state = rate * state + 1``, ``accum = rate * accum + max|x|`` and ``scale = accum / state``; always
    ``round(clip(x, -scale, scale) / scale * (2**(bits - 1) - 1))``, multiplied back. Gradients pass as they are.

    layer: whose input or weight it is; nothing is asked of it.
    """

    def __init__(
        self,
        layer: Any,
        name: str | None = None,
        moving_rate: float = 0.9,
        bit_length: int = 8,
        dtype: object = "float32",
    ) -> None:
        super().__init__()
        self._bit_length = bit_length
        self._keep(name or "quant_dequant", moving_rate, dtype, 0.001, 1.0)

    def forward(self, input: Any) -> Any:
        """The input, rounded. In training the scale moves first."""
        self._observe(input)
        return self._fake_quantize(input, self._bit_length)

    def scales(self) -> Any:
        """The scale, [1]."""
        return self._scale

    def zero_points(self) -> None:
        """None: values are symmetric."""

    def quant_axis(self) -> int:
        """-1: one scale."""
        return -1

    def bit_length(self) -> int:
        """Bits of an integer."""
        return self._bit_length


class FakeQuanterWithAbsMaxObserver(QuanterFactory):
    """Makes quanters by a moving average of the largest absolute value.

    moving_rate: what is kept of the average; bit_length: of an integer; name: where names of their tensors begin.
    """

    made = FakeQuanterWithAbsMaxObserverLayer

    def __init__(
        self, moving_rate: float = 0.9, bit_length: int = 8, dtype: object = "float32", name: str | None = None
    ) -> None:
        super().__init__(name=name, moving_rate=moving_rate, bit_length=bit_length, dtype=dtype)
