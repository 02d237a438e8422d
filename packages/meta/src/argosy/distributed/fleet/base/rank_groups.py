"""The groups that ``fleet.init`` made for this rank."""

from __future__ import annotations

from argosy.distributed.fleet.base.topology import HybridCommunicateGroup
from argosy.distributed.group import Group
from argosy_phi_ops.context import RankState

__all__ = ["groups", "model_parallel_group"]

groups: RankState[HybridCommunicateGroup | None] = RankState("argosy.fleet.groups", lambda: None)


def model_parallel_group() -> Group | None:
    """The ranks that have parts of one model; None before ``fleet.init``."""
    found = groups.value
    return None if found is None else found.get_model_parallel_group()
