"""Where Paddle defines ``SGD``, for code that takes it from there."""

from argosy.optimizer.momentum import SGD

__all__ = ["SGD"]
