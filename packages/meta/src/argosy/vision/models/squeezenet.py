"""SqueezeNet (Iandola et al., 2016)."""

from __future__ import annotations

from typing import Any

from argosy.nn.adaptive_pooling import AdaptiveAvgPool2D
from argosy.nn.conv import Conv2D
from argosy.nn.dropout import Dropout
from argosy.nn.layer import Layer
from argosy.nn.pooling import MaxPool2D
from argosy.vision.models.blocks import refuse_pretrained
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1"]

_FIRES = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))
"""Squeezed width and the width of each path."""
_POOLED = {"1.0": (3, 7), "1.1": (2, 4)}
"""The fires that a pooling follows."""


class ConvReLU(Layer):
    """A convolution and ReLU."""

    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__()
        self._conv = Conv2D(inputs, outputs, size, padding=size // 2)

    def forward(self, x: Tensor) -> Tensor:
        """The features."""
        return self._conv(x).relu()


class Fire(Layer):
    """Few channels, then more of 1 x 1 and of 3 x 3 side by side."""

    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self._conv = ConvReLU(inputs, squeezed, 1)
        self._conv_path1 = ConvReLU(squeezed, expanded, 1)
        self._conv_path2 = ConvReLU(squeezed, expanded, 3)

    def forward(self, x: Tensor) -> Tensor:
        """The channels of both paths."""
        x = self._conv(x)
        return get_operator("concat")([self._conv_path1(x), self._conv_path2(x)], 1)


class SqueezeNet(Layer):
    """From ``[N, 3, H, W]`` to ``[N, num_classes]``; ``version`` is "1.0" or "1.1"."""

    def __init__(self, version: str, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        if version not in _POOLED:
            raise ValueError(f"SqueezeNet: version should be one of {sorted(_POOLED)}, got {version!r}")
        self.version, self.num_classes, self.with_pool = version, num_classes, with_pool
        self._conv = Conv2D(3, 96, 7, stride=2) if version == "1.0" else Conv2D(3, 64, 3, stride=2, padding=1)
        self._pool = MaxPool2D(3, 2)
        width = 96 if version == "1.0" else 64
        self._fires = []
        for i, (squeezed, expanded) in enumerate(_FIRES, 1):
            self._fires.append(self.add_sublayer(f"_conv{i}", Fire(width, squeezed, expanded)))
            width = 2 * expanded
        self._drop = Dropout(0.5, mode="downscale_in_infer")
        self._conv9 = Conv2D(width, num_classes, 1) if num_classes > 0 else None
        self._avg_pool = AdaptiveAvgPool2D(1)

    def forward(self, inputs: Tensor) -> Tensor:
        """The scores."""
        x = self._pool(self._conv(inputs).relu())
        for i, fire in enumerate(self._fires, 1):
            x = fire(x)
            if i in _POOLED[self.version]:
                x = self._pool(x)
        if self._conv9 is not None:
            x = self._conv9(self._drop(x))
        if self.with_pool:
            x = self._avg_pool(x.relu()).squeeze([2, 3])
        return x


def squeezenet1_0(pretrained: bool = False, **kwargs: Any) -> SqueezeNet:
    """SqueezeNet as it was published."""
    refuse_pretrained("squeezenet1_0", pretrained)
    return SqueezeNet("1.0", **kwargs)


def squeezenet1_1(pretrained: bool = False, **kwargs: Any) -> SqueezeNet:
    """SqueezeNet that pools earlier, at less than half of the cost."""
    refuse_pretrained("squeezenet1_1", pretrained)
    return SqueezeNet("1.1", **kwargs)
