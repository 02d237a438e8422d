"""Layers whose inputs and weights are rounded as quantisation would, and layers that keep the scale of results."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.argument_checks import TensorLike
from argosy.nn import functional as F
from argosy.nn.layer import Layer
from argosy.nn.quant.fake_quant import (
    FakeQuantAbsMax,
    FakeQuantChannelWiseAbsMax,
    FakeQuantMovingAverageAbsMax,
    MovingAverageAbsMaxScale,
    make_fake_quant,
)
from argosy_phi_ops.declare.operator import get_operator

__all__ = [
    "FakeQuantAbsMax", "FakeQuantChannelWiseAbsMax", "FakeQuantMAOutputScaleLayer", "FakeQuantMovingAverageAbsMax",
    "MAOutputScaleLayer", "MovingAverageAbsMaxScale", "QuantStub", "QuantizedColumnParallelLinear", "QuantizedConv2D",
    "QuantizedConv2DTranspose", "QuantizedLayer", "QuantizedLinear", "QuantizedMatmul", "QuantizedRowParallelLinear",
]  # fmt: skip

QuantStub = MovingAverageAbsMaxScale


def _make(kind: Any) -> Any:
    """A layer of a class, None for none."""
    return None if kind is None else kind()


class QuantizedLayer(Layer):
    """A layer of one weight and one input, both rounded.

    layer: the one that it stands for, whose parameters it takes. weight_quantize_type: "abs_max" or
    "channel_wise_abs_max"; activation_quantize_type: "abs_max" or "moving_average_abs_max"; the ``_pre_layer`` are
    classes of layers that come before the rounding, the ``_quant_layer`` of such that round instead.
    """

    weight: Any
    bias: Any
    _axis: ClassVar[int]
    """Of the channels in the weight."""

    def __init__(
        self,
        layer: Any,
        weight_bits: int = 8,
        activation_bits: int = 8,
        moving_rate: float = 0.9,
        weight_quantize_type: str = "abs_max",
        activation_quantize_type: str = "abs_max",
        weight_pre_layer: Any = None,
        act_pre_layer: Any = None,
        weight_quant_layer: Any = None,
        act_quant_layer: Any = None,
    ) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        channels = (self.weight.shape[self._axis], self._axis)
        of_weight = (weight_quantize_type, self.weight.name, weight_bits, moving_rate, channels)
        of_input = (activation_quantize_type, layer.full_name(), activation_bits, moving_rate, None)
        self._fake_quant_weight = _make(weight_quant_layer) or make_fake_quant(*of_weight)
        self._fake_quant_input = _make(act_quant_layer) or make_fake_quant(*of_input)
        self._act_preprocess, self._weight_preprocess = _make(act_pre_layer), _make(weight_pre_layer)

    def _fake_quantize(self, input: Any) -> tuple[Any, Any]:
        """Input and weight, rounded."""
        weight = self.weight
        if self._act_preprocess is not None:
            input = self._act_preprocess(input)
        if self._weight_preprocess is not None:
            weight = self._weight_preprocess(weight)
        return self._fake_quant_input(input), self._fake_quant_weight(weight)


class QuantizedConv2D(QuantizedLayer):
    """What a ``Conv2D`` becomes."""

    _axis = 0

    def __init__(self, layer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(layer, *args, **kwargs)
        self._edges, self._padding_mode, self._data_format = layer._edges, layer._padding_mode, layer._data_format
        self._settings = (layer._stride, layer._updated_padding, layer._dilation, layer._groups, layer._data_format)

    def forward(self, input: TensorLike) -> Any:
        """The convolution of the rounded input and weight."""
        x, weight = self._fake_quantize(input)
        if self._edges is not None:
            x = F.pad(x, self._edges, mode=self._padding_mode, data_format=self._data_format)
        return F.conv2d(x, weight, self.bias, *self._settings)


class QuantizedConv2DTranspose(QuantizedLayer):
    """What a ``Conv2DTranspose`` becomes."""

    _axis = 1

    def __init__(self, layer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(layer, *args, **kwargs)
        self._settings = layer._settings()

    def forward(self, input: TensorLike, output_size: Any = None) -> Any:
        """The transposed convolution of the rounded input and weight."""
        x, weight = self._fake_quantize(input)
        settings = self._settings if output_size is None else {**self._settings, "output_padding": 0}
        return F.conv2d_transpose(x, weight, self.bias, output_size=output_size, **settings)


class QuantizedLinear(QuantizedLayer):
    """What a ``Linear`` becomes."""

    _axis = 1

    def forward(self, input: TensorLike) -> Any:
        """The affine map of the rounded input and weight."""
        return F.linear(*self._fake_quantize(input), self.bias)


class QuantizedColumnParallelLinear(QuantizedLinear):
    """What a ``ColumnParallelLinear`` becomes, of one rank."""


class QuantizedRowParallelLinear(QuantizedLinear):
    """What a ``RowParallelLinear`` becomes, of one rank."""


class QuantizedMatmul(Layer):
    """Products of matrices that are both rounded as inputs are; arguments as those of :class:`QuantizedLayer`."""

    def __init__(
        self,
        layer: Any = None,
        weight_bits: int = 8,
        activation_bits: int = 8,
        moving_rate: float = 0.9,
        weight_quantize_type: str = "abs_max",
        activation_quantize_type: str = "abs_max",
        weight_pre_layer: Any = None,
        act_pre_layer: Any = None,
        weight_quant_layer: Any = None,
        act_quant_layer: Any = None,
    ) -> None:
        super().__init__()
        settings = (activation_quantize_type, "quant_dequant", activation_bits, moving_rate, None)
        for operand in "xy":
            setattr(self, f"_fake_quant_{operand}", _make(act_quant_layer) or make_fake_quant(*settings))
            setattr(self, f"_act_preprocess_{operand}", _make(act_pre_layer))

    def forward(
        self,
        x: TensorLike,
        y: TensorLike,
        transpose_x: bool = False,
        transpose_y: bool = False,
        name: str | None = None,
    ) -> Any:
        """``x @ y``, both rounded, either transposed before."""
        if self._act_preprocess_x is not None:
            x, y = self._act_preprocess_x(x), self._act_preprocess_y(y)
        return get_operator("matmul")(self._fake_quant_x(x), self._fake_quant_y(y), transpose_x, transpose_y)


class _OutputLayer(Layer):
    """``layer`` with ``_after`` after it; several results are left alone."""

    _layer: Any
    _after: ClassVar[str]

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the layer gives, rounded or observed."""
        out = self._layer(*inputs, **kwargs)
        return out if isinstance(out, list | tuple | dict) else getattr(self, self._after)(out)


class MAOutputScaleLayer(_OutputLayer):
    """``layer``, with a moving average of the largest magnitude of its result; several results are left alone."""

    _after = "_ma_output_scale"

    def __init__(
        self,
        layer: Any = None,
        moving_rate: float = 0.9,
        name: str | None = None,
        dtype: object = "float32",
        reduce_type: str | None = None,
    ) -> None:
        super().__init__()
        self._layer = layer
        self._ma_output_scale = MovingAverageAbsMaxScale(name or layer.full_name(), moving_rate, dtype, reduce_type)


class FakeQuantMAOutputScaleLayer(_OutputLayer):
    """``layer`` with a rounded result; several results are left alone."""

    _after = "_fake_quant_output"

    def __init__(
        self,
        layer: Any,
        weight_bits: int = 8,
        activation_bits: int = 8,
        moving_rate: float = 0.9,
        name: str | None = None,
        reduce_type: str | None = None,
    ) -> None:
        super().__init__()
        self._layer = layer
        self._fake_quant_output = FakeQuantMovingAverageAbsMax(
            name or layer.full_name(), moving_rate, activation_bits, reduce_type=reduce_type
        )
