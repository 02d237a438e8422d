"""Paddle's module of linear maps, dropout and padding, for code that takes layers from where Paddle defines them."""

from argosy.nn.common import Embedding, Flatten, Identity, Linear
from argosy.nn.dropout import AlphaDropout, Dropout, Dropout2D, Dropout3D, FeatureAlphaDropout
from argosy.nn.geometry import (
    Bilinear,
    CosineSimilarity,
    Fold,
    Unflatten,
    Unfold,
    Upsample,
    UpsamplingBilinear2D,
    UpsamplingNearest2D,
)
from argosy.nn.padding import (
    CircularPad1D,
    CircularPad2D,
    CircularPad3D,
    ConstantPad1D,
    ConstantPad2D,
    ConstantPad3D,
    Pad1D,
    Pad2D,
    Pad3D,
    ReflectionPad1D,
    ReflectionPad2D,
    ReflectionPad3D,
    ReplicationPad1D,
    ReplicationPad2D,
    ReplicationPad3D,
    ZeroPad1D,
    ZeroPad2D,
    ZeroPad3D,
)

__all__ = [
    "AlphaDropout", "Bilinear", "CircularPad1D", "CircularPad2D", "CircularPad3D", "ConstantPad1D",
    "ConstantPad2D", "ConstantPad3D", "CosineSimilarity", "Dropout", "Dropout2D", "Dropout3D", "Embedding",
    "FeatureAlphaDropout", "Flatten", "Fold", "Identity", "Linear", "Pad1D", "Pad2D", "Pad3D",
    "ReflectionPad1D", "ReflectionPad2D", "ReflectionPad3D", "ReplicationPad1D", "ReplicationPad2D",
    "ReplicationPad3D", "Unflatten", "Unfold", "Upsample", "UpsamplingBilinear2D", "UpsamplingNearest2D",
    "ZeroPad1D", "ZeroPad2D", "ZeroPad3D",
]  # fmt: skip
