"""Where Paddle defines ``RMSProp``, for code that takes it from there."""

from argosy.optimizer.adaptive import RMSProp

__all__ = ["RMSProp"]
