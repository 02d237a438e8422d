"""What Paddle's ``fleet`` trains parts of models with, each class by its name: annotations do that here."""

from __future__ import annotations

from typing import Any

__all__ = [
    "DygraphShardingOptimizer", "DygraphShardingOptimizerV2", "GroupShardedOptimizerStage2", "GroupShardedScaler",
]  # fmt: skip


class _Absent:
    """Raises NotImplementedError. Libraries ask whether their optimizer or model is one: none is."""

    _instead = "distributed.shard_optimizer"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"fleet.{type(self).__name__} is not implemented; use {self._instead}")


class DygraphShardingOptimizer(_Absent):
    """States of an optimizer split over ranks. Raises NotImplementedError."""


class DygraphShardingOptimizerV2(_Absent):
    """States of an optimizer split over ranks. Raises NotImplementedError."""


class GroupShardedOptimizerStage2(_Absent):
    """States and gradients split over ranks. Raises NotImplementedError."""


class GroupShardedScaler(_Absent):
    """A scaler of gradients split over ranks. Raises NotImplementedError."""

    _instead = "distributed.shard_scaler"
