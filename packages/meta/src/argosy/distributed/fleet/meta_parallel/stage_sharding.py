"""ZeRO (Rajbhandari et al., 2020) of pipelines by the meshes of their stages, which split each parameter's states
(``split_param``), gradients (2) and values (3)."""

from __future__ import annotations

from typing import Any

from argosy.distributed.fleet.base.topology import HybridCommunicateGroup, ParallelMode
from argosy.distributed.sharded_optimizer import ShardingStage1, ShardingStage2, ShardingStage3

__all__ = ["refuse_split_gradients", "sharding_of_stages"]


class _StateSharding(ShardingStage1):
    """Stage 1 of parameters that are where their stages are."""

    def place(self, param: Any) -> None:
        """Leave the parameter: the first step puts it on the mesh of its stage."""


class _GradientSharding(ShardingStage2):
    """Stage 2 of parameters that are where their stages are."""

    def place(self, param: Any) -> None:
        """Leave the parameter: the first step puts it on the mesh of its stage."""


class _ParameterSharding(ShardingStage3):
    """Stage 3 of parameters that are where their stages are."""

    def place(self, param: Any) -> None:
        """Leave the parameter: the first step puts its parts on the mesh of its stage."""


_STAGES: dict[int, type[ShardingStage1]] = {1: _StateSharding, 2: _GradientSharding, 3: _ParameterSharding}


def sharding_of_stages(hcg: HybridCommunicateGroup, strategy: Any) -> ShardingStage1 | None:
    """How meshes of a pipeline's stages split states, gradients and parameters; None where each rank has the states of
    some parameters (ZeRO 1), and where there is nothing to split.

    Raises ValueError for another ``stage`` than 1, 2 or 3 of ``sharding_configs``, NotImplementedError for 2 and 3
    with parts of sequences or experts of each rank's own.
    """
    stage = _stage_of(strategy)
    if hcg.get_pipe_parallel_world_size() == 1 or hcg.get_sharding_parallel_world_size() == 1:
        return None
    differs = max(hcg.get_sep_parallel_world_size(), hcg.get_expert_parallel_world_size()) > 1
    if stage == 1 and (differs or not (strategy and strategy.hybrid_configs["sharding_configs"].split_param)):
        return None
    if differs:
        raise NotImplementedError(
            f"DistributedStrategy.sharding_configs: stage={stage} of a pipeline with sep_degree or ep_degree is not "
            "implemented; use stage 1"
        )
    return _STAGES[stage]("sharding")


def refuse_split_gradients(mode: int, strategy: Any) -> None:
    """Raise NotImplementedError where ``stage`` of ``sharding_configs`` is more than 1 and there is no pipeline."""
    stage = _stage_of(strategy)
    if stage > 1 and mode != ParallelMode.PIPELINE_PARALLEL:
        raise NotImplementedError(
            f"DistributedStrategy.sharding_configs: stage={stage} is implemented for pipelines; use "
            "distributed.sharding.group_sharded_parallel"
        )


def _stage_of(strategy: Any) -> int:
    stage = 1 if strategy is None else strategy.sharding_configs["stage"]
    if stage not in _STAGES:
        raise ValueError(f"DistributedStrategy.sharding_configs: stage is 1, 2 or 3, not {stage!r}")
    return int(stage)
