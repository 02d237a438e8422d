"""``QAT`` and ``PTQ``: quanters put into a model, and made constants of it."""

from __future__ import annotations

from copy import deepcopy
from typing import TypeVar

from argosy.nn.layer import Layer
from argosy.nn.quant.format import ConvertibleQuantedLayer, LinearQuanterDequanter
from argosy.quantization.base import BaseQuanter
from argosy.quantization.config import QuantConfig

__all__ = ["PTQ", "QAT", "Quantization"]

AnyLayer = TypeVar("AnyLayer", bound=Layer)


class Quantization:
    """What both do. The config is copied."""

    def __init__(self, config: QuantConfig) -> None:
        self._config = deepcopy(config)

    def convert(self, model: AnyLayer, inplace: bool = False, remain_weight: bool = False) -> AnyLayer:
        """The model with quanters and observers replaced by what they found: pairs of ``LinearQuanter`` and
        ``LinearDequanter``. Weights hold integers (as floats) and are dequantised, or with ``remain_weight`` stay as
        they are and are quantised in each call."""
        made = model if inplace else deepcopy(model)
        for name, child in list(made.named_children()):
            if isinstance(child, ConvertibleQuantedLayer):
                if not child.converted and child.knows_weights():
                    child.convert(remain_weight)
            elif isinstance(child, BaseQuanter):
                made._sub_layers[name] = LinearQuanterDequanter.from_quanter(child)
            else:
                self.convert(child, True, remain_weight)
        return made

    def _prepare(self, model: AnyLayer) -> AnyLayer:
        self._config._specify(model)
        self._convert_to_quant_layers(model, self._config)
        self._insert_activation_observers(model, self._config)
        return model

    def _convert_to_quant_layers(self, model: Layer, config: QuantConfig) -> None:
        """Put the layers with quanters in; Paddle's name, which subclasses call."""
        for name, child in list(model.named_children()):
            quanted = config._quanted_layer(child)
            if quanted is None:
                self._convert_to_quant_layers(child, config)
            else:
                model._sub_layers[name] = quanted

    def _insert_activation_observers(self, model: Layer, config: QuantConfig) -> None:
        """Put observers before what remains; Paddle's name, which subclasses call."""
        targets = tuple(config.qat_layer_mappings.values())
        for name, child in list(model.named_children()):
            observed = config._observed_layer(child)
            if observed is not None:
                model._sub_layers[name] = observed
            elif type(child) not in targets:
                self._insert_activation_observers(child, config)

    def __repr__(self) -> str:
        return self._config.details()


class QAT(Quantization):
    """Training aware of quantisation: quanters simulate it, and gradients go through them as if they were not there.

    config: which layers, and how.
    """

    def quantize(self, model: AnyLayer, inplace: bool = False) -> AnyLayer:
        """The model (or a copy) with quanters in it. Raises ValueError for a model that is not in training mode."""
        if not model.training:
            raise ValueError("QAT.quantize() takes a model in training mode: call model.train() before")
        return self._prepare(model if inplace else deepcopy(model))


class PTQ(Quantization):
    """Quantisation of a trained model: observers see batches that are run through it.

    config: which layers, and how.
    """

    def quantize(self, model: AnyLayer, inplace: bool = False) -> AnyLayer:
        """The model (or a copy) with observers in it. Raises ValueError for a model in training mode."""
        if model.training:
            raise ValueError("PTQ.quantize() takes a model in evaluation mode: call model.eval() before")
        return self._prepare(model if inplace else deepcopy(model))
