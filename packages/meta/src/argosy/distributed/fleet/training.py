"""Training as older scripts write it: ``fleet.init``, then ``distributed_model`` and ``distributed_optimizer``. Ranks
are a grid of copies, pipelines, split states and split layers; the annotated way is ``argosy.distributed.parallelize``,
``shard_layer`` and ``shard_optimizer``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

from argosy.amp import GradScaler
from argosy.distributed.collective import barrier
from argosy.distributed.data_parallel import DataParallel
from argosy.distributed.environment import get_rank, get_world_size
from argosy.distributed.fleet.base import rank_groups
from argosy.distributed.fleet.base.topology import CommunicateTopology, HybridCommunicateGroup, ParallelMode
from argosy.distributed.fleet.meta_parallel.hybrid_parallel_optimizer import HybridParallelOptimizer, average_gradients
from argosy.distributed.fleet.meta_parallel.pipeline_parallel import DualPipeVParallel, PipelineParallel
from argosy.distributed.fleet.meta_parallel.wrappers import SegmentParallel, ShardingParallel, TensorParallel
from argosy.distributed.group import init_parallel_env, world_group
from argosy.distributed.sharded_scaler import shard_scaler
from argosy.nn.layer import Layer
from argosy_phi_ops.context import RankState
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "DistributedStrategy", "barrier_worker", "distributed_model", "distributed_optimizer", "distributed_scaler",
    "fused_allreduce_gradients", "get_hybrid_communicate_group", "init", "is_first_worker", "is_worker",
    "obtain_optimizer_parameters_list", "worker_index", "worker_num",
]  # fmt: skip

_HARMLESS: dict[str, Any] = {
    "find_unused_parameters": False,
    "fuse_all_reduce_ops": True,
    "fuse_grad_size_in_MB": 32,
    "last_comm_group_size_MB": 1,
    "nccl_comm_num": 1,
    "sync_nccl_allreduce": True,
    "cudnn_exhaustive_search": False,
    "conv_workspace_size_limit": 512,
    "cudnn_batchnorm_spatial_persistent": False,
    "without_graph_optimization": True,
}
"""Settings that change no result: they may be set to anything."""
_INSTEAD = {
    "amp": "amp.auto_cast and amp.GradScaler",
    "recompute": "fleet.recompute",
    "gradient_merge": "several backward() before step()",
    "sharding": "distributed.shard_optimizer",
    "semi_auto": "distributed.shard_tensor",
    "auto": "distributed.shard_tensor",
    "sync_batch_norm": "nn.SyncBatchNorm.convert_sync_batchnorm",
    "lamb": "optimizer.Lamb",
    "lars": "optimizer.Momentum with a trust ratio of your own",
}
"""What scripts may take for a setting that is not implemented."""
_PIPELINE_CONFIGS = frozenset({"accumulate_steps", "micro_batch_size", "schedule_mode", "p2p_cache_shape"})
_DEGREES = ("dp_degree", "mp_degree", "pp_degree", "sharding_degree", "sep_degree", "cp_degree", "ep_degree")
_AXES = {"dp": "data", "pp": "pipe", "sharding": "sharding", "sep": "sep", "cp": "context", "mp": "model"}
"""From the names of ``hybrid_configs["order"]`` to those of the grid, in the order that they have by default."""
_NOT_SPLIT = ("cp_degree", "ep_degree")
_SUB_CONFIGS = ("mp_configs", "pp_configs", "sharding_configs", "dp_comm_configs", "ep_configs", "cp_configs")


class DistributedStrategy:
    """How :func:`init` is to train: copies of the model on all ranks, each with data of its own.

    Settings that change no result, and the ``..._configs`` of others, may be set to anything. Raises
    NotImplementedError, with what to use instead, where another one is switched on, and for ``hybrid_configs`` of a
    ``cp_degree`` or ``ep_degree`` above 1. ``pipeline_configs`` are ``accumulate_steps``, ``micro_batch_size`` and
    ``schedule_mode``; ``tensor_parallel`` with ``tensor_parallel_configs`` is ``mp_degree`` by another name.
    """

    def __init__(self) -> None:
        self.__dict__.update(_HARMLESS, hybrid_configs=dict.fromkeys(_DEGREES, 1) | {"dp_degree": -1})
        self.hybrid_configs |= {"order": [*_AXES], **{name: {} for name in _SUB_CONFIGS}}
        self.__dict__.update(tensor_parallel=False, tensor_parallel_configs={"tensor_parallel_degree": 1})
        self.__dict__.update(pipeline=False, pipeline_configs={"accumulate_steps": 1, "micro_batch_size": 1})

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "hybrid_configs":
            self._set_degrees(value)
        elif name == "pipeline_configs":
            if unknown := value.keys() - _PIPELINE_CONFIGS:
                raise ValueError(f"DistributedStrategy.pipeline_configs has no {sorted(unknown)}")
            self.__dict__[name] = {**self.pipeline_configs, **value}
        elif name.endswith("_configs"):  # what a switch would read
            self.__dict__[name] = {**getattr(self, name), **value}
        elif name in _HARMLESS or name in ("pipeline", "tensor_parallel"):
            self.__dict__[name] = value
        elif value:
            other = _INSTEAD.get(name)
            raise NotImplementedError(
                f"DistributedStrategy.{name} is not implemented" + (f"; use {other}" if other else "")
            )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return {} if name.endswith("_configs") else False

    def _set_degrees(self, given: Mapping[str, Any]) -> None:
        for name in _NOT_SPLIT:
            if given.get(name, 1) not in (1, -1):
                raise NotImplementedError(
                    f"DistributedStrategy.hybrid_configs: {name} of {given[name]} is not implemented here; annotate: "
                    "distributed.parallelize, shard_layer, shard_optimizer"
                )
        self.__dict__["hybrid_configs"] = {**self.hybrid_configs, **given}


class Job:
    """What :func:`init` makes of a rank: its strategy and its groups."""

    __slots__ = ("groups", "strategy")

    def __init__(self, strategy: DistributedStrategy, groups: HybridCommunicateGroup) -> None:
        self.strategy, self.groups = strategy, groups


_job: RankState[Job | None] = RankState("argosy.fleet", lambda: None)


def _initialised(function: str) -> Job:
    if _job.value is None:
        raise RuntimeError(f"fleet.{function}(): call fleet.init(is_collective=True) first")
    return _job.value


def init(
    role_maker: object = None,
    is_collective: bool = False,
    strategy: DistributedStrategy | None = None,
    log_level: int | str = "INFO",
) -> Any:
    """Get this process ready as one of several ranks. Returns the module ``fleet``.

    Raises NotImplementedError for parameter servers, which are what ``is_collective=False`` with a ``role_maker`` asks
    for, ValueError for degrees that do not make the number of ranks.
    """
    if role_maker is not None and not is_collective and not getattr(role_maker, "_is_collective", False):
        raise NotImplementedError("fleet.init(): parameter servers are not implemented; use is_collective=True")
    logging.getLogger("argosy").setLevel(log_level)
    init_parallel_env()
    chosen = DistributedStrategy() if strategy is None else strategy
    groups = HybridCommunicateGroup(_topology(chosen))
    _job.value = Job(chosen, groups)
    rank_groups.groups.value = groups
    from argosy.distributed import fleet

    return fleet


def _topology(strategy: DistributedStrategy) -> CommunicateTopology:
    """The grid of ranks. As many copies as fill it where ``dp_degree`` is -1."""
    configs = strategy.hybrid_configs
    degrees = {axis: max(1, int(configs.get(f"{axis}_degree", 1))) for axis in _AXES}
    if strategy.tensor_parallel:
        degrees["mp"] = int(strategy.tensor_parallel_configs["tensor_parallel_degree"])
    world, order = get_world_size(), list(configs["order"])
    if unknown := {*order} - {*_AXES}:
        raise ValueError(f"fleet.init(): hybrid_configs['order'] names {sorted(unknown)}; there are {[*_AXES]}")
    order += [axis for axis in _AXES if axis not in order]
    others = prod(size for axis, size in degrees.items() if axis != "dp")
    if configs["dp_degree"] == -1:
        degrees["dp"] = world // others
    if prod(degrees.values()) != world:
        given = " and ".join(f"{a}_degree is {n}" for a, n in degrees.items() if n > 1 or a == "dp")
        raise ValueError(f"fleet.init(): {given}, but there are {world} ranks")
    return CommunicateTopology([_AXES[axis] for axis in order], [degrees[axis] for axis in order])


def get_hybrid_communicate_group() -> HybridCommunicateGroup:
    """The groups of this rank. Raises RuntimeError before :func:`init`."""
    return _initialised("get_hybrid_communicate_group").groups


def distributed_model(model: Layer) -> Layer:
    """``model`` for the grid of :func:`init`: a ``PipelineLayer`` as ``PipelineParallel``, one of split layers as
    ``TensorParallel``, of split states as ``ShardingParallel``, of split sequences as ``SegmentParallel``, copies as
    :class:`argosy.distributed.DataParallel`; itself where there is one rank.

    Raises RuntimeError before :func:`init`.
    """
    job = _initialised("distributed_model")
    if not isinstance(model, Layer):
        raise TypeError(f"fleet.distributed_model(): argument 'model' must be a Layer, got {type(model).__name__}")
    mode = job.groups.get_parallel_mode()
    if mode == ParallelMode.PIPELINE_PARALLEL:
        kind = DualPipeVParallel if getattr(model, "_use_dualpipev", False) else PipelineParallel
        return kind(model, job.groups, job.strategy)
    if get_world_size() == 1:
        return model
    if mode == ParallelMode.DATA_PARALLEL:
        return DataParallel(model, comm_buffer_size=job.strategy.fuse_grad_size_in_MB)
    return _WRAPPERS[mode](model, job.groups, job.strategy)


_WRAPPERS: dict[int, Callable[..., Layer]] = {
    ParallelMode.TENSOR_PARALLEL: TensorParallel, ParallelMode.SHARDING_PARALLEL: ShardingParallel,
    ParallelMode.SEGMENT_PARALLEL: SegmentParallel,
}  # fmt: skip


def distributed_optimizer(optimizer: Any, strategy: DistributedStrategy | None = None) -> Any:
    """The optimizer itself where there are copies only, as gradients are averaged in the backward pass; else a
    ``HybridParallelOptimizer``. Raises RuntimeError before :func:`init`."""
    job = _initialised("distributed_optimizer")
    if strategy is not None:
        job.strategy = strategy
    if job.groups.get_parallel_mode() == ParallelMode.DATA_PARALLEL:
        return optimizer
    return HybridParallelOptimizer(optimizer, job.groups, job.strategy)


def distributed_scaler(scaler: GradScaler) -> GradScaler:
    """The scaler; where not all ranks have the same gradients it skips a step on every rank that one has to skip.
    Raises RuntimeError before :func:`init`."""
    alike = _initialised("distributed_scaler").groups.get_parallel_mode() == ParallelMode.DATA_PARALLEL
    return scaler if alike else shard_scaler(scaler)


def fused_allreduce_gradients(parameter_list: Iterable[Tensor], hcg: HybridCommunicateGroup | None = None) -> None:
    """Replace the gradients of the parameters by their means over the copies of ``hcg``, all ranks without one, for
    code that went back within ``DataParallel.no_sync()``."""
    average_gradients(list(parameter_list), [world_group() if hcg is None else hcg.get_data_parallel_group()])


def obtain_optimizer_parameters_list(optimizer: Any) -> list[Tensor]:
    """The parameters of an optimizer, those of its groups one group after the other."""
    groups = getattr(optimizer, "_param_groups", None)
    if groups and isinstance(groups[0], dict):
        return [parameter for group in groups for parameter in group["params"]]
    return list(optimizer._parameter_list)


def worker_index() -> int:
    """The number of this rank."""
    return get_rank()


def worker_num() -> int:
    """How many ranks there are."""
    return get_world_size()


def is_first_worker() -> bool:
    """Whether this is rank 0."""
    return get_rank() == 0


def is_worker() -> bool:
    """True: every rank trains."""
    return True


def barrier_worker() -> None:
    """Wait until all ranks are here."""
    barrier()
