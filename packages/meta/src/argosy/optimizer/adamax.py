"""Where Paddle defines ``Adamax``, for code that takes it from there."""

from argosy.optimizer.moments import Adamax

__all__ = ["Adamax"]
