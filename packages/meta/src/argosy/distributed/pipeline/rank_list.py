"""A rank's list, walked over the communicator of all ranks, by a rank that says where it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy.settings import POSITION
from argosy_autoparallel.groups import world
from argosy_autoparallel.schedule import InstructionList, Position, Ref, run
from argosy_autoparallel.schedule.runner import Held
from argosy_phi_ops.context import RankState, context

__all__ = ["run_list"]


def _open_position() -> Position | None:
    path = POSITION.read()
    return Position(path, context().rank) if path else None


_position: RankState[Position | None] = RankState("argosy.position", _open_position)


def run_list(
    one: InstructionList, pieces: Mapping[tuple[str, int | None], Callable[..., Any]], values: Mapping[Ref, Held]
) -> dict[Ref, Held]:
    """Walk this rank's list with these pieces; returns the values that are left. Raises
    :class:`~argosy_autoparallel.schedule.InstructionError` for a piece that raises."""
    communicator = world()
    assert communicator is not None
    return run(one, pieces, values, {(): communicator}, position=_position.value)
