"""Which layers calibration watches, and which of them it rounds."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from argosy import nn
from argosy.nn.layer import Layer
from argosy.nn.quant.functional_layers import add
from argosy.nn.quant.quant_layers import QuantizedConv2D, QuantizedLinear

__all__ = ["LayerInfo", "PTQRegistry"]


class LayerInfo(NamedTuple):
    """A class of layers, and what its operation in Paddle's older programs calls inputs, weights and results."""

    layer: type[Layer]
    input_names: list[str]
    weight_names: list[str]
    output_names: list[str]


_WEIGHTED = {
    nn.Conv2D: (["Input"], ["Filter"], ["Output"]),
    nn.Linear: (["X"], ["Y"], ["Out"]),
}
_PLAIN = (
    nn.AdaptiveMaxPool2D, nn.AdaptiveAvgPool2D, nn.AvgPool2D, nn.MaxPool2D, nn.ReLU, nn.ReLU6, nn.Hardswish, nn.Swish,
    nn.Sigmoid, nn.Softmax, nn.Tanh,
)  # fmt: skip
_INFO = [
    *(LayerInfo(kind, *names) for kind, names in _WEIGHTED.items()),
    LayerInfo(nn.BatchNorm2D, ["X"], [], ["Y"]),
    *(LayerInfo(kind, ["X"], [], ["Out"]) for kind in _PLAIN),
    LayerInfo(add, ["X", "Y"], [], ["Out"]),
]
_QUANTIZED = [
    LayerInfo(QuantizedConv2D, *_WEIGHTED[nn.Conv2D]),
    LayerInfo(QuantizedLinear, *_WEIGHTED[nn.Linear]),
]


class PTQRegistry:
    """The layers that :class:`ImperativePTQ` knows; each question takes a class or a layer."""

    supported_layers_map: ClassVar = {info.layer: info for info in _INFO}
    registered_layers_map: ClassVar = {info.layer: info for info in _INFO + _QUANTIZED}

    @classmethod
    def is_supported_layer(cls, layer: Any) -> bool:
        """Whether calibration watches its results."""
        return _is_one(layer, tuple(cls.supported_layers_map))

    @classmethod
    def is_registered_layer(cls, layer: Any) -> bool:
        """Whether there is information of it: of what is watched, and of what the rounded ones become."""
        return _is_one(layer, tuple(cls.registered_layers_map))

    @classmethod
    def is_simulated_quant_layer(cls, layer: Any) -> bool:
        """Whether its input and weight are rounded."""
        return _is_one(layer, tuple(_WEIGHTED))

    @classmethod
    def layer_info(cls, layer: Any) -> LayerInfo:
        """The information of it. Raises ValueError where there is none."""
        for kind, info in cls.registered_layers_map.items():
            if _is_one(layer, (kind,)):
                return info
        raise ValueError(f"PTQRegistry.layer_info(): {layer!r:.80} is not registered")


def _is_one(layer: Any, kinds: tuple[type[Layer], ...]) -> bool:
    return layer in kinds if isinstance(layer, type) else isinstance(layer, kinds)
