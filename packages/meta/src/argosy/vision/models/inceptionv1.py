"""GoogLeNet (Szegedy et al., 2015)."""

from __future__ import annotations

from typing import Any

from argosy.nn.adaptive_pooling import AdaptiveAvgPool2D
from argosy.nn.common import Linear
from argosy.nn.conv import Conv2D
from argosy.nn.dropout import Dropout
from argosy.nn.layer import Layer
from argosy.nn.pooling import AvgPool2D, MaxPool2D
from argosy.vision.models.blocks import refuse_pretrained
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["GoogLeNet", "googlenet"]

_MODULES = {
    "3a": (192, 64, 96, 128, 16, 32, 32), "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64), "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64), "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128), "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}  # fmt: skip
"""Inputs; 1 x 1; 3 x 3 reduced and made; 5 x 5 reduced and made; pooled and projected."""


class Convolution(Layer):
    """A convolution without bias that keeps the size at stride 1."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1) -> None:
        super().__init__()
        self._conv = Conv2D(inputs, outputs, size, stride, (size - 1) // 2, bias_attr=False)

    def forward(self, x: Tensor) -> Tensor:
        """The features."""
        return self._conv(x)


class Inception(Layer):
    """Convolutions of three sizes and a pooling, side by side."""

    def __init__(self, inputs: int, one: int, reduced3: int, three: int, reduced5: int, five: int, pooled: int) -> None:
        super().__init__()
        self._conv1 = Convolution(inputs, one, 1)
        self._conv3r = Convolution(inputs, reduced3, 1)
        self._conv3 = Convolution(reduced3, three, 3)
        self._conv5r = Convolution(inputs, reduced5, 1)
        self._conv5 = Convolution(reduced5, five, 5)
        self._pool = MaxPool2D(3, 1, 1)
        self._convprj = Convolution(inputs, pooled, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The channels of all paths."""
        paths = [
            self._conv1(x),
            self._conv3(self._conv3r(x)),
            self._conv5(self._conv5r(x)),
            self._convprj(self._pool(x)),
        ]
        return get_operator("concat")(paths, 1).relu()


class GoogLeNet(Layer):
    """From ``[N, 3, 224, 224]`` to three ``[N, num_classes]``: the scores, and those of two heads on the way."""

    def __init__(self, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        self._conv = Convolution(3, 64, 7, 2)
        self._pool = MaxPool2D(3, 2)
        self._conv_1 = Convolution(64, 64, 1)
        self._conv_2 = Convolution(64, 192, 3)
        for name, widths in _MODULES.items():
            self.add_sublayer(f"_ince{name}", Inception(*widths))
        if with_pool:
            self._pool_5 = AdaptiveAvgPool2D(1)
            self._pool_o1 = AvgPool2D(5, 3)
            self._pool_o2 = AvgPool2D(5, 3)
        if num_classes > 0:
            self._drop = Dropout(0.4, mode="downscale_in_infer")
            self._fc_out = Linear(1024, num_classes)
            self._head("1", 512)
            self._head("2", 528)

    def _head(self, number: str, inputs: int) -> None:
        self.add_sublayer(f"_conv_o{number}", Convolution(inputs, 128, 1))
        self.add_sublayer(f"_fc_o{number}", Linear(1152, 1024))
        self.add_sublayer(f"_drop_o{number}", Dropout(0.7, mode="downscale_in_infer"))
        self.add_sublayer(f"_out{number}", Linear(1024, self.num_classes))

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The three scores (features where ``num_classes`` is not positive)."""
        x = self._pool(self._conv_2(self._conv_1(self._pool(self._conv(inputs)))))
        x = self._pool(self._ince3b(self._ince3a(x)))
        first = self._ince4a(x)
        second = self._ince4d(self._ince4c(self._ince4b(first)))
        x = self._pool(self._ince4e(second))
        x = self._ince5b(self._ince5a(x))
        if self.with_pool:
            x, first, second = self._pool_5(x), self._pool_o1(first), self._pool_o2(second)
        if self.num_classes <= 0:
            return x, first, second
        x = self._fc_out(self._drop(x).squeeze([2, 3]))
        first = self._fc_o1(self._conv_o1(first).flatten(1)).relu()
        second = self._fc_o2(self._conv_o2(second).flatten(1))
        return x, self._out1(self._drop_o1(first)), self._out2(self._drop_o2(second))


def googlenet(pretrained: bool = False, **kwargs: Any) -> GoogLeNet:
    """A :class:`GoogLeNet`."""
    refuse_pretrained("googlenet", pretrained)
    return GoogLeNet(**kwargs)
