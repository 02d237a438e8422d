"""The calls by which Paddle's ranks meet on machines without GPUs: here all ranks meet by the one communicator."""

from __future__ import annotations

from argosy.distributed.collective import barrier
from argosy.distributed.environment import get_rank, get_world_size
from argosy.distributed.group import init_parallel_env

__all__ = ["gloo_barrier", "gloo_init_parallel_env", "gloo_release"]


def gloo_init_parallel_env(rank_id: int, rank_num: int, server_endpoint: str) -> None:
    """Meet the other ranks. Raises ValueError where the launcher says another number or another rank; the endpoint is
    accepted for compatibility: launched ranks know each other.
    """
    init_parallel_env()
    if (rank_id, rank_num) != (get_rank(), get_world_size()):
        raise ValueError(
            f"gloo_init_parallel_env: rank {rank_id} of {rank_num}, but this is rank {get_rank()} of "
            f"{get_world_size()}: argosy launch starts ranks"
        )


def gloo_barrier() -> None:
    """Wait until all ranks are here."""
    barrier()


def gloo_release() -> None:
    """Nothing is left to release: the communicator is that of all collectives."""
