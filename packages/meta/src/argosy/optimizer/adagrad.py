"""Where Paddle defines ``Adagrad``, for code that takes it from there."""

from argosy.optimizer.adaptive import Adagrad

__all__ = ["Adagrad"]
