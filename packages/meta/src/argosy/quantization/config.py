"""Which layers are quantised, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.argument_repr import ArgumentRepr
from argosy.nn.activation import ReLU
from argosy.nn.common import Linear
from argosy.nn.conv import Conv2D
from argosy.nn.layer import Layer
from argosy.nn.pooling import AvgPool2D
from argosy.nn.quant.qat.conv import QuantedConv2D
from argosy.nn.quant.qat.linear import QuantedLinear
from argosy.nn.quant.stub import QuanterStub, Stub
from argosy.quantization.wrapper import ObserveWrapper

__all__ = ["QuantConfig", "SingleLayerConfig"]

DEFAULT_QAT_LAYER_MAPPINGS: dict[type[Layer], type[Layer]] = {
    Stub: QuanterStub,
    Linear: QuantedLinear,
    Conv2D: QuantedConv2D,
}
DEFAULT_LEAVES = (ReLU, AvgPool2D)


class SingleLayerConfig:
    """The factories of one layer's quanters: of its input and of its weight, None for none."""

    def __init__(self, activation: Any, weight: Any) -> None:
        self._activation, self._weight = activation, weight

    @property
    def activation(self) -> Any:
        """Of its input."""
        return self._activation

    @property
    def weight(self) -> Any:
        """Of its weight."""
        return self._weight

    def __str__(self) -> str:
        return f"activation: {self._activation}\nweight: {self._weight}"


class QuantConfig(ArgumentRepr):
    """Factories of quanters for all layers, for types of them, for names, for single ones: the later wins.

    activation, weight: of all layers, None for none. A layer within another one has what its parent has, unless it is
    named itself.
    """

    def __init__(self, activation: Any, weight: Any) -> None:
        none = activation is None and weight is None
        self._global_config = None if none else SingleLayerConfig(activation, weight)
        self._layer2config: dict[Layer, SingleLayerConfig] = {}
        self._prefix2config: dict[str, SingleLayerConfig] = {}
        self._type2config: dict[type[Layer], SingleLayerConfig] = {}
        self._model: Layer | None = None
        self._qat_layer_mapping = dict(DEFAULT_QAT_LAYER_MAPPINGS)
        self._customized_leaves: list[type[Layer]] = []

    # ---- saying it

    def add_layer_config(self, layer: Layer | Sequence[Layer], activation: Any = None, weight: Any = None) -> None:
        """Quanters of one layer, or of each of a list."""
        for one in [layer] if isinstance(layer, Layer) else layer:
            self.add_name_config(one.full_name(), activation, weight)

    def add_name_config(self, layer_name: str | Sequence[str], activation: Any = None, weight: Any = None) -> None:
        """Quanters of the layers of these full names (``linear_0``)."""
        for name in [layer_name] if isinstance(layer_name, str) else layer_name:
            self._prefix2config[name] = SingleLayerConfig(activation, weight)

    def add_type_config(
        self, layer_type: type[Layer] | Sequence[type[Layer]], activation: Any = None, weight: Any = None
    ) -> None:
        """Quanters of layers of these types. Raises TypeError for what is no type of layers."""
        for one in [layer_type] if isinstance(layer_type, type) else layer_type:
            self._type2config[_layer_class("add_type_config", one)] = SingleLayerConfig(activation, weight)

    def add_qat_layer_mapping(self, source: type[Layer], target: type[Layer]) -> None:
        """Let layers of type ``source`` become ``target(layer, config)``. Raises TypeError for what is no type of
        layers."""
        key = _layer_class("add_qat_layer_mapping", source)
        self._qat_layer_mapping[key] = _layer_class("add_qat_layer_mapping", target)

    def add_customized_leaf(self, layer_type: type[Layer]) -> None:
        """Take layers of this type as one, whatever they are made of."""
        self._customized_leaves.append(layer_type)

    # ---- reading it

    @property
    def customized_leaves(self) -> list[type[Layer]]:
        """What ``add_customized_leaf`` was given."""
        return self._customized_leaves

    @property
    def qat_layer_mappings(self) -> dict[type[Layer], type[Layer]]:
        """What type of layers becomes which."""
        return self._qat_layer_mapping

    @property
    def default_qat_layer_mapping(self) -> dict[type[Layer], type[Layer]]:
        """The same without what ``add_qat_layer_mapping`` was given."""
        return DEFAULT_QAT_LAYER_MAPPINGS

    @property
    def global_config(self) -> SingleLayerConfig | None:
        """That of all layers."""
        return self._global_config

    def details(self) -> str:
        """The layers with their quanters, once a model was quantised; the settings before."""
        return str(self) if self._model is None else self._show(self._model)

    def _show(self, layer: Layer) -> str:
        lines = [
            f"({name}): {self._show(child)}".replace("\n", "\n  ") + f", {self._layer2config[child]}"
            for name, child in layer.named_children()
            if child in self._layer2config
        ]
        inner = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{type(layer).__name__}({inner})"

    def __str__(self) -> str:
        parts = [f"Global config:\n{self._global_config}\n"]
        if self._type2config:
            parts.append(f"Layer type config:\n{self._type2config}\n")
        if self._prefix2config:
            parts.append(f"Layer prefix config: \n{self._prefix2config}\n")
        return "".join(parts)

    # ---- for QAT and PTQ

    def _specify(self, model: Layer) -> None:
        """Find the settings of each layer of ``model``."""
        self._model = model
        self._specify_children(model)

    def _specify_children(self, layer: Layer) -> None:
        for child in layer.children():
            found = self._layer2config.get(layer, self._global_config)
            found = self._type2config.get(type(child), found)
            found = self._prefix2config.get(child.full_name(), found)
            if found is not None:
                self._layer2config[child] = found
            self._specify_children(child)

    def _quanted_layer(self, layer: Layer) -> Layer | None:
        """What stands for ``layer``, or None where it stays."""
        settings, target = self._layer2config.get(layer), self._qat_layer_mapping.get(type(layer))
        return None if settings is None or target is None else target(layer, settings)  # type: ignore[arg-type]

    def _observed_layer(self, layer: Layer) -> Layer | None:
        """A leaf with an observer of its input, or None where it has none."""
        settings = self._layer2config.get(layer)
        leaf = not layer._sub_layers or type(layer) in (*DEFAULT_LEAVES, *self._customized_leaves)
        if not leaf or settings is None or settings.activation is None:
            return None
        return ObserveWrapper(settings.activation._instance(layer), layer)


def _layer_class(function: str, given: Any) -> type[Layer]:
    if not isinstance(given, type) or not issubclass(given, Layer):
        raise TypeError(f"QuantConfig.{function}() takes subclasses of paddle.nn.Layer, not {given!r:.80}")
    return given
