"""Where Paddle defines ``BaseObserver``."""

from argosy.quantization.base import BaseObserver

__all__ = ["BaseObserver"]
