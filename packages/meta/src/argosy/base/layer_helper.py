"""Where Paddle defines ``LayerHelper``."""

from argosy.common_ops_import import LayerHelper

__all__ = ["LayerHelper"]
