"""Activations of sparse tensors as layers."""

from __future__ import annotations

from typing import Any

from argosy.nn.layer import Layer
from argosy.sparse.nn import functional as F

__all__ = ["LeakyReLU", "ReLU", "ReLU6", "Softmax"]


class _Activation(Layer):
    def __init__(self, name: str | None) -> None:
        super().__init__()
        self._name = name

    def extra_repr(self) -> str:
        """The name, where there is one."""
        return f"name={self._name}" if self._name else ""


class ReLU(_Activation):
    """``max(x, 0)`` of each value."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Any) -> Any:
        """A sparse tensor of the same positions."""
        return F.relu(x)


class ReLU6(_Activation):
    """``min(max(x, 0), 6)`` of each value."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Any) -> Any:
        """A sparse tensor of the same positions."""
        return F.relu6(x)


class LeakyReLU(_Activation):
    """``x`` where it is positive, ``negative_slope * x`` elsewhere, of each value."""

    def __init__(self, negative_slope: float = 0.01, name: str | None = None) -> None:
        super().__init__(name)
        self._negative_slope = negative_slope

    def forward(self, x: Any) -> Any:
        """A sparse tensor of the same positions."""
        return F.leaky_relu(x, self._negative_slope)


class Softmax(_Activation):
    """Softmax of the stored values along ``axis``; see :func:`argosy.sparse.nn.functional.softmax`."""

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(name)
        self._axis = axis

    def forward(self, x: Any) -> Any:
        """A sparse tensor of the same positions."""
        return F.softmax(x, self._axis)
