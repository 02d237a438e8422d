"""ResNet (He et al., 2016), ResNeXt (Xie et al., 2017) and wide ResNet (Zagoruyko and Komodakis, 2016)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.nn.activation import ReLU
from argosy.nn.adaptive_pooling import AdaptiveAvgPool2D
from argosy.nn.batch_norm import BatchNorm2D
from argosy.nn.common import Linear
from argosy.nn.container import Sequential
from argosy.nn.conv import Conv2D
from argosy.nn.layer import Layer
from argosy.nn.pooling import MaxPool2D
from argosy.vision.models.blocks import refuse_pretrained
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "BasicBlock", "BottleneckBlock", "ResNet", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
    "resnext50_32x4d", "resnext50_64x4d", "resnext101_32x4d", "resnext101_64x4d", "resnext152_32x4d",
    "resnext152_64x4d", "wide_resnet50_2", "wide_resnet101_2",
]  # fmt: skip

_BLOCKS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}


def _conv(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> Conv2D:
    padding = dilation * (size // 2)
    return Conv2D(inputs, outputs, size, stride, padding, dilation=dilation, groups=groups, bias_attr=False)


class BasicBlock(Layer):
    """Two 3 x 3 convolutions beside a short cut."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Layer | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[..., Layer] | None = None,
    ) -> None:
        super().__init__()
        if groups != 1 or base_width != 64 or dilation != 1:
            raise NotImplementedError(
                f"BasicBlock has one group of width 64 without dilation; got groups {groups}, base_width {base_width}, "
                f"dilation {dilation}"
            )
        norm = norm_layer or BatchNorm2D
        self.conv1 = _conv(inplanes, planes, 3, stride)
        self.bn1 = norm(planes)
        self.relu = ReLU()
        self.conv2 = _conv(planes, planes, 3)
        self.bn2 = norm(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """``relu(x + residual(x))``."""
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class BottleneckBlock(Layer):
    """A 3 x 3 convolution, in groups perhaps, between two of 1 x 1, beside a short cut."""

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Layer | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[..., Layer] | None = None,
    ) -> None:
        super().__init__()
        norm = norm_layer or BatchNorm2D
        width = int(planes * base_width / 64) * groups
        self.conv1 = _conv(inplanes, width, 1)
        self.bn1 = norm(width)
        self.conv2 = _conv(width, width, 3, stride, groups, dilation)
        self.bn2 = norm(width)
        self.conv3 = _conv(width, planes * self.expansion, 1)
        self.bn3 = norm(planes * self.expansion)
        self.relu = ReLU()
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """``relu(x + residual(x))``."""
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(Layer):
    """From ``[N, 3, H, W]`` to ``[N, num_classes]``.

    depth: 18, 34, 50, 101 or 152; width: of a group in its first stage; num_classes not positive: no linear
    layer; with_pool: whether the last features are averaged.
    """

    def __init__(
        self,
        block: type[BasicBlock | BottleneckBlock],
        depth: int = 50,
        width: int = 64,
        num_classes: int = 1000,
        with_pool: bool = True,
        groups: int = 1,
    ) -> None:
        super().__init__()
        if depth not in _BLOCKS:
            raise ValueError(f"ResNet: depth should be one of {sorted(_BLOCKS)}, got {depth}")
        self.groups, self.base_width = groups, width
        self.num_classes, self.with_pool = num_classes, with_pool
        self.inplanes, self.dilation, self._norm_layer = 64, 1, BatchNorm2D
        self.conv1 = Conv2D(3, 64, 7, stride=2, padding=3, bias_attr=False)
        self.bn1 = BatchNorm2D(64)
        self.relu = ReLU()
        self.maxpool = MaxPool2D(3, 2, 1)
        counts = _BLOCKS[depth]
        self.layer1 = self._make_layer(block, 64, counts[0], 1)
        self.layer2 = self._make_layer(block, 128, counts[1], 2)
        self.layer3 = self._make_layer(block, 256, counts[2], 2)
        self.layer4 = self._make_layer(block, 512, counts[3], 2)
        if with_pool:
            self.avgpool = AdaptiveAvgPool2D((1, 1))
        if num_classes > 0:
            self.fc = Linear(512 * block.expansion, num_classes)

    def _make_layer(
        self, block: Callable[..., Layer], planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> Sequential:
        """A stage of ``blocks``, the first with ``stride`` (or, where ``dilate``, the later ones dilated instead).
        Subclasses in users' code call it, under Paddle's name, with blocks of their own."""
        outputs, first = planes * block.expansion, self.dilation  # type: ignore[attr-defined]
        if dilate:
            self.dilation, stride = self.dilation * stride, 1
        shortcut = None
        if stride != 1 or self.inplanes != outputs:
            shortcut = Sequential(_conv(self.inplanes, outputs, 1, stride), self._norm_layer(outputs))
        norm = self._norm_layer
        made = [block(self.inplanes, planes, stride, shortcut, self.groups, self.base_width, first, norm)]
        self.inplanes = outputs
        settings = {"groups": self.groups, "base_width": self.base_width, "norm_layer": norm}
        return Sequential(*made, *(block(outputs, planes, **settings) for _ in range(blocks - 1)))

    def forward(self, x: Tensor) -> Tensor:
        """The scores."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        if self.with_pool:
            x = self.avgpool(x)
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x


def _make_resnet(
    name: str, depth: int, pretrained: bool, kwargs: dict[str, Any], groups: int = 1, width: int = 64
) -> ResNet:
    refuse_pretrained(name, pretrained)
    block = BasicBlock if depth < 50 else BottleneckBlock
    return ResNet(block, depth, **{"groups": groups, "width": width, **kwargs})


def resnet18(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 18 layers."""
    return _make_resnet("resnet18", 18, pretrained, kwargs)


def resnet34(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 34 layers."""
    return _make_resnet("resnet34", 34, pretrained, kwargs)


def resnet50(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 50 layers."""
    return _make_resnet("resnet50", 50, pretrained, kwargs)


def resnet101(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 101 layers."""
    return _make_resnet("resnet101", 101, pretrained, kwargs)


def resnet152(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNet of 152 layers."""
    return _make_resnet("resnet152", 152, pretrained, kwargs)


def resnext50_32x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 50 layers, 32 groups of width 4."""
    return _make_resnet("resnext50_32x4d", 50, pretrained, kwargs, 32, 4)


def resnext50_64x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 50 layers, 64 groups of width 4."""
    return _make_resnet("resnext50_64x4d", 50, pretrained, kwargs, 64, 4)


def resnext101_32x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 101 layers, 32 groups of width 4."""
    return _make_resnet("resnext101_32x4d", 101, pretrained, kwargs, 32, 4)


def resnext101_64x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 101 layers, 64 groups of width 4."""
    return _make_resnet("resnext101_64x4d", 101, pretrained, kwargs, 64, 4)


def resnext152_32x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 152 layers, 32 groups of width 4."""
    return _make_resnet("resnext152_32x4d", 152, pretrained, kwargs, 32, 4)


def resnext152_64x4d(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """ResNeXt of 152 layers, 64 groups of width 4."""
    return _make_resnet("resnext152_64x4d", 152, pretrained, kwargs, 64, 4)


def wide_resnet50_2(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """Wide ResNet of 50 layers, inner layers twice as wide."""
    return _make_resnet("wide_resnet50_2", 50, pretrained, kwargs, 1, 128)


def wide_resnet101_2(pretrained: bool = False, **kwargs: Any) -> ResNet:
    """Wide ResNet of 101 layers, inner layers twice as wide."""
    return _make_resnet("wide_resnet101_2", 101, pretrained, kwargs, 1, 128)
