"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.geometry import ChannelShuffle as ChannelShuffle
from argosy.nn.geometry import PixelShuffle as PixelShuffle
from argosy.nn.geometry import PixelUnshuffle as PixelUnshuffle
