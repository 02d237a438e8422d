"""A convolution with quanters."""

from __future__ import annotations

from typing import Any

from argosy.nn import functional as F
from argosy.nn.quant.qat.linear import QuantedWeight

__all__ = ["QuantedConv2D"]


class QuantedConv2D(QuantedWeight):
    """What a ``Conv2D`` becomes."""

    _axis = 0

    def __init__(self, layer: Any, q_config: Any) -> None:
        super().__init__(layer, q_config)
        self._edges, self._padding_mode, self._data_format = layer._edges, layer._padding_mode, layer._data_format
        self._settings = (layer._stride, layer._updated_padding, layer._dilation, layer._groups, layer._data_format)

    def _compute(self, input: Any, weight: Any, bias: Any) -> Any:
        if self._edges is not None:
            input = F.pad(input, self._edges, mode=self._padding_mode, data_format=self._data_format)
        return F.conv2d(input, weight, bias, *self._settings)

    def _by_channel(self, step: Any) -> Any:
        return step if self._data_format == "NHWC" or not step.ndim else step.reshape([-1, 1, 1])
