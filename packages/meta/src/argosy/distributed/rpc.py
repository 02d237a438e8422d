"""Remote calls, which are not implemented: what Paddle's ``distributed.rpc`` has, each by its name."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "get_all_worker_infos", "get_current_worker_info", "get_worker_info", "init_rpc", "rpc_async", "rpc_sync",
    "shutdown",
]  # fmt: skip


def _absent(name: str) -> NoReturn:
    raise NotImplementedError(
        f"distributed.rpc.{name} is not implemented: ranks exchange Python objects by send_object_list and "
        "all_gather_object"
    )


def init_rpc(
    name: str, rank: int | None = None, world_size: int | None = None, master_endpoint: str | None = None
) -> NoReturn:
    """Raises NotImplementedError."""
    _absent("init_rpc")


def rpc_sync(to: str, fn: Any, args: Any = None, kwargs: Any = None, timeout: float = -1) -> NoReturn:
    """Raises NotImplementedError."""
    _absent("rpc_sync")


def rpc_async(to: str, fn: Any, args: Any = None, kwargs: Any = None, timeout: float = -1) -> NoReturn:
    """Raises NotImplementedError."""
    _absent("rpc_async")


def shutdown() -> NoReturn:
    """Raises NotImplementedError."""
    _absent("shutdown")


def get_worker_info(name: str) -> NoReturn:
    """Raises NotImplementedError."""
    _absent("get_worker_info")


def get_all_worker_infos() -> NoReturn:
    """Raises NotImplementedError."""
    _absent("get_all_worker_infos")


def get_current_worker_info() -> NoReturn:
    """Raises NotImplementedError."""
    _absent("get_current_worker_info")
