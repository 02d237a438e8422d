"""A linear layer with quanters."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import TensorLike
from argosy.nn import functional as F
from argosy.nn.quant.format import ConvertibleQuantedLayer

__all__ = ["QuantedLinear", "QuantedWeight"]


class QuantedWeight(ConvertibleQuantedLayer):
    """A layer of one weight and one input, each with a quanter or None.

    layer: the one that it stands for, whose parameters it takes; q_config: with the factories of the quanters.
    """

    weight: Any
    bias: Any

    def __init__(self, layer: Any, q_config: Any) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.weight_quanter = None if q_config.weight is None else q_config.weight._instance(layer)
        self.activation_quanter = None if q_config.activation is None else q_config.activation._instance(layer)

    def _fake_quantize(self, input: Any) -> tuple[Any, Any]:
        """Input and weight as the quanters give them."""
        quant_input = input if self.activation_quanter is None else self.activation_quanter(input)
        return quant_input, self.weight if self.weight_quanter is None else self.weight_quanter(self.weight)

    def weights_to_quanters(self) -> list[tuple[str, str]]:
        """The weight's."""
        return [("weight", "weight_quanter")]

    def activation_quanters(self) -> list[str]:
        """The input's."""
        return ["activation_quanter"]


class QuantedLinear(QuantedWeight):
    """What a ``Linear`` becomes."""

    def forward(self, input: TensorLike) -> Any:
        """The affine map of the quantised input and weight."""
        return F.linear(*self._fake_quantize(input), self.bias)
