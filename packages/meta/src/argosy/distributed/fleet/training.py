"""Training as older scripts write it: ``fleet.init``, then ``distributed_model`` and ``distributed_optimizer``. Ranks
are a grid of copies, pipelines, split states and split layers; the annotated way is ``argosy.distributed.parallelize``,
``shard_layer`` and ``shard_optimizer``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from argosy.amp import GradScaler
from argosy.distributed.collective import broadcast
from argosy.distributed.data_parallel import DataParallel
from argosy.distributed.environment import get_world_size
from argosy.distributed.fleet.base.topology import HybridCommunicateGroup, ParallelMode
from argosy.distributed.fleet.job import require_job
from argosy.distributed.fleet.meta_parallel.hybrid_parallel_optimizer import HybridParallelOptimizer, average_gradients
from argosy.distributed.fleet.meta_parallel.parallel_layers.pp_layers import PipelineLayer
from argosy.distributed.fleet.meta_parallel.pipeline_parallel import (
    DualPipeVParallel,
    NoPipelineParallel,
    PipelineParallel,
)
from argosy.distributed.fleet.meta_parallel.stage_sharding import refuse_split_gradients
from argosy.distributed.fleet.meta_parallel.wrappers import SegmentParallel, ShardingParallel, TensorParallel
from argosy.distributed.fleet.strategy import DistributedStrategy
from argosy.distributed.fleet.strategy_effects import prepare_model, prepare_optimizer, wrap_optimizer
from argosy.distributed.group import Group, world_group
from argosy.distributed.sharded_scaler import shard_scaler
from argosy.distributed.wrapped_layer import equalize, is_expert
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "distributed_model", "distributed_optimizer", "distributed_scaler", "fused_allreduce_gradients",
    "obtain_optimizer_parameters_list",
]  # fmt: skip


def distributed_model(model: Layer) -> Layer:
    """``model`` for the grid of :func:`init`: a ``PipelineLayer`` as ``PipelineParallel``, one of one stage as
    ``NoPipelineParallel``, one of split layers as ``TensorParallel``, of split states as ``ShardingParallel``, of
    split sequences as ``SegmentParallel``, copies as :class:`argosy.distributed.DataParallel`; itself where there
    is one rank.

    Raises RuntimeError before :func:`init`, NotImplementedError for ``sharding_configs`` of ``stage`` 2 and 3 without
    a pipeline.
    """
    job = require_job("distributed_model")
    if not isinstance(model, Layer):
        raise TypeError(f"fleet.distributed_model(): argument 'model' must be a Layer, got {type(model).__name__}")
    mode = job.groups.get_parallel_mode()
    refuse_split_gradients(mode, job.strategy)
    if isinstance(model, PipelineLayer):
        model.initialize_stages()
    model = prepare_model(model, job.strategy)
    for parameter in (p for p in model.parameters() if is_expert(p)):
        alike = job.groups.get_moe_sharding_parallel_group()
        broadcast(parameter, alike.ranks[0], alike)
    if mode == ParallelMode.PIPELINE_PARALLEL:
        kind = DualPipeVParallel if getattr(model, "_use_dualpipev", False) else PipelineParallel
        return kind(model, job.groups, job.strategy)
    is_copied = mode == ParallelMode.DATA_PARALLEL and not job.strategy.averages_later
    if is_copied and isinstance(model, PipelineLayer) and model._num_stages == 1:
        return NoPipelineParallel(model, job.groups, job.strategy)
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
    ``HybridParallelOptimizer``, as with an ``ep_degree``; with the steps that the strategy asks for. Raises
    RuntimeError before :func:`init`, NotImplementedError for ``localsgd`` and ``dgc`` on other grids than copies.
    Returns an optimizer."""
    job = require_job("distributed_optimizer")
    if strategy is not None:
        job.strategy = strategy
    job.given_optimizer = optimizer
    made = prepare_optimizer(optimizer, job.strategy)
    copies = job.groups.get_parallel_mode() == ParallelMode.DATA_PARALLEL
    if not copies or job.groups.get_expert_parallel_world_size() > 1:
        if job.strategy.averages_later:
            raise NotImplementedError(
                "DistributedStrategy.localsgd, adaptive_localsgd and dgc are implemented for copies of a model alone"
            )
        made = HybridParallelOptimizer(made, job.groups, job.strategy)
        if copies:
            made._copies = None  # the backward pass averages the gradients of all but experts
    job.optimizer = wrap_optimizer(made, job.strategy, job.groups.get_data_parallel_group())
    return job.optimizer


def distributed_scaler(scaler: GradScaler) -> GradScaler:
    """The scaler; where not all ranks have the same gradients it skips a step on every rank that one has to skip.
    Raises RuntimeError before :func:`init`."""
    groups = require_job("distributed_scaler").groups
    mode, experts = groups.get_parallel_mode(), groups.get_expert_parallel_world_size()
    return scaler if mode == ParallelMode.DATA_PARALLEL and experts == 1 else shard_scaler(scaler)


def fused_allreduce_gradients(parameter_list: Iterable[Tensor], hcg: HybridCommunicateGroup | None = None) -> None:
    """Replace the gradients of the parameters, but those of experts, by their means over the copies of ``hcg``, all
    ranks without one, for code that went back within ``DataParallel.no_sync()``."""
    shared = [p for p in parameter_list if not is_expert(p)]
    average_gradients(shared, [world_group() if hcg is None else hcg.get_data_parallel_group()])


def fused_allreduce_gradients_with_group(
    parameter_list: Iterable[Tensor], group: Group | None, bucket_size: int = 1 << 27, scale: float | None = None
) -> None:
    """Replace the gradients of the parameters by their sums over ``group`` (all ranks) times ``scale``, by default
    their means. ``bucket_size`` changes nothing."""
    chosen = world_group() if group is None else group
    parameters = [p for p in parameter_list if p.grad is not None]
    average_gradients(parameters, [chosen])
    if scale is not None and scale * chosen.nranks != 1:
        for gradient in (p.grad for p in parameters):
            assert gradient is not None
            gradient.scale_(scale * chosen.nranks)


def unwrap_optimizer(optimizer: Any, optimizer_instances: Any = ()) -> Any:
    """Returns the optimizer within wrappers of the classes ``optimizer_instances``."""
    while isinstance(optimizer, optimizer_instances):
        optimizer = optimizer._inner_opt
    return optimizer


def obtain_optimizer_parameters_list(optimizer: Any) -> list[Tensor]:
    """The parameters of an optimizer, those of its groups one group after the other."""
    groups = getattr(optimizer, "_param_groups", None)
    if groups and isinstance(groups[0], dict):
        return [parameter for group in groups for parameter in group["params"]]
    return list(optimizer._parameter_list)
