"""Paddle's module of convolutions, for code that takes layers from where Paddle defines them."""

from argosy.nn.conv import Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose, _ConvNd

__all__ = [
    "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "_ConvNd",
]  # fmt: skip
