"""VGG (Simonyan and Zisserman, 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.nn.activation import ReLU
from argosy.nn.adaptive_pooling import AdaptiveAvgPool2D
from argosy.nn.batch_norm import BatchNorm2D
from argosy.nn.common import Linear
from argosy.nn.container import Sequential
from argosy.nn.conv import Conv2D
from argosy.nn.dropout import Dropout
from argosy.nn.layer import Layer
from argosy.nn.pooling import MaxPool2D
from argosy.vision.models.blocks import refuse_pretrained
from argosy_tensorcore.tensor import Tensor

__all__ = ["VGG", "make_layers", "vgg11", "vgg13", "vgg16", "vgg19"]

_CONVOLUTIONS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_WIDTHS = (64, 128, 256, 512, 512)


class VGG(Layer):
    """``features`` and three linear layers: from ``[N, 3, 224, 224]`` to ``[N, num_classes]``.

    num_classes not positive: no linear layers; with_pool: features are averaged to 7 x 7.
    """

    def __init__(self, features: Layer, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.features = features
        self.num_classes, self.with_pool = num_classes, with_pool
        if with_pool:
            self.avgpool = AdaptiveAvgPool2D((7, 7))
        if num_classes > 0:
            self.classifier = Sequential(
                Linear(512 * 7 * 7, 4096), ReLU(), Dropout(),
                Linear(4096, 4096), ReLU(), Dropout(),
                Linear(4096, num_classes),
            )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """The scores."""
        x = self.features(x)
        if self.with_pool:
            x = self.avgpool(x)
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


def make_layers(cfg: Sequence[int | str], batch_norm: bool = False) -> Sequential:
    """The features of a picture of 3 channels: for each number a 3 x 3 convolution to so many channels (then normalised
    with ``batch_norm``) and ReLU, for each "M" a maximum over 2 x 2.
    """
    layers: list[Layer] = []
    inputs = 3
    for entry in cfg:
        if isinstance(entry, str):
            if entry != "M":
                raise ValueError(f"make_layers(): cfg should hold numbers of channels and 'M', got {entry!r}")
            layers.append(MaxPool2D(2, 2))
            continue
        layers.append(Conv2D(inputs, entry, 3, padding=1))
        layers += [BatchNorm2D(entry), ReLU()] if batch_norm else [ReLU()]
        inputs = entry
    return Sequential(*layers)


def _configuration(depth: int) -> list[int | str]:
    entries: list[int | str] = []
    for count, width in zip(_CONVOLUTIONS[depth], _WIDTHS, strict=True):
        entries += [*[width] * count, "M"]
    return entries


def _vgg(depth: int, pretrained: bool, batch_norm: bool, kwargs: dict[str, Any]) -> VGG:
    refuse_pretrained(f"vgg{depth}", pretrained)
    return VGG(make_layers(_configuration(depth), batch_norm), **kwargs)


def vgg11(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
    """VGG of 11 layers."""
    return _vgg(11, pretrained, batch_norm, kwargs)


def vgg13(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
    """VGG of 13 layers."""
    return _vgg(13, pretrained, batch_norm, kwargs)


def vgg16(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
    """VGG of 16 layers."""
    return _vgg(16, pretrained, batch_norm, kwargs)


def vgg19(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
    """VGG of 19 layers."""
    return _vgg(19, pretrained, batch_norm, kwargs)
