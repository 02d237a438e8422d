"""Data-parallel training as older scripts write it: ``fleet.init``, then ``distributed_model`` and
``distributed_optimizer``. Other kinds of parallelism go by annotation: ``argosy.distributed.parallelize``,
``shard_layer`` and ``shard_optimizer``."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from argosy.distributed.collective import all_reduce, barrier
from argosy.distributed.data_parallel import DataParallel
from argosy.distributed.environment import get_rank, get_world_size
from argosy.distributed.fleet.base.topology import CommunicateTopology, HybridCommunicateGroup
from argosy.distributed.fleet.meta_parallel.hybrid_parallel_optimizer import HybridParallelOptimizer
from argosy.distributed.fleet.meta_parallel.pipeline_parallel import PipelineParallel
from argosy.distributed.group import init_parallel_env
from argosy.distributed.reduction import ReduceOp
from argosy.nn.layer import Layer
from argosy_phi_ops.context import RankState
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "DistributedStrategy", "barrier_worker", "distributed_model", "distributed_optimizer", "distributed_scaler",
    "fused_allreduce_gradients", "get_hybrid_communicate_group", "init", "is_first_worker", "is_worker",
    "obtain_optimizer_parameters_list", "worker_index", "worker_num",
]  # fmt: skip

T = TypeVar("T")

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
    "tensor_parallel": "distributed.parallelize",
    "semi_auto": "distributed.shard_tensor",
    "auto": "distributed.shard_tensor",
    "sync_batch_norm": "nn.SyncBatchNorm.convert_sync_batchnorm",
    "lamb": "optimizer.Lamb",
    "lars": "optimizer.Momentum with a trust ratio of your own",
}
"""What scripts may take for a setting that is not implemented."""
_PIPELINE_CONFIGS = frozenset({"accumulate_steps", "micro_batch_size", "schedule_mode", "p2p_cache_shape"})
_PARALLEL = ("dp_degree", "pp_degree")
_DEGREES = ("dp_degree", "mp_degree", "pp_degree", "sharding_degree", "sep_degree", "ep_degree")


class DistributedStrategy:
    """How :func:`init` is to train: copies of the model on all ranks, each with data of its own.

    Settings that change no result may be set to anything. Raises NotImplementedError, with what to use instead, where
    another one is switched on, and for ``hybrid_configs`` of a degree above 1 other than ``dp_degree`` and
    ``pp_degree``. ``pipeline_configs`` are ``accumulate_steps``, ``micro_batch_size`` and ``schedule_mode``.
    """

    def __init__(self) -> None:
        self.__dict__.update(_HARMLESS, hybrid_configs=dict.fromkeys(_DEGREES, 1) | {"dp_degree": -1})
        self.__dict__.update(pipeline=False, pipeline_configs={"accumulate_steps": 1, "micro_batch_size": 1})

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "hybrid_configs":
            self._set_degrees(value)
        elif name == "pipeline_configs":
            if unknown := value.keys() - _PIPELINE_CONFIGS:
                raise ValueError(f"DistributedStrategy.pipeline_configs has no {sorted(unknown)}")
            self.__dict__[name] = {**self.pipeline_configs, **value}
        elif name in _HARMLESS or name == "pipeline":
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
        for name, degree in given.items():
            if name.endswith("_degree") and name not in _PARALLEL and degree not in (1, -1):
                raise NotImplementedError(
                    f"DistributedStrategy.hybrid_configs: {name} of {degree} is not implemented here; annotate: "
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
    degree, stages = chosen.hybrid_configs["dp_degree"], max(1, chosen.hybrid_configs["pp_degree"])
    copies = get_world_size() // stages if degree == -1 else degree
    if copies * stages != get_world_size():
        given = f"dp_degree is {degree}" + (f" and pp_degree {stages}" if stages > 1 else "")
        raise ValueError(f"fleet.init(): {given}, but there are {get_world_size()} ranks")
    groups = HybridCommunicateGroup(CommunicateTopology(dims=(copies, stages, 1, 1, 1, 1)))
    _job.value = Job(chosen, groups)
    from argosy.distributed import fleet

    return fleet


def get_hybrid_communicate_group() -> HybridCommunicateGroup:
    """The groups of this rank. Raises RuntimeError before :func:`init`."""
    return _initialised("get_hybrid_communicate_group").groups


def distributed_model(model: Layer) -> Layer:
    """``model`` as :class:`argosy.distributed.DataParallel`, or, where :func:`init` was told of a pipeline, a
    ``PipelineLayer`` as ``PipelineParallel``; itself where there is one rank.

    Raises RuntimeError before :func:`init`.
    """
    job = _initialised("distributed_model")
    if not isinstance(model, Layer):
        raise TypeError(f"fleet.distributed_model(): argument 'model' must be a Layer, got {type(model).__name__}")
    if job.groups.get_pipe_parallel_world_size() > 1:
        return PipelineParallel(model, job.groups, job.strategy)
    if get_world_size() == 1:
        return model
    return DataParallel(model, comm_buffer_size=job.strategy.fuse_grad_size_in_MB)


def distributed_optimizer(optimizer: Any, strategy: DistributedStrategy | None = None) -> Any:
    """The optimizer itself, as gradients are averaged in the backward pass; of a pipeline a
    ``HybridParallelOptimizer``. Raises RuntimeError before :func:`init`."""
    job = _initialised("distributed_optimizer")
    if strategy is not None:
        job.strategy = strategy
    if job.groups.get_pipe_parallel_world_size() > 1:
        return HybridParallelOptimizer(optimizer, job.groups, job.strategy)
    return optimizer


def distributed_scaler(scaler: T) -> T:
    """The scaler itself: averages of gradients are finite on all ranks or on none."""
    return scaler


def fused_allreduce_gradients(parameter_list: Iterable[Tensor], hcg: object = None) -> None:
    """Replace the gradients of the parameters by their means over all ranks, for code that went back within
    ``DataParallel.no_sync()``. ``hcg`` is ignored: the group is all ranks."""
    if get_world_size() == 1:
        return
    for parameter in parameter_list:
        if not parameter.stop_gradient and parameter.grad is not None:
            all_reduce(parameter.grad, ReduceOp.AVG)


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
