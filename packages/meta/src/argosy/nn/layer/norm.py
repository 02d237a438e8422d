"""Paddle's module of normalisations, for code that takes layers from where Paddle defines them."""

from argosy.nn.batch_norm import BatchNorm, BatchNorm1D, BatchNorm2D, BatchNorm3D, SyncBatchNorm
from argosy.nn.batch_norm import _BatchNorm as _BatchNormBase
from argosy.nn.channel_norm import (
    GroupNorm,
    InstanceNorm1D,
    InstanceNorm2D,
    InstanceNorm3D,
    LocalResponseNorm,
    SpectralNorm,
)
from argosy.nn.channel_norm import _InstanceNorm as _InstanceNormBase
from argosy.nn.norm import LayerNorm

__all__ = [
    "BatchNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "GroupNorm", "InstanceNorm1D",
    "InstanceNorm2D", "InstanceNorm3D", "LayerNorm", "LocalResponseNorm", "SpectralNorm", "SyncBatchNorm",
    "_BatchNormBase", "_InstanceNormBase",
]  # fmt: skip
