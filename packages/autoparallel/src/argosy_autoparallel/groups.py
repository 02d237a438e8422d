"""The communicators of a rank: the world, and one for each line of ranks along a mesh dimension.

They are kept in the rank's context, so that several ranks can live in one process. Groups are made when a mesh is first
used, by all ranks of the world together: a script that all of them run uses the same meshes in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_autoparallel.counting import CountedCommunicator
from argosy_autoparallel.mesh import ProcessMesh
from argosy_hwadapt import Communicator
from argosy_phi_ops.context import context

__all__ = ["communicators", "ensure_groups", "rank", "set_world", "split_world", "world"]

_WORLD, _TABLE, _MADE = "argosy.world", "argosy.groups", "argosy.groups.made"


def set_world(communicator: Communicator) -> Communicator:
    """Make ``communicator`` the one of all ranks, and its rank that of the context; returns it as :func:`world` will,
    with its communication counted."""
    ambient = context()
    ambient.rank, ambient.size = communicator.rank, communicator.size
    counted = CountedCommunicator(communicator)
    ambient.values[_WORLD] = counted
    ambient.values[_TABLE] = {(): counted, tuple(range(communicator.size)): counted}
    ambient.values[_MADE] = set()
    return counted


def world() -> Communicator | None:
    """The communicator of all ranks; None in a process of its own."""
    found: Communicator | None = context().values.get(_WORLD)
    return found


def rank() -> int:
    """The number of this rank in the world."""
    return context().rank


def communicators() -> dict[tuple[int, ...], Any]:
    """From a group of global ranks to its communicator, for the groups of this rank; ``()`` is the world."""
    found: dict[tuple[int, ...], Any] = context().values.get(_TABLE, {})
    return found


def ensure_groups(mesh: ProcessMesh) -> None:
    """Make the groups along the dimensions of ``mesh``; every rank of the world calls, members or not, with the same
    mesh or with one of the same shape and ranks of its own.

    Raises ``ValueError`` for a mesh with ranks that were not launched.
    """
    ambient = context()
    made: set[Any] = ambient.values.setdefault(_MADE, set())
    if mesh in made:
        return
    largest = max(mesh.process_ids)
    if largest >= ambient.size:
        raise ValueError(
            f"{mesh!r} names rank {largest}, but {ambient.size} ranks were launched (0 to {ambient.size - 1})"
        )
    made.add(mesh)
    for dim, size in enumerate(mesh.shape):
        if size > 1:
            _split(mesh, dim)


def _split(mesh: ProcessMesh, dim: int) -> None:
    ambient = context()
    lines = [tuple(line) for line in np.moveaxis(mesh.mesh, dim, -1).reshape(-1, mesh.shape[dim]).tolist()]
    key = tuple(lines)
    made = ambient.values[_MADE]
    if key in made or (len(lines) == 1 and lines[0] == tuple(range(ambient.size))):
        return
    made.add(key)
    mine = next((line for line in lines if ambient.rank in line), ())
    group = split_world(mine)
    if group is not None:
        communicators()[mine] = group


def split_world(mine: tuple[int, ...]) -> Communicator | None:
    """Make groups of the world: ``mine`` are the ranks of this rank's group, in order; none where it joins none: None.

    Every rank of the world calls. What the group communicates is counted as what the world does.
    """
    ambient = context()
    color, place = (mine[0], mine.index(ambient.rank)) if mine else (-1, 0)
    group = ambient.values[_WORLD].split(color, place)  # the first rank: others may make those of another mesh
    return None if group is None else CountedCommunicator(group, mine)
