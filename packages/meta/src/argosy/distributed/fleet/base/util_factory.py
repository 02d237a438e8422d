"""``UtilBase``: sums over ranks, shares of files and messages for scripts of fleet."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.distributed.collective import barrier
from argosy.distributed.environment import get_rank, get_world_size
from argosy.distributed.group import world_group
from argosy.distributed.objects import all_gather_object

__all__ = ["UtilBase", "util"]


class UtilBase:
    """What ``fleet.util`` offers. All ranks are workers: ``comm_world`` is "worker" or "all"."""

    def all_reduce(self, input: Any, mode: str = "sum", comm_world: str = "worker") -> Any:
        """The sum, ``"min"`` or ``"max"`` of the ranks' arrays, as a numpy array. Raises ValueError for another one."""
        _check_world(comm_world)
        if mode not in ("sum", "min", "max"):
            raise ValueError(f"fleet.util.all_reduce: mode is 'sum', 'min' or 'max', not {mode!r}")
        given = np.ascontiguousarray(input)
        made = np.empty_like(given)
        world_group().communicator.all_reduce(given, made, mode)
        return made.reshape(np.shape(input))

    def all_gather(self, input: Any, comm_world: str = "worker") -> list[Any]:
        """What each rank gives, in order."""
        _check_world(comm_world)
        found: list[Any] = []
        all_gather_object(found, input)
        return found

    def barrier(self, comm_world: str = "worker") -> None:
        """Wait until all ranks are here."""
        _check_world(comm_world)
        barrier()

    def get_file_shard(self, files: list[str]) -> list[str]:
        """This rank's share of ``files``: the first ranks have one more where they do not divide. Raises TypeError for
        what is no list."""
        if not isinstance(files, list):
            raise TypeError(f"fleet.util.get_file_shard: files is a list, not {type(files).__name__}")
        ranks, place = get_world_size(), get_rank()
        each, more = divmod(len(files), ranks)
        start = place * each + min(place, more)
        return files[start : start + each + (place < more)]

    def get_heter_file_shard(self, files: list[str]) -> list[str]:
        """As :meth:`get_file_shard`: all ranks are workers."""
        return self.get_file_shard(files)

    def print_on_rank(self, message: str, rank_id: int) -> None:
        """Print on one rank."""
        if get_rank() == rank_id:
            print(message)  # noqa: T201


util = UtilBase()


def _check_world(name: str) -> None:
    if name == "server":
        raise NotImplementedError("fleet.util: parameter servers are not implemented; all ranks are workers")
    if name not in ("worker", "all"):
        raise ValueError(f"fleet.util: comm_world is 'worker' or 'all', not {name!r}")
