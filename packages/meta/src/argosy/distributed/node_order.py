"""Ranks in the order of their machines, so that the last dimension of a mesh of them lies within one.

Launchers may deal ranks out in turns. What is made of all ranks is made of this order then: the dimensions that
communicate most come last, and stay inside of a machine where they fit into it.
"""

from __future__ import annotations

import os

from argosy.distributed.environment import environment, get_world_size
from argosy.distributed.objects import all_gather_object
from argosy.settings import ENDPOINTS, NODE_NAMES

__all__ = ["machine_names", "ranks_by_node"]


def ranks_by_node() -> list[int]:
    """All ranks, those of one machine beside each other, machines by their first rank. All ranks call it."""
    names = machine_names()
    return sorted(range(len(names)), key=lambda rank: (names.index(names[rank]), rank))


def machine_names() -> list[str]:
    """The machine of each rank: as the launcher named it, else as the process manager or the system does. All ranks
    call it."""
    joined = environment()
    if not joined.machines:
        named = [name.rpartition(":")[0] for name in ENDPOINTS.read().split(",")]
        if len(named) == get_world_size():
            joined.machines += named
        else:
            all_gather_object(joined.machines, _own_machine())
    return joined.machines


def _own_machine() -> str:
    return next((name for setting in NODE_NAMES if (name := setting.read())), "") or os.uname().nodename
