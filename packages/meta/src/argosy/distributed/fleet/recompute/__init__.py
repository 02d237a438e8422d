"""Recomputation, where Paddle has it."""

# at once, as in ``argosy.amp``: imported later, the module would take the function's place
from argosy.distributed.fleet.recompute.recompute import recompute, recompute_hybrid, recompute_sequential

__all__ = ["recompute", "recompute_hybrid", "recompute_sequential"]
