"""Where Paddle has ``fused_allreduce_gradients``."""

from argosy.distributed.fleet.training import fused_allreduce_gradients

__all__ = ["fused_allreduce_gradients"]
