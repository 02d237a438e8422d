"""DenseNet (Huang et al., 2017)."""

from __future__ import annotations

from typing import Any

from argosy.nn.adaptive_pooling import AdaptiveAvgPool2D
from argosy.nn.batch_norm import BatchNorm2D
from argosy.nn.common import Linear
from argosy.nn.conv import Conv2D
from argosy.nn.dropout import Dropout
from argosy.nn.layer import Layer
from argosy.nn.pooling import AvgPool2D, MaxPool2D
from argosy.vision.models.blocks import refuse_pretrained
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201", "densenet264"]

_SHAPES = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
    264: (64, 32, (6, 12, 64, 48)),
}
"""First width, growth, layers of the four blocks."""


class NormConv(Layer):
    """Normalisation, ReLU, convolution."""

    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__()
        self._batch_norm = BatchNorm2D(inputs)
        self._conv = Conv2D(inputs, outputs, size, padding=size // 2, bias_attr=False)

    def forward(self, x: Tensor) -> Tensor:
        """The features."""
        return self._conv(self._batch_norm(x).relu())


class DenseLayer(Layer):
    """``growth`` channels made of all before and appended to them."""

    def __init__(self, inputs: int, growth: int, bottleneck: int, dropout: float) -> None:
        super().__init__()
        self.bn_ac_func1 = NormConv(inputs, bottleneck * growth, 1)
        self.bn_ac_func2 = NormConv(bottleneck * growth, growth, 3)
        self.dropout_func = Dropout(dropout, mode="downscale_in_infer") if dropout else None

    def forward(self, x: Tensor) -> Tensor:
        """``x`` and what was made of it."""
        y = self.bn_ac_func2(self.bn_ac_func1(x))
        return get_operator("concat")([x, y if self.dropout_func is None else self.dropout_func(y)], 1)


class DenseBlock(Layer):
    """Dense layers, one upon the other."""

    def __init__(self, inputs: int, count: int, growth: int, bottleneck: int, dropout: float, number: int) -> None:
        super().__init__()
        self._layers = [
            self.add_sublayer(f"conv{number}_{i + 1}", DenseLayer(inputs + i * growth, growth, bottleneck, dropout))
            for i in range(count)
        ]

    def forward(self, x: Tensor) -> Tensor:
        """The channels of all layers."""
        for layer in self._layers:
            x = layer(x)
        return x


class Transition(Layer):
    """Half of the channels at half of the size."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.conv_ac_func = NormConv(inputs, inputs // 2, 1)
        self.pool2d_avg = AvgPool2D(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        """The pooled mixture."""
        return self.pool2d_avg(self.conv_ac_func(x))


class Stem(Layer):
    """The first convolution, normalised."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self._conv = Conv2D(3, outputs, 7, stride=2, padding=3, bias_attr=False)
        self._batch_norm = BatchNorm2D(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """The features."""
        return self._batch_norm(self._conv(x)).relu()


class DenseNet(Layer):
    """From ``[N, 3, H, W]`` to ``[N, num_classes]``; ``layers`` is 121, 161, 169, 201 or 264."""

    def __init__(
        self,
        layers: int = 121,
        bn_size: int = 4,
        dropout: float = 0.0,
        num_classes: int = 1000,
        with_pool: bool = True,
    ) -> None:
        super().__init__()
        if layers not in _SHAPES:
            raise ValueError(f"DenseNet: layers should be one of {sorted(_SHAPES)}, got {layers}")
        self.num_classes, self.with_pool = num_classes, with_pool
        width, growth, counts = _SHAPES[layers]
        self.conv1_func = Stem(width)
        self.pool2d_max = MaxPool2D(3, 2, 1)
        self._stages = []
        for number, count in enumerate(counts, 2):
            block = DenseBlock(width, count, growth, bn_size, dropout, number)
            self._stages.append(self.add_sublayer(f"db_conv_{number}", block))
            width += count * growth
            if number < len(counts) + 1:
                self._stages.append(self.add_sublayer(f"tr_conv{number}_blk", Transition(width)))
                width //= 2
        self.batch_norm = BatchNorm2D(width)
        if with_pool:
            self.pool2d_avg = AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.out = Linear(width, num_classes)

    def forward(self, input: Tensor) -> Tensor:
        """The scores."""
        x = self.pool2d_max(self.conv1_func(input))
        for stage in self._stages:
            x = stage(x)
        x = self.batch_norm(x).relu()
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.out(x.flatten(1)) if self.num_classes > 0 else x


def _densenet(layers: int, pretrained: bool, kwargs: dict[str, Any]) -> DenseNet:
    refuse_pretrained(f"densenet{layers}", pretrained)
    return DenseNet(layers, **kwargs)


def densenet121(pretrained: bool = False, **kwargs: Any) -> DenseNet:
    """DenseNet of 121 layers."""
    return _densenet(121, pretrained, kwargs)


def densenet161(pretrained: bool = False, **kwargs: Any) -> DenseNet:
    """DenseNet of 161 layers, wider."""
    return _densenet(161, pretrained, kwargs)


def densenet169(pretrained: bool = False, **kwargs: Any) -> DenseNet:
    """DenseNet of 169 layers."""
    return _densenet(169, pretrained, kwargs)


def densenet201(pretrained: bool = False, **kwargs: Any) -> DenseNet:
    """DenseNet of 201 layers."""
    return _densenet(201, pretrained, kwargs)


def densenet264(pretrained: bool = False, **kwargs: Any) -> DenseNet:
    """DenseNet of 264 layers."""
    return _densenet(264, pretrained, kwargs)
