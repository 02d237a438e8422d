"""Paddle's module of rearrangements of images, for code that takes layers from where Paddle defines them."""

from argosy.nn.geometry import ChannelShuffle, PixelShuffle, PixelUnshuffle

__all__ = ["ChannelShuffle", "PixelShuffle", "PixelUnshuffle"]
