"""MobileNetV2 (Sandler et al., 2018)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from argosy.nn.activation import ReLU6
from argosy.nn.adaptive_pooling import AdaptiveAvgPool2D
from argosy.nn.batch_norm import BatchNorm2D
from argosy.nn.common import Linear
from argosy.nn.container import Sequential
from argosy.nn.conv import Conv2D
from argosy.nn.dropout import Dropout
from argosy.nn.layer import Layer
from argosy.vision.models.blocks import ConvNormActivation, make_divisible, refuse_pretrained
from argosy_tensorcore.tensor import Tensor

__all__ = ["InvertedResidual", "MobileNetV2", "mobilenet_v2"]

_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, width, blocks, stride of the first."""


class InvertedResidual(Layer):
    """Wide, depthwise, narrow; with a short cut where it changes nothing of the shape."""

    def __init__(
        self, inp: int, oup: int, stride: int, expand_ratio: float, norm_layer: Callable[..., Layer] = BatchNorm2D
    ) -> None:
        super().__init__()
        self.stride, self.use_res_connect = stride, stride == 1 and inp == oup
        wide = round(inp * expand_ratio)
        step = partial(ConvNormActivation, norm_layer=norm_layer, activation_layer=ReLU6)
        layers: list[Layer] = [] if expand_ratio == 1 else [step(inp, wide, 1)]
        layers += [step(wide, wide, 3, stride, groups=wide), Conv2D(wide, oup, 1, bias_attr=False), norm_layer(oup)]
        self.conv = Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """The features, ``x`` added where shapes agree."""
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(Layer):
    """From ``[N, 3, H, W]`` to ``[N, num_classes]``; ``scale`` multiplies all widths."""

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        width = make_divisible(32 * scale)
        last = make_divisible(1280 * max(1.0, scale))
        blocks: list[Layer] = [ConvNormActivation(3, width, 3, 2, activation_layer=ReLU6)]
        for expansion, outputs, count, stride in _STAGES:
            outputs = make_divisible(outputs * scale)
            for i in range(count):
                blocks.append(InvertedResidual(width, outputs, stride if i == 0 else 1, expansion))
                width = outputs
        blocks.append(ConvNormActivation(width, last, 1, activation_layer=ReLU6))
        self.features = Sequential(*blocks)
        if with_pool:
            self.pool2d_avg = AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = Sequential(Dropout(0.2), Linear(last, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        """The scores."""
        x = self.features(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


def mobilenet_v2(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV2:
    """A :class:`MobileNetV2`."""
    refuse_pretrained("mobilenet_v2", pretrained)
    return MobileNetV2(scale=scale, **kwargs)
