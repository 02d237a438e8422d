"""Where Paddle has ``PyLayer``, for code that takes it from there."""

from argosy_autograd.pylayer import PyLayer, PyLayerContext

__all__ = ["PyLayer", "PyLayerContext"]
