"""Where Paddle has data parallelism, for code that takes it from there."""

from __future__ import annotations

from argosy.distributed import parallel_helper
from argosy.distributed.collective import broadcast
from argosy.distributed.data_parallel import DataParallel
from argosy.distributed.environment import ParallelEnv, get_rank, get_world_size
from argosy.distributed.group import Group, init_parallel_env, world_group
from argosy.nn.layer import Layer

__all__ = [
    "DataParallel", "ParallelEnv", "get_rank", "get_world_size", "init_parallel_env", "parallel_helper",
    "sync_params_buffers",
]  # fmt: skip


def sync_params_buffers(
    model: Layer,
    comm_group: Group | None = None,
    src_rank: int = 0,
    is_model_parallel: bool = False,
    fuse_params: bool = True,
    is_moe_sharding_parallel: bool = False,
) -> None:
    """Give every rank of ``comm_group`` (all ranks) the parameters and buffers of rank ``src_rank``, in place.

    Raises NotImplementedError for models whose parameters are split over ranks. ``fuse_params`` changes nothing.
    """
    if is_model_parallel or is_moe_sharding_parallel:
        raise NotImplementedError("sync_params_buffers: parameters split over ranks are not implemented")
    group = world_group() if comm_group is None else comm_group
    if group.nranks == 1:
        return
    for tensor in [*model.parameters(), *model.buffers()]:
        broadcast(tensor.detach(), src_rank, group)
