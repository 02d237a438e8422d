"""Inception v3 (Szegedy et al., 2016)."""

from __future__ import annotations

from typing import Any

from argosy.nn.adaptive_pooling import AdaptiveAvgPool2D
from argosy.nn.common import Linear
from argosy.nn.container import LayerList
from argosy.nn.dropout import Dropout
from argosy.nn.layer import Layer
from argosy.nn.pooling import AvgPool2D, MaxPool2D
from argosy.vision.models.blocks import ConvNormActivation, refuse_pretrained
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["InceptionV3", "inception_v3"]

_Conv = ConvNormActivation


def _row_convolution(inputs: int, outputs: int, size: int) -> _Conv:
    """Of ``1 x size``."""
    return _Conv(inputs, outputs, (1, size), 1, (0, size // 2))


def _column_convolution(inputs: int, outputs: int, size: int) -> _Conv:
    """Of ``size x 1``."""
    return _Conv(inputs, outputs, (size, 1), 1, (size // 2, 0))


class _Paths(Layer):
    """Convolutions by name, of which ``_run`` follows several in turn."""

    def _run(self, x: Tensor, *names: str) -> Tensor:
        for name in names:
            x = getattr(self, name)(x)
        return x

    @staticmethod
    def _concatenate(*paths: Tensor) -> Tensor:
        return get_operator("concat")(list(paths), 1)


class Stem(_Paths):
    """From 3 channels to 192 at an eighth of the size."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_1a_3x3 = _Conv(3, 32, 3, 2, 0)
        self.conv_2a_3x3 = _Conv(32, 32, 3, 1, 0)
        self.conv_2b_3x3 = _Conv(32, 64, 3, 1, 1)
        self.max_pool = MaxPool2D(3, 2)
        self.conv_3b_1x1 = _Conv(64, 80, 1, 1, 0)
        self.conv_4a_3x3 = _Conv(80, 192, 3, 1, 0)

    def forward(self, x: Tensor) -> Tensor:
        """The features."""
        x = self._run(x, "conv_1a_3x3", "conv_2a_3x3", "conv_2b_3x3", "max_pool")
        return self._run(x, "conv_3b_1x1", "conv_4a_3x3", "max_pool")


class InceptionA(_Paths):
    """1 x 1, 5 x 5, twice 3 x 3, and an average."""

    def __init__(self, inputs: int, pooled: int) -> None:
        super().__init__()
        self.branch1x1 = _Conv(inputs, 64, 1)
        self.branch5x5_1 = _Conv(inputs, 48, 1)
        self.branch5x5_2 = _Conv(48, 64, 5)
        self.branch3x3dbl_1 = _Conv(inputs, 64, 1)
        self.branch3x3dbl_2 = _Conv(64, 96, 3)
        self.branch3x3dbl_3 = _Conv(96, 96, 3)
        self.branch_pool = AvgPool2D(3, 1, 1, exclusive=False)
        self.branch_pool_conv = _Conv(inputs, pooled, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The channels of all paths."""
        return self._concatenate(
            self.branch1x1(x),
            self._run(x, "branch5x5_1", "branch5x5_2"),
            self._run(x, "branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"),
            self._run(x, "branch_pool", "branch_pool_conv"),
        )


class InceptionB(_Paths):
    """Half of the size: 3 x 3, twice 3 x 3, and a maximum."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.branch3x3 = _Conv(inputs, 384, 3, 2, 0)
        self.branch3x3dbl_1 = _Conv(inputs, 64, 1)
        self.branch3x3dbl_2 = _Conv(64, 96, 3)
        self.branch3x3dbl_3 = _Conv(96, 96, 3, 2, 0)
        self.branch_pool = MaxPool2D(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        """The channels of all paths."""
        return self._concatenate(
            self.branch3x3(x), self._run(x, "branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"), self.branch_pool(x)
        )


class InceptionC(_Paths):
    """1 x 1, 7 x 7 in two parts, the same twice, and an average."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.branch1x1 = _Conv(inputs, 192, 1)
        self.branch7x7_1 = _Conv(inputs, width, 1)
        self.branch7x7_2 = _row_convolution(width, width, 7)
        self.branch7x7_3 = _column_convolution(width, 192, 7)
        self.branch7x7dbl_1 = _Conv(inputs, width, 1)
        self.branch7x7dbl_2 = _column_convolution(width, width, 7)
        self.branch7x7dbl_3 = _row_convolution(width, width, 7)
        self.branch7x7dbl_4 = _column_convolution(width, width, 7)
        self.branch7x7dbl_5 = _row_convolution(width, 192, 7)
        self.branch_pool = AvgPool2D(3, 1, 1, exclusive=False)
        self.branch_pool_conv = _Conv(inputs, 192, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The channels of all paths."""
        return self._concatenate(
            self.branch1x1(x),
            self._run(x, "branch7x7_1", "branch7x7_2", "branch7x7_3"),
            self._run(x, *(f"branch7x7dbl_{i}" for i in range(1, 6))),
            self._run(x, "branch_pool", "branch_pool_conv"),
        )


class InceptionD(_Paths):
    """Half of the size: 3 x 3, 7 x 7 and 3 x 3, and a maximum."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.branch3x3_1 = _Conv(inputs, 192, 1)
        self.branch3x3_2 = _Conv(192, 320, 3, 2, 0)
        self.branch7x7x3_1 = _Conv(inputs, 192, 1)
        self.branch7x7x3_2 = _Conv(192, 192, (1, 7), 1, (0, 3))
        self.branch7x7x3_3 = _Conv(192, 192, (7, 1), 1, (3, 0))
        self.branch7x7x3_4 = _Conv(192, 192, 3, 2, 0)
        self.branch_pool = MaxPool2D(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        """The channels of all paths."""
        return self._concatenate(
            self._run(x, "branch3x3_1", "branch3x3_2"),
            self._run(x, *(f"branch7x7x3_{i}" for i in range(1, 5))),
            self.branch_pool(x),
        )


class InceptionE(_Paths):
    """1 x 1, 1 x 3 beside 3 x 1, the same behind 3 x 3, and an average."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.branch1x1 = _Conv(inputs, 320, 1)
        self.branch3x3_1 = _Conv(inputs, 384, 1)
        self.branch3x3_2a = _row_convolution(384, 384, 3)
        self.branch3x3_2b = _column_convolution(384, 384, 3)
        self.branch3x3dbl_1 = _Conv(inputs, 448, 1)
        self.branch3x3dbl_2 = _Conv(448, 384, 3)
        self.branch3x3dbl_3a = _row_convolution(384, 384, 3)
        self.branch3x3dbl_3b = _column_convolution(384, 384, 3)
        self.branch_pool = AvgPool2D(3, 1, 1, exclusive=False)
        self.branch_pool_conv = _Conv(inputs, 192, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The channels of all paths."""
        single = self.branch3x3_1(x)
        double = self._run(x, "branch3x3dbl_1", "branch3x3dbl_2")
        return self._concatenate(
            self.branch1x1(x),
            self._concatenate(self.branch3x3_2a(single), self.branch3x3_2b(single)),
            self._concatenate(self.branch3x3dbl_3a(double), self.branch3x3dbl_3b(double)),
            self._run(x, "branch_pool", "branch_pool_conv"),
        )


class InceptionV3(Layer):
    """From ``[N, 3, 299, 299]`` to ``[N, num_classes]``, or to features where that is not positive."""

    def __init__(self, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        self.inception_stem = Stem()
        self.inception_block_list = LayerList(
            [
                *(InceptionA(inputs, pooled) for inputs, pooled in ((192, 32), (256, 64), (288, 64))),
                InceptionB(288),
                *(InceptionC(768, width) for width in (128, 160, 160, 192)),
                InceptionD(768),
                InceptionE(1280),
                InceptionE(2048),
            ]
        )
        if with_pool:
            self.avg_pool = AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.dropout = Dropout(0.2, mode="downscale_in_infer")
            self.fc = Linear(2048, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """The scores."""
        x = self.inception_stem(x)
        for block in self.inception_block_list:
            x = block(x)
        if self.with_pool:
            x = self.avg_pool(x)
        return self.fc(self.dropout(x.reshape([-1, 2048]))) if self.num_classes > 0 else x


def inception_v3(pretrained: bool = False, **kwargs: Any) -> InceptionV3:
    """An :class:`InceptionV3`."""
    refuse_pretrained("inception_v3", pretrained)
    return InceptionV3(**kwargs)
