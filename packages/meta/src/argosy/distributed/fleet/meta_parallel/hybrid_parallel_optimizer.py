"""``HybridParallelOptimizer``: what ``fleet.distributed_optimizer`` makes of an optimizer of a model of stages."""

from __future__ import annotations

from typing import Any

from argosy.optimizer.optimizer import Optimizer

__all__ = ["HybridParallelOptimizer"]


class HybridParallelOptimizer:
    """An optimizer whose parameters lie on the ranks of a job: it acts as ``optimizer``, which knows where they are.
    Norms for clipping are those of all ranks.
    """

    def __init__(self, optimizer: Optimizer, hcg: Any = None, strategy: Any = None) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"HybridParallelOptimizer takes an Optimizer, not {type(optimizer).__name__}")
        self._inner_opt, self._hcg, self._strategy = optimizer, hcg, strategy

    def __getattr__(self, name: str) -> Any:
        if name == "_inner_opt":
            raise AttributeError(name)
        return getattr(self._inner_opt, name)
