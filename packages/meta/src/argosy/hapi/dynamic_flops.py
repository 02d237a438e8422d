"""``flops`` where Paddle defines it."""

from argosy.hapi.operations import flops

__all__ = ["dynamic_flops", "flops"]

dynamic_flops = flops
