"""Where Paddle defines ``AdamW``, for code that takes it from there."""

from argosy.optimizer.adam import AdamW

__all__ = ["AdamW"]
