"""Role makers: how older scripts say that all ranks are workers. Who is who is known from the launcher."""

from __future__ import annotations

from typing import Any

from argosy.distributed.environment import get_rank, get_world_size

__all__ = ["PaddleCloudRoleMaker", "Role", "UserDefinedRoleMaker"]


class Role:
    """What a process does: all are workers here."""

    WORKER = 1
    SERVER = 2
    HETER_WORKER = 3
    ALL = 4
    COORDINATOR = 5


class PaddleCloudRoleMaker:
    """Every rank is a worker. ``kwargs`` are accepted for compatibility. Raises NotImplementedError for parameter
    servers, ``is_collective=False``."""

    def __init__(self, is_collective: bool = False, **kwargs: Any) -> None:
        if not is_collective:
            raise NotImplementedError(
                f"{type(self).__name__}(is_collective=False): parameter servers are not implemented; all ranks are "
                "workers with is_collective=True"
            )
        self._is_collective = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rank {self._worker_index()} of {self._worker_num()})"

    def _worker_index(self) -> int:
        return get_rank()

    def _worker_num(self) -> int:
        return get_world_size()

    def _is_worker(self) -> bool:
        return True

    def _is_first_worker(self) -> bool:
        return get_rank() == 0

    def _role(self) -> int:
        return Role.WORKER


class UserDefinedRoleMaker(PaddleCloudRoleMaker):
    """As :class:`PaddleCloudRoleMaker`. Raises ValueError for a ``current_id`` or ``worker_num`` that is not the
    launcher's. ``init_gloo`` is accepted for compatibility."""

    def __init__(self, is_collective: bool = False, init_gloo: bool = False, **kwargs: Any) -> None:
        super().__init__(is_collective)
        known = {"current_id": get_rank(), "worker_num": get_world_size()}
        for name, value in known.items():
            if kwargs.get(name, value) != value:
                raise ValueError(
                    f"UserDefinedRoleMaker: {name} is {value} as this job was launched, not {kwargs[name]}"
                )
