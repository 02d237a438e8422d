"""Normalisations of language models."""

from __future__ import annotations

from typing import Any

from argosy import nn
from argosy.models.configuration import NormConfig
from argosy.nn import functional as F
from argosy.nn.layer import Layer

__all__ = ["UnitOffsetRMSNorm", "make_norm"]


class UnitOffsetRMSNorm(Layer):
    """``x / sqrt(mean(x^2) + epsilon) * (1 + weight)`` over the last axis: the weight is what differs from one."""

    weight: Any

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = self.create_parameter([width], default_initializer=nn.initializer.Constant(0.0))

    def forward(self, x: Any) -> Any:
        """The normalised input."""
        return F.rms_norm(x, [self.weight.shape[0]], 1.0 + self.weight, self.epsilon)


def make_norm(width: int, config: NormConfig) -> Layer:
    """The normalisation over an axis of ``width`` channels that ``config`` describes."""
    if config.kind == "layer":
        return nn.LayerNorm(width, epsilon=config.epsilon)
    if config.unit_offset:
        return UnitOffsetRMSNorm(width, config.epsilon)
    return nn.RMSNorm(width, epsilon=config.epsilon)
