"""Paddle's module of pooling, for code that takes layers from where Paddle defines them."""

from argosy.nn.adaptive_pooling import (
    AdaptiveAvgPool1D,
    AdaptiveAvgPool2D,
    AdaptiveAvgPool3D,
    AdaptiveMaxPool1D,
    AdaptiveMaxPool2D,
    AdaptiveMaxPool3D,
)
from argosy.nn.pooling import AvgPool1D, AvgPool2D, AvgPool3D, LPPool1D, LPPool2D, MaxPool1D, MaxPool2D, MaxPool3D
from argosy.nn.unpooling import FractionalMaxPool2D, FractionalMaxPool3D, MaxUnPool1D, MaxUnPool2D, MaxUnPool3D

__all__ = [
    "AdaptiveAvgPool1D", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool1D", "AdaptiveMaxPool2D",
    "AdaptiveMaxPool3D", "AvgPool1D", "AvgPool2D", "AvgPool3D", "FractionalMaxPool2D",
    "FractionalMaxPool3D", "LPPool1D", "LPPool2D", "MaxPool1D", "MaxPool2D", "MaxPool3D", "MaxUnPool1D",
    "MaxUnPool2D", "MaxUnPool3D",
]  # fmt: skip
