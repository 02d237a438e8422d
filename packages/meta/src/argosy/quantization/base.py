"""What quanters and observers are."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

from argosy.nn.layer import Layer

__all__ = ["BaseObserver", "BaseQuanter"]


class BaseQuanter(Layer, metaclass=ABCMeta):
    """A layer that simulates the quantisation of what goes through it, and knows its parameters."""

    @abstractmethod
    def forward(self, input: Any) -> Any:
        """The input, as it would be after quantisation; observers give it as it is."""

    @abstractmethod
    def scales(self) -> Any:
        """What the largest integer stands for; None where nothing was seen yet."""

    @abstractmethod
    def zero_points(self) -> Any:
        """What 0 stands for, or None: 0 itself."""

    @abstractmethod
    def quant_axis(self) -> Any:
        """The axis of channels with scales of their own; -1 or None for one scale."""

    @abstractmethod
    def bit_length(self) -> Any:
        """Bits of an integer, or (exponent, mantissa) of a float8."""


class BaseObserver(BaseQuanter):
    """A quanter that lets values through and keeps what it saw."""

    @abstractmethod
    def cal_thresholds(self) -> None:
        """Make scales and zero points of what was seen."""
