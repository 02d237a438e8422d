"""ShuffleNet v2 (Ma et al., 2018)."""

from __future__ import annotations

from functools import partial
from typing import Any

from argosy.nn.activation import ReLU, Swish
from argosy.nn.adaptive_pooling import AdaptiveAvgPool2D
from argosy.nn.common import Linear
from argosy.nn.layer import Layer
from argosy.nn.pooling import MaxPool2D
from argosy.vision.models.blocks import ConvNormActivation, refuse_pretrained
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "ShuffleNetV2", "shufflenet_v2_swish", "shufflenet_v2_x0_5", "shufflenet_v2_x0_25", "shufflenet_v2_x0_33",
    "shufflenet_v2_x1_0", "shufflenet_v2_x1_5", "shufflenet_v2_x2_0",
]  # fmt: skip

_WIDTHS = {
    0.25: (24, 24, 48, 96, 512),
    0.33: (24, 32, 64, 128, 512),
    0.5: (24, 48, 96, 192, 1024),
    1.0: (24, 116, 232, 464, 1024),
    1.5: (24, 176, 352, 704, 1024),
    2.0: (24, 224, 488, 976, 2048),
}
_COUNTS = (4, 8, 4)
_ACTIVATIONS = {"relu": ReLU, "swish": Swish, None: None}


def _shuffle(*halves: Tensor) -> Tensor:
    return get_operator("channel_shuffle")(get_operator("concat")(list(halves), 1), 2)


class InvertedResidual(Layer):
    """One half of the channels is renewed, then the halves are mixed."""

    def __init__(self, width: int, activation: Any) -> None:
        super().__init__()
        half = width // 2
        step = partial(ConvNormActivation, half, half, activation_layer=activation)
        self._conv_pw = step(1)
        self._conv_dw = ConvNormActivation(half, half, 3, groups=half, activation_layer=None)
        self._conv_linear = step(1)

    def forward(self, x: Tensor) -> Tensor:
        """The shuffled channels."""
        kept, renewed = get_operator("split")(x, 2, 1)
        return _shuffle(kept, self._conv_linear(self._conv_dw(self._conv_pw(renewed))))


class DownsampleUnit(Layer):
    """Half of the size: two paths from all channels."""

    def __init__(self, inputs: int, outputs: int, activation: Any) -> None:
        super().__init__()
        half = outputs // 2
        self._conv_dw_1 = ConvNormActivation(inputs, inputs, 3, 2, groups=inputs, activation_layer=None)
        self._conv_linear_1 = ConvNormActivation(inputs, half, 1, activation_layer=activation)
        self._conv_pw_2 = ConvNormActivation(inputs, half, 1, activation_layer=activation)
        self._conv_dw_2 = ConvNormActivation(half, half, 3, 2, groups=half, activation_layer=None)
        self._conv_linear_2 = ConvNormActivation(half, half, 1, activation_layer=activation)

    def forward(self, x: Tensor) -> Tensor:
        """The shuffled channels of both paths."""
        second = self._conv_linear_2(self._conv_dw_2(self._conv_pw_2(x)))
        return _shuffle(self._conv_linear_1(self._conv_dw_1(x)), second)


class ShuffleNetV2(Layer):
    """From ``[N, 3, H, W]`` to ``[N, num_classes]``.

    scale: 0.25, 0.33, 0.5, 1, 1.5 or 2; act: "relu", "swish" or None.
    """

    def __init__(
        self, scale: float = 1.0, act: str | None = "relu", num_classes: int = 1000, with_pool: bool = True
    ) -> None:
        super().__init__()
        if scale not in _WIDTHS:
            raise NotImplementedError(f"ShuffleNetV2: scale should be one of {sorted(_WIDTHS)}, got {scale}")
        if act not in _ACTIVATIONS:
            raise ValueError(f"ShuffleNetV2: act should be one of {list(_ACTIVATIONS)}, got {act!r}")
        self.scale, self.num_classes, self.with_pool = scale, num_classes, with_pool
        activation = _ACTIVATIONS[act]
        first, *widths, last = _WIDTHS[scale]
        self._conv1 = ConvNormActivation(3, first, 3, 2, activation_layer=activation)
        self._max_pool = MaxPool2D(3, 2, 1)
        self._blocks = []
        inputs = first
        for stage, (width, count) in enumerate(zip(widths, _COUNTS, strict=True), 2):
            for i in range(count):
                block = InvertedResidual(width, activation) if i else DownsampleUnit(inputs, width, activation)
                self._blocks.append(self.add_sublayer(f"{stage}_{i + 1}", block))
            inputs = width
        self._last_conv = ConvNormActivation(inputs, last, 1, activation_layer=activation)
        if with_pool:
            self._pool2d_avg = AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self._fc = Linear(last, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """The scores."""
        x = self._max_pool(self._conv1(inputs))
        for block in self._blocks:
            x = block(x)
        x = self._last_conv(x)
        if self.with_pool:
            x = self._pool2d_avg(x)
        return self._fc(x.flatten(1)) if self.num_classes > 0 else x


def _shufflenet(name: str, pretrained: bool, scale: float, kwargs: dict[str, Any], act: str = "relu") -> ShuffleNetV2:
    refuse_pretrained(f"shufflenet_v2_{name}", pretrained)
    return ShuffleNetV2(scale, act, **kwargs)


def shufflenet_v2_x0_25(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2 of a quarter of the width."""
    return _shufflenet("x0_25", pretrained, 0.25, kwargs)


def shufflenet_v2_x0_33(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2 of a third of the width."""
    return _shufflenet("x0_33", pretrained, 0.33, kwargs)


def shufflenet_v2_x0_5(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2 of half of the width."""
    return _shufflenet("x0_5", pretrained, 0.5, kwargs)


def shufflenet_v2_x1_0(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2."""
    return _shufflenet("x1_0", pretrained, 1.0, kwargs)


def shufflenet_v2_x1_5(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2, half as wide again."""
    return _shufflenet("x1_5", pretrained, 1.5, kwargs)


def shufflenet_v2_x2_0(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2 of twice the width."""
    return _shufflenet("x2_0", pretrained, 2.0, kwargs)


def shufflenet_v2_swish(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2 with Swish."""
    return _shufflenet("swish", pretrained, 1.0, kwargs, "swish")
