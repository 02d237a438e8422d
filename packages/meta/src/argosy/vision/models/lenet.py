"""LeNet (LeCun et al., 1998)."""

from __future__ import annotations

from argosy.nn.activation import ReLU
from argosy.nn.common import Linear
from argosy.nn.container import Sequential
from argosy.nn.conv import Conv2D
from argosy.nn.layer import Layer
from argosy.nn.pooling import MaxPool2D
from argosy_tensorcore.tensor import Tensor

__all__ = ["LeNet"]


class LeNet(Layer):
    """From grey pictures ``[N, 1, 28, 28]`` to ``[N, num_classes]``, or to features where that is not positive."""

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.features = Sequential(
            Conv2D(1, 6, 3, stride=1, padding=1), ReLU(), MaxPool2D(2, 2),
            Conv2D(6, 16, 5, stride=1, padding=0), ReLU(), MaxPool2D(2, 2),
        )  # fmt: skip
        if num_classes > 0:
            self.fc = Sequential(Linear(400, 120), Linear(120, 84), Linear(84, num_classes))

    def forward(self, inputs: Tensor) -> Tensor:
        """The scores."""
        x = self.features(inputs)
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x
