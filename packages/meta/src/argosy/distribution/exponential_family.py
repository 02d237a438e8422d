"""Where Paddle keeps the base of exponential families."""

from argosy.distribution.distribution import ExponentialFamily

__all__ = ["ExponentialFamily"]
