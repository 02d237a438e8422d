"""MobileNet (Howard et al., 2017)."""

from __future__ import annotations

from typing import Any

from argosy.nn.adaptive_pooling import AdaptiveAvgPool2D
from argosy.nn.common import Linear
from argosy.nn.layer import Layer
from argosy.vision.models.blocks import ConvNormActivation, refuse_pretrained
from argosy_tensorcore.tensor import Tensor

__all__ = ["MobileNetV1", "mobilenet_v1"]

_STAGES = (
    ("2_1", 32, 64, 1), ("2_2", 64, 128, 2), ("3_1", 128, 128, 1), ("3_2", 128, 256, 2), ("4_1", 256, 256, 1),
    ("4_2", 256, 512, 2), *((f"5_{i}", 512, 512, 1) for i in range(1, 6)), ("5_6", 512, 1024, 2), ("6", 1024, 1024, 1),
)  # fmt: skip


class DepthwiseSeparable(Layer):
    """A 3 x 3 convolution of each channel, then a mixture of channels."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self._depthwise_conv = ConvNormActivation(inputs, inputs, 3, stride, 1, inputs)
        self._pointwise_conv = ConvNormActivation(inputs, outputs, 1, 1, 0)

    def forward(self, x: Tensor) -> Tensor:
        """The mixed features."""
        return self._pointwise_conv(self._depthwise_conv(x))


class MobileNetV1(Layer):
    """From ``[N, 3, H, W]`` to ``[N, num_classes]``; ``scale`` multiplies all widths."""

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.scale, self.num_classes, self.with_pool = scale, num_classes, with_pool
        self.conv1 = ConvNormActivation(3, int(32 * scale), 3, 2, 1)
        self.dwsl = []
        for name, inputs, outputs, stride in _STAGES:
            block = DepthwiseSeparable(int(inputs * scale), int(outputs * scale), stride)
            self.dwsl.append(self.add_sublayer(f"conv{name}", block))
        if with_pool:
            self.pool2d_avg = AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.fc = Linear(int(1024 * scale), num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """The scores."""
        x = self.conv1(x)
        for block in self.dwsl:
            x = block(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x


def mobilenet_v1(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV1:
    """A :class:`MobileNetV1`."""
    refuse_pretrained("mobilenet_v1", pretrained)
    return MobileNetV1(scale=scale, **kwargs)
