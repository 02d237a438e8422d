"""Layers that Paddle has as kernels of their own: compositions here, which the compiler fuses."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())
