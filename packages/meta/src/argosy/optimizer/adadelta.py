"""Where Paddle defines ``Adadelta``, for code that takes it from there."""

from argosy.optimizer.adaptive import Adadelta

__all__ = ["Adadelta"]
