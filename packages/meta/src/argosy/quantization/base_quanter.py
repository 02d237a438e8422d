"""Where Paddle defines ``BaseQuanter``."""

from argosy.quantization.base import BaseQuanter

__all__ = ["BaseQuanter"]
