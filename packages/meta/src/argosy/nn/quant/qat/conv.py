"""A convolution with quanters."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import TensorLike
from argosy.nn import functional as F
from argosy.nn.quant.qat.linear import QuantedWeight

__all__ = ["QuantedConv2D"]


class QuantedConv2D(QuantedWeight):
    """What a ``Conv2D`` becomes."""

    def __init__(self, layer: Any, q_config: Any) -> None:
        super().__init__(layer, q_config)
        self._edges, self._padding_mode, self._data_format = layer._edges, layer._padding_mode, layer._data_format
        self._settings = (layer._stride, layer._updated_padding, layer._dilation, layer._groups, layer._data_format)

    def forward(self, input: TensorLike) -> Any:
        """The convolution of the quantised input and weight."""
        x, weight = self._fake_quantize(input)
        if self._edges is not None:
            x = F.pad(x, self._edges, mode=self._padding_mode, data_format=self._data_format)
        return F.conv2d(x, weight, self.bias, *self._settings)
