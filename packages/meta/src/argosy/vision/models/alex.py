"""AlexNet (Krizhevsky et al., 2012; the widths of Krizhevsky, 2014)."""

from __future__ import annotations

from typing import Any

from argosy.nn.activation import ReLU
from argosy.nn.common import Linear
from argosy.nn.conv import Conv2D
from argosy.nn.dropout import Dropout
from argosy.nn.layer import Layer
from argosy.nn.pooling import MaxPool2D
from argosy.vision.models.blocks import refuse_pretrained
from argosy_tensorcore.tensor import Tensor

__all__ = ["AlexNet", "alexnet"]


class ConvPool(Layer):
    """Convolution, ReLU, 3 x 3 maximum of stride 2."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.relu = ReLU()
        self._conv = Conv2D(inputs, outputs, size, stride, padding)
        self._pool = MaxPool2D(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        """The pooled features."""
        return self._pool(self.relu(self._conv(x)))


class AlexNet(Layer):
    """From ``[N, 3, 224, 224]`` to ``[N, num_classes]``, or to features where that is not positive."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        self.num_classes = num_classes
        self._conv1 = ConvPool(3, 64, 11, 4, 2)
        self._conv2 = ConvPool(64, 192, 5, 1, 2)
        self._conv3 = Conv2D(192, 384, 3, padding=1)
        self._conv4 = Conv2D(384, 256, 3, padding=1)
        self._conv5 = ConvPool(256, 256, 3, 1, 1)
        if num_classes > 0:
            self._drop1 = Dropout(0.5, mode="downscale_in_infer")
            self._fc6 = Linear(256 * 6 * 6, 4096)
            self._drop2 = Dropout(0.5, mode="downscale_in_infer")
            self._fc7 = Linear(4096, 4096)
            self._fc8 = Linear(4096, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """The scores."""
        x = self._conv2(self._conv1(inputs))
        x = self._conv5(self._conv4(self._conv3(x).relu()).relu())
        if self.num_classes <= 0:
            return x
        x = self._fc6(self._drop1(x.flatten(1))).relu()
        return self._fc8(self._fc7(self._drop2(x)).relu())


def alexnet(pretrained: bool = False, **kwargs: Any) -> AlexNet:
    """An :class:`AlexNet`."""
    refuse_pretrained("alexnet", pretrained)
    return AlexNet(**kwargs)
