"""The job of which this process is a rank, as ``fleet.init`` has made it."""

from __future__ import annotations

from typing import Any

from argosy.distributed.fleet.base.topology import HybridCommunicateGroup
from argosy.distributed.fleet.strategy import DistributedStrategy
from argosy_phi_ops.context import RankState

__all__ = ["Job", "current_job", "require_job"]


class Job:
    """What :func:`fleet.init` makes of a rank: its strategy, its groups, and the last optimizer."""

    __slots__ = ("given_optimizer", "groups", "optimizer", "strategy")

    def __init__(self, strategy: DistributedStrategy, groups: HybridCommunicateGroup) -> None:
        self.strategy, self.groups = strategy, groups
        self.optimizer: Any = None
        self.given_optimizer: Any = None  # what the last distributed_optimizer() was called with


current_job: RankState[Job | None] = RankState("argosy.fleet", lambda: None)


def require_job(function: str) -> Job:
    """The rank's job. Raises RuntimeError before :func:`fleet.init`."""
    if current_job.value is None:
        raise RuntimeError(f"fleet.{function}(): call fleet.init(is_collective=True) first")
    return current_job.value
