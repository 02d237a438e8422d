"""MobileNetV3 (Howard et al., 2019), small and large."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from argosy.nn.activation import Hardsigmoid, Hardswish, ReLU
from argosy.nn.adaptive_pooling import AdaptiveAvgPool2D
from argosy.nn.batch_norm import BatchNorm2D
from argosy.nn.common import Linear
from argosy.nn.container import Sequential
from argosy.nn.conv import Conv2D
from argosy.nn.dropout import Dropout
from argosy.nn.layer import Layer
from argosy.vision.models.blocks import ConvNormActivation, make_divisible, refuse_pretrained
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "MobileNetV3", "MobileNetV3Large", "MobileNetV3Small", "SqueezeExcitation", "mobilenet_v3_large",
    "mobilenet_v3_small",
]  # fmt: skip

Block = tuple[int, int, int, bool, type[Layer], int]
"""Kernel, expanded width, width, squeeze and excitation, activation, stride."""

_LARGE: tuple[Block, ...] = (
    (3, 16, 16, False, ReLU, 1), (3, 64, 24, False, ReLU, 2), (3, 72, 24, False, ReLU, 1), (5, 72, 40, True, ReLU, 2),
    (5, 120, 40, True, ReLU, 1), (5, 120, 40, True, ReLU, 1), (3, 240, 80, False, Hardswish, 2),
    (3, 200, 80, False, Hardswish, 1), (3, 184, 80, False, Hardswish, 1), (3, 184, 80, False, Hardswish, 1),
    (3, 480, 112, True, Hardswish, 1), (3, 672, 112, True, Hardswish, 1), (5, 672, 160, True, Hardswish, 2),
    (5, 960, 160, True, Hardswish, 1), (5, 960, 160, True, Hardswish, 1),
)  # fmt: skip
_SMALL: tuple[Block, ...] = (
    (3, 16, 16, True, ReLU, 2), (3, 72, 24, False, ReLU, 2), (3, 88, 24, False, ReLU, 1),
    (5, 96, 40, True, Hardswish, 2), (5, 240, 40, True, Hardswish, 1), (5, 240, 40, True, Hardswish, 1),
    (5, 120, 48, True, Hardswish, 1), (5, 144, 48, True, Hardswish, 1), (5, 288, 96, True, Hardswish, 2),
    (5, 576, 96, True, Hardswish, 1), (5, 576, 96, True, Hardswish, 1),
)  # fmt: skip
_Norm = partial(BatchNorm2D, epsilon=0.001, momentum=0.99)


class SqueezeExcitation(Layer):
    """Scales each channel by a function of all channels' means (Hu et al., 2018)."""

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: Callable[..., Layer] = ReLU,
        scale_activation: Callable[..., Layer] = Hardsigmoid,
    ) -> None:
        super().__init__()
        self.avgpool = AdaptiveAvgPool2D(1)
        self.fc1 = Conv2D(input_channels, squeeze_channels, 1)
        self.fc2 = Conv2D(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, x: Tensor) -> Tensor:
        """The scaled channels."""
        return x * self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x)))))


class InvertedResidual(Layer):
    """Wide, depthwise, excited, narrow; with a short cut where it changes nothing of the shape."""

    def __init__(self, inputs: int, wide: int, outputs: int, block: Block) -> None:
        super().__init__()
        kernel, _, _, excited, activation, stride = block
        self.use_res_connect = stride == 1 and inputs == outputs
        self.use_se, self.expand = excited, inputs != wide
        if self.expand:
            self.expand_conv = ConvNormActivation(inputs, wide, 1, norm_layer=_Norm, activation_layer=activation)
        self.bottleneck_conv = ConvNormActivation(
            wide, wide, kernel, stride, groups=wide, norm_layer=_Norm, activation_layer=activation
        )
        if excited:
            self.mid_se = SqueezeExcitation(wide, make_divisible(wide // 4))
        self.linear_conv = ConvNormActivation(wide, outputs, 1, norm_layer=_Norm, activation_layer=None)

    def forward(self, x: Tensor) -> Tensor:
        """The features, ``x`` added where shapes agree."""
        y = self.bottleneck_conv(self.expand_conv(x) if self.expand else x)
        y = self.linear_conv(self.mid_se(y) if self.use_se else y)
        return x + y if self.use_res_connect else y


class MobileNetV3(Layer):
    """``blocks`` between two convolutions, then ``last_channel`` features; ``scale`` multiplies the widths."""

    def __init__(
        self,
        blocks: tuple[Block, ...],
        last_channel: int,
        scale: float = 1.0,
        num_classes: int = 1000,
        with_pool: bool = True,
    ) -> None:
        super().__init__()
        self.scale, self.num_classes, self.with_pool = scale, num_classes, with_pool
        width = make_divisible(16 * scale)
        self.conv = ConvNormActivation(3, width, 3, 2, norm_layer=_Norm, activation_layer=Hardswish)
        made = []
        for block in blocks:
            outputs = make_divisible(block[2] * scale)
            made.append(InvertedResidual(width, make_divisible(block[1] * scale), outputs, block))
            width = outputs
        self.blocks = Sequential(*made)
        self.lastconv = ConvNormActivation(width, 6 * width, 1, norm_layer=_Norm, activation_layer=Hardswish)
        if with_pool:
            self.avgpool = AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = Sequential(
                Linear(6 * width, last_channel), Hardswish(), Dropout(0.2), Linear(last_channel, num_classes)
            )

    def forward(self, x: Tensor) -> Tensor:
        """The scores."""
        x = self.lastconv(self.blocks(self.conv(x)))
        if self.with_pool:
            x = self.avgpool(x)
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


class MobileNetV3Small(MobileNetV3):
    """From ``[N, 3, H, W]`` to ``[N, num_classes]`` through 11 blocks."""

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__(_SMALL, make_divisible(1024 * scale), scale, num_classes, with_pool)


class MobileNetV3Large(MobileNetV3):
    """From ``[N, 3, H, W]`` to ``[N, num_classes]`` through 15 blocks."""

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__(_LARGE, make_divisible(1280 * scale), scale, num_classes, with_pool)


def mobilenet_v3_small(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV3Small:
    """A :class:`MobileNetV3Small`."""
    refuse_pretrained("mobilenet_v3_small", pretrained)
    return MobileNetV3Small(scale=scale, **kwargs)


def mobilenet_v3_large(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV3Large:
    """A :class:`MobileNetV3Large`."""
    refuse_pretrained("mobilenet_v3_large", pretrained)
    return MobileNetV3Large(scale=scale, **kwargs)
