"""Training as older scripts write it: ``fleet.init``, then ``distributed_model`` and ``distributed_optimizer``. Ranks
are a grid of copies, pipelines, split states and split layers; the annotated way is ``argosy.distributed.parallelize``,
``shard_layer`` and ``shard_optimizer``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
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
from argosy.distributed.fleet.strategy import AXES, DistributedStrategy
from argosy.distributed.fleet.strategy_effects import prepare_model, prepare_optimizer, wrap_optimizer
from argosy.distributed.group import init_parallel_env, world_group
from argosy.distributed.sharded_scaler import shard_scaler
from argosy.distributed.wrapped_layer import equalize
from argosy.nn.layer import Layer
from argosy_phi_ops.context import RankState
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "barrier_worker", "distributed_model", "distributed_optimizer", "distributed_scaler",
    "fused_allreduce_gradients", "get_hybrid_communicate_group", "init", "is_first_worker", "is_worker",
    "obtain_optimizer_parameters_list", "worker_index", "worker_num",
]  # fmt: skip


class Job:
    """What :func:`init` makes of a rank: its strategy and its groups."""

    __slots__ = ("groups", "strategy")

    def __init__(self, strategy: DistributedStrategy, groups: HybridCommunicateGroup) -> None:
        self.strategy, self.groups = strategy, groups


_job: RankState[Job | None] = RankState("argosy.fleet", lambda: None)


def _require_job(function: str) -> Job:
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
    groups = HybridCommunicateGroup(_topology(chosen), chosen.hybrid_configs)
    _job.value = Job(chosen, groups)
    rank_groups.groups.value = groups
    from argosy.distributed import fleet

    return fleet


def _topology(strategy: DistributedStrategy) -> CommunicateTopology:
    """The grid of ranks. As many copies as fill it where ``dp_degree`` is -1."""
    degrees = strategy.degrees()
    world, order = get_world_size(), list(strategy.hybrid_configs["order"])
    if unknown := {*order} - {*AXES}:
        raise ValueError(f"fleet.init(): hybrid_configs['order'] names {sorted(unknown)}; there are {[*AXES]}")
    order += [axis for axis in AXES if axis not in order]
    if degrees["dp"] == -1:
        degrees["dp"] = world // prod(size for axis, size in degrees.items() if axis != "dp")
    if prod(degrees.values()) != world:
        given = " and ".join(f"{a}_degree is {n}" for a, n in degrees.items() if n > 1 or a == "dp")
        raise ValueError(f"fleet.init(): {given}, but there are {world} ranks")
    return CommunicateTopology([AXES[axis] for axis in order], [degrees[axis] for axis in order])


def get_hybrid_communicate_group() -> HybridCommunicateGroup:
    """The groups of this rank. Raises RuntimeError before :func:`init`."""
    return _require_job("get_hybrid_communicate_group").groups


def distributed_model(model: Layer) -> Layer:
    """``model`` for the grid of :func:`init`: a ``PipelineLayer`` as ``PipelineParallel``, one of split layers as
    ``TensorParallel``, of split states as ``ShardingParallel``, of split sequences as ``SegmentParallel``, copies as
    :class:`argosy.distributed.DataParallel`; itself where there is one rank.

    Raises RuntimeError before :func:`init`.
    """
    job = _require_job("distributed_model")
    if not isinstance(model, Layer):
        raise TypeError(f"fleet.distributed_model(): argument 'model' must be a Layer, got {type(model).__name__}")
    mode = job.groups.get_parallel_mode()
    model = prepare_model(model, job.strategy)
    if mode == ParallelMode.PIPELINE_PARALLEL:
        kind = DualPipeVParallel if getattr(model, "_use_dualpipev", False) else PipelineParallel
        return kind(model, job.groups, job.strategy)
    if get_world_size() == 1:
        return model
    if mode == ParallelMode.DATA_PARALLEL and job.strategy.averages_later:
        equalize(model, job.groups.get_data_parallel_group(), split_too=True)
        return model
    if mode == ParallelMode.DATA_PARALLEL:
        made = DataParallel(model, comm_buffer_size=job.strategy.fuse_grad_size_in_MB)
        made._narrow = job.strategy.fp16_allreduce
        return made
    return _WRAPPERS[mode](model, job.groups, job.strategy)


_WRAPPERS: dict[int, Callable[..., Layer]] = {
    ParallelMode.TENSOR_PARALLEL: TensorParallel, ParallelMode.SHARDING_PARALLEL: ShardingParallel,
    ParallelMode.SEGMENT_PARALLEL: SegmentParallel,
}  # fmt: skip


def distributed_optimizer(optimizer: Any, strategy: DistributedStrategy | None = None) -> Any:
    """The optimizer itself where there are copies only, as gradients are averaged in the backward pass; else a
    ``HybridParallelOptimizer``; with the steps that the strategy asks for. Raises RuntimeError before :func:`init`,
    NotImplementedError for ``localsgd`` and ``dgc`` on other grids than copies. Returns an optimizer."""
    job = _require_job("distributed_optimizer")
    if strategy is not None:
        job.strategy = strategy
    made = prepare_optimizer(optimizer, job.strategy)
    if job.groups.get_parallel_mode() != ParallelMode.DATA_PARALLEL:
        if job.strategy.averages_later:
            raise NotImplementedError(
                "DistributedStrategy.localsgd, adaptive_localsgd and dgc are implemented for copies of a model alone"
            )
        made = HybridParallelOptimizer(made, job.groups, job.strategy)
    return wrap_optimizer(made, job.strategy, job.groups.get_data_parallel_group())


def distributed_scaler(scaler: GradScaler) -> GradScaler:
    """The scaler; where not all ranks have the same gradients it skips a step on every rank that one has to skip.
    Raises RuntimeError before :func:`init`."""
    alike = _require_job("distributed_scaler").groups.get_parallel_mode() == ParallelMode.DATA_PARALLEL
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
