"""Where Paddle defines ``Lamb``, for code that takes it from there."""

from argosy.optimizer.moments import Lamb

__all__ = ["Lamb"]
