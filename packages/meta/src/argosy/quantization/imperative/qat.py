"""Training aware of quantisation: layers of a model replaced by such that round."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any, TypeVar

from argosy import nn
from argosy.distributed.fleet.layers.mpu.mp_layers import ColumnParallelLinear, RowParallelLinear
from argosy.framework.param_attr import ParamAttr
from argosy.jit.export import save
from argosy.nn.initializer import Assign
from argosy.nn.layer import Layer
from argosy.nn.quant import fake_quant, functional_layers, quant_layers
from argosy.nn.quant.format import LinearDequanter, LinearQuanter, LinearQuanterDequanter
from argosy.quantization.imperative.fuse_utils import fuse_conv_bn, replace
from argosy_autograd.modes import no_grad

__all__ = ["ImperativeQuantAware"]

AnyLayer = TypeVar("AnyLayer", bound=Layer)

_ROUNDED: dict[type[Layer], type[quant_layers.QuantizedLayer]] = {
    nn.Conv2D: quant_layers.QuantizedConv2D,
    nn.Linear: quant_layers.QuantizedLinear,
    nn.Conv2DTranspose: quant_layers.QuantizedConv2DTranspose,
    ColumnParallelLinear: quant_layers.QuantizedColumnParallelLinear,
    RowParallelLinear: quant_layers.QuantizedRowParallelLinear,
}
_NAMED = {kind.__name__: kind for kind in _ROUNDED}
_ROUNDED_RESULTS = tuple(getattr(functional_layers, name) for name in "add subtract multiply divide matmul".split())
_OWN = (fake_quant.FakeQuantAbsMax, fake_quant.MovingMaximum)


class ImperativeQuantAware:
    """Layers that round inputs and weights, and keep the scales of results, in place of a model's own.

    quantizable_layer_type: classes of layers, or their names. The other arguments are those of
    :class:`argosy.nn.quant.quant_layers.QuantizedLayer`, ``fuse_conv_bn`` aside, which takes batch norms into the
    convolutions before them, and ``onnx_format``, which exports integers (kept as floats) with their scales instead of
    weights that are rounded in each call, and keeps scales of the results of rounded layers only. Layers with
    ``skip_quant = True`` stay as they are. Raises ValueError for what cannot be quantised so.
    """

    def __init__(
        self,
        quantizable_layer_type: Sequence[str | type[Layer]] = tuple(_NAMED),
        weight_quantize_type: str = "abs_max",
        activation_quantize_type: str = "moving_average_abs_max",
        weight_bits: int = 8,
        activation_bits: int = 8,
        moving_rate: float = 0.9,
        fuse_conv_bn: bool = False,
        weight_preprocess_layer: type[Layer] | None = None,
        act_preprocess_layer: type[Layer] | None = None,
        weight_quantize_layer: type[Layer] | None = None,
        act_quantize_layer: type[Layer] | None = None,
        onnx_format: bool = False,
    ) -> None:
        self.fuse_conv_bn, self._onnx_format = fuse_conv_bn, onnx_format
        self._kinds = tuple(_layer_type(given) for given in quantizable_layer_type)
        _check_one("weight_quantize_type", weight_quantize_type, ("abs_max", "channel_wise_abs_max"))
        _check_one("activation_quantize_type", activation_quantize_type, ("moving_average_abs_max",))
        for name, bits in (("weight_bits", weight_bits), ("activation_bits", activation_bits)):
            _check_one(name, bits, range(2, 17))
        self._settings: dict[str, Any] = {
            "weight_quantize_type": weight_quantize_type,
            "activation_quantize_type": activation_quantize_type,
            "weight_bits": weight_bits,
            "activation_bits": activation_bits,
            "moving_rate": moving_rate,
            "weight_pre_layer": weight_preprocess_layer,
            "act_pre_layer": act_preprocess_layer,
            "weight_quant_layer": weight_quantize_layer,
            "act_quant_layer": act_quantize_layer,
        }

    def quantize(self, model: AnyLayer) -> AnyLayer:
        """The model itself, with such layers in it."""
        if not isinstance(model, Layer):
            raise TypeError(f"ImperativeQuantAware.quantize(): argument 'model' must be a Layer, got {model!r:.60}")
        if self.fuse_conv_bn:
            fuse_conv_bn(model)
        for name, layer in list(model.named_sublayers()):
            if isinstance(layer, self._kinds) and getattr(layer, "skip_quant", False) is not True:
                replace(model, name, _quantized_class(layer)(layer, **self._settings))
        self._keep_scales(model)
        return model

    def _keep_scales(self, model: Layer) -> None:
        """Let layers without layers below them keep the scales of their results; those that have one inside stay."""
        rate, bits = self._settings["moving_rate"], self._settings["activation_bits"]
        for name, layer in list(model.named_children()):
            rounded = isinstance(layer, quant_layers.QuantizedLayer)
            plain = not self._onnx_format and not layer.sublayers() and not isinstance(layer, _OWN)
            if not rounded and not plain:
                self._keep_scales(layer)
            elif isinstance(layer, _ROUNDED_RESULTS):
                made = quant_layers.FakeQuantMAOutputScaleLayer(layer, activation_bits=bits, moving_rate=rate)
                replace(model, name, made)
            else:
                replace(model, name, quant_layers.MAOutputScaleLayer(layer, rate))

    def save_quantized_model(
        self, layer: Layer, path: str | os.PathLike[str], input_spec: Sequence[Any] | None = None, **config: Any
    ) -> None:
        """:func:`argosy.jit.save` of the model in evaluation: it rounds by the scales that training found."""
        if not isinstance(layer, Layer):
            raise TypeError(
                f"ImperativeQuantAware.save_quantized_model(): argument 'layer' must be a Layer, got {layer!r:.60}"
            )
        save(_with_integers(copy.deepcopy(layer)) if self._onnx_format else layer, path, input_spec, **config)


def _with_integers(model: AnyLayer) -> AnyLayer:
    """The model with integers as weights, and with fixed scales, where both are known."""
    for layer in model.sublayers():
        if not isinstance(layer, quant_layers.QuantizedLayer):
            continue
        weights, inputs = layer._fake_quant_weight, layer._fake_quant_input
        if isinstance(weights, fake_quant.FakeQuantAbsMax) and layer._weight_preprocess is None:
            with no_grad():
                weights(layer.weight)  # the scale of the weight as it is now
                fixed = (weights._scale, None, layer._axis, weights._quant_bits)
                attr = ParamAttr(initializer=Assign(LinearQuanter(*fixed)(layer.weight).numpy()), trainable=False)
                layer.weight = layer.create_parameter(layer.weight.shape, attr)  # others may share the old one
            layer._fake_quant_weight = LinearDequanter(*fixed)
        if isinstance(inputs, fake_quant.FakeQuantMovingAverageAbsMax):
            fixed = (inputs._scale, None, -1, inputs._quant_bits)
            layer._fake_quant_input = LinearQuanterDequanter(LinearQuanter(*fixed), LinearDequanter(*fixed))
    return model


def _quantized_class(layer: Layer) -> type[quant_layers.QuantizedLayer]:
    return next(target for kind, target in _ROUNDED.items() if isinstance(layer, kind))


def _layer_type(given: str | type[Layer]) -> type[Layer]:
    found = _NAMED.get(given) if isinstance(given, str) else given
    if found not in _ROUNDED:
        raise ValueError(f"ImperativeQuantAware(): layers of type {given!r} cannot be quantised, only {[*_NAMED]}")
    return found


def _check_one(name: str, given: Any, known: Sequence[Any]) -> None:
    if isinstance(given, bool) or given not in known:
        shown = f"from {known[0]} to {known[-1]}" if isinstance(known, range) else f"one of {[*known]}"
        raise ValueError(f"ImperativeQuantAware(): argument {name!r} is {shown}, got {given!r:.60}")
