"""A linear layer with quanters."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from argosy.argument_checks import TensorLike
from argosy.nn import functional as F
from argosy.nn.quant.format import ConvertibleQuantedLayer, LinearQuanterDequanter

__all__ = ["QuantedLinear", "QuantedWeight"]


class QuantedWeight(ConvertibleQuantedLayer):
    """A layer of one weight and one input, each with a quanter or None. Converted, it multiplies integers where both
    are such without zero points: in int8, with exact sums in int32.

    layer: the one that it stands for, whose parameters it takes; q_config: with the factories of the quanters.
    """

    weight: Any
    bias: Any
    weight_quanter: Any
    activation_quanter: Any
    _axis: ClassVar[int]
    """Of the results' channels in the weight."""

    def __init__(self, layer: Any, q_config: Any) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.weight_quanter = None if q_config.weight is None else q_config.weight._instance(layer)
        self.activation_quanter = None if q_config.activation is None else q_config.activation._instance(layer)
        self._multiplies_integers = False

    @abstractmethod
    def _compute(self, input: Any, weight: Any, bias: Any) -> Any:
        """What the layer makes of an input and a weight."""

    def _by_channel(self, step: Any) -> Any:
        """Numbers of the results' channels in a shape that goes with these."""
        return step

    def forward(self, input: TensorLike) -> Any:
        """What the layer makes of the quantised input and weight."""
        if not self._multiplies_integers:
            return self._compute(*self._fake_quantize(input), self.bias)
        quanter, dequanter = self.activation_quanter._quanter, self.weight_quanter._dequanter
        whole = quanter(input).astype("int8")  # products of integers that were int8 are products of bytes
        sums = self._compute(whole.astype("int32"), self.weight.astype("int32"), None).astype("float32")
        made = sums * self._by_channel(quanter.step() * dequanter.step())
        if self.bias is not None:
            made = made + self._by_channel(self.bias.astype("float32"))
        return made.astype(input.dtype)

    def _fake_quantize(self, input: Any) -> tuple[Any, Any]:
        """Input and weight as the quanters give them."""
        quant_input = input if self.activation_quanter is None else self.activation_quanter(input)
        weight = self.weight if self.weight_quanter is None else self.weight_quanter(self.weight)
        return quant_input, weight.astype(input.dtype) if self.converted else weight

    def convert(self, remain_weight: bool = False) -> None:
        """See `ConvertibleQuantedLayer`."""
        super().convert(remain_weight)
        quanters = self.activation_quanter, self.weight_quanter
        if not remain_weight and all(isinstance(quanter, LinearQuanterDequanter) for quanter in quanters):
            of_input, of_weight = quanters[0]._quanter, quanters[1]._dequanter
            self._multiplies_integers = of_input.is_symmetric() and of_weight.is_symmetric(self._axis)

    def weights_to_quanters(self) -> list[tuple[str, str]]:
        """The weight's."""
        return [("weight", "weight_quanter")]

    def activation_quanters(self) -> list[str]:
        """The input's."""
        return ["activation_quanter"]


class QuantedLinear(QuantedWeight):
    """What a ``Linear`` becomes."""

    _axis = 1

    def _compute(self, input: Any, weight: Any, bias: Any) -> Any:
        return F.linear(input, weight, bias)
