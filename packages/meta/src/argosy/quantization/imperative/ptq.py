"""Quantisation of a trained model: hooks look at what passes, then layers round by what they saw."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from argosy.jit.export import save
from argosy.nn.common import Linear
from argosy.nn.layer import Layer
from argosy.nn.quant.quant_layers import QuantizedConv2D, QuantizedLinear
from argosy.quantization.imperative.fuse_utils import fuse_layers, replace
from argosy.quantization.imperative.ptq_config import PTQConfig, default_ptq_config
from argosy.quantization.imperative.ptq_quantizer import AbsmaxQuantizer
from argosy.quantization.imperative.ptq_registry import PTQRegistry

__all__ = ["ImperativePTQ"]

AnyLayer = TypeVar("AnyLayer", bound=Layer)


class ImperativePTQ:
    """Calibration by :class:`PTQConfig`: :meth:`quantize`, batches through the model, :meth:`save_quantized_model`."""

    def __init__(self, quant_config: PTQConfig = default_ptq_config) -> None:
        if not isinstance(quant_config, PTQConfig):
            raise TypeError(f"ImperativePTQ(): argument 'quant_config' is a PTQConfig, got {quant_config!r:.60}")
        self._quant_config = quant_config

    def quantize(
        self,
        model: AnyLayer,
        inplace: bool = False,
        fuse: bool = False,
        fuse_list: Sequence[Sequence[str]] | None = None,
    ) -> AnyLayer:
        """The model (or a copy) with hooks in the layers of :class:`PTQRegistry` that have none below them and no
        ``skip_quant = True``. With ``fuse`` in evaluation, and with the pairs of ``fuse_list`` fused."""
        _check_layer("quantize", model)
        if fuse and fuse_list is None:
            raise TypeError("ImperativePTQ.quantize(): fuse=True needs fuse_list, pairs of names of layers")
        made = model if inplace else copy.deepcopy(model)
        if fuse:
            made.eval()
            made = fuse_layers(made, fuse_list or (), inplace=True)
        for layer in made.sublayers():
            skipped = getattr(layer, "skip_quant", False) is True
            if PTQRegistry.is_supported_layer(layer) and not layer.sublayers() and not skipped:
                self._watch(layer)
        return made

    def _watch(self, layer: Any) -> None:
        config = copy.deepcopy(self._quant_config)
        config.enable_in_act_quantizer = PTQRegistry.is_simulated_quant_layer(layer)
        layer._quant_config = config
        config.quant_hook_handle = layer.register_forward_post_hook(_sample, prepend=True)

    def save_quantized_model(
        self, model: Layer, path: str | os.PathLike[str], input_spec: Sequence[Any] | None = None, **config: Any
    ) -> None:
        """Round inputs and weights of linear layers and convolutions by what was seen, in ``model`` itself, and
        :func:`argosy.jit.save` it. Thresholds of results are not written: no program here computes in integers."""
        _check_layer("save_quantized_model", model)
        self._convert(model)
        save(model, path, input_spec, **config)

    def _convert(self, model: Layer) -> None:
        """Take the hooks away, and let layers round by what they saw."""
        for name, layer in model.named_sublayers():
            config = getattr(layer, "_quant_config", None)
            if config is None:
                continue
            config.quant_hook_handle.remove()
            config.out_act_quantizer.cal_thresholds()
            if config.enable_in_act_quantizer:
                replace(model, name, _quantize_layer(layer, config))


def _sample(layer: Any, inputs: tuple[Any, ...], outputs: Any) -> None:
    """The hook: let the quantizers look at a call."""
    config = layer._quant_config
    if config.enable_in_act_quantizer:
        config.in_act_quantizer.sample_data(layer, inputs)
    config.out_act_quantizer.sample_data(layer, (outputs,))


def _quantize_layer(layer: Any, config: PTQConfig) -> Layer:
    """The layer that rounds by the thresholds, which it has as scales."""
    inputs, weights = config.in_act_quantizer, config.wt_quantizer
    inputs.cal_thresholds()
    weights.sample_data(layer, (layer.weight,))
    weights.cal_thresholds()
    made = (QuantizedLinear if isinstance(layer, Linear) else QuantizedConv2D)(
        layer,
        weight_quantize_type="abs_max" if isinstance(weights, AbsmaxQuantizer) else "channel_wise_abs_max",
        activation_quantize_type="moving_average_abs_max",
        weight_bits=weights.quant_bits,
        activation_bits=inputs.quant_bits,
    )
    if len(inputs.thresholds) == 1:
        made._fake_quant_input._scale.set_value(np.asarray(inputs.thresholds, np.float32))
    made._fake_quant_weight._scale.set_value(np.asarray(weights.thresholds, np.float32).ravel())
    return made


def _check_layer(method: str, model: Any) -> None:
    if not isinstance(model, Layer):
        raise TypeError(f"ImperativePTQ.{method}(): argument 'model' must be a Layer, got {model!r:.60}")
