"""Finding communicators of processes: built-in ones from a table, others by entry points, each loaded at first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from argosy_hwadapt.communicator import Communicator
from argosy_hwadapt.errors import CommunicatorError

GROUP = "argosy.communicators"
#: Name -> "module:function". The function takes ``check`` and returns the communicator of all launched processes.
BUILT_IN = {
    "mpi": "argosy_hwadapt.mpi:world",
    "solo": "argosy_hwadapt.solo:world",
}


def open_world(name: str, check: bool = True) -> Communicator:
    """Return the communicator ``name`` of all processes of this job, which must all call this.

    With ``check`` ranks compare their calls where the implementation can. Raises CommunicatorError when nothing has
    this name, two distributions do, or it does not load.
    """
    owner, load = _locate(name)
    try:
        made: Communicator = load()(check=check)
    except CommunicatorError:
        raise
    except Exception as cause:
        raise CommunicatorError(
            f"communicator {name!r} ({owner}) does not open: {type(cause).__name__}: {cause}"
        ) from cause
    return made


def communicator_names() -> list[str]:
    """List the names of all installed communicators of processes, without loading any."""
    return sorted({*BUILT_IN, *_entry_points()})


def _locate(name: str) -> tuple[str, Any]:
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return "argosy-hwadapt", lambda: getattr(import_module(module), attribute)
    points = _entry_points().get(name, [])
    if not points:
        raise CommunicatorError(f"no communicator is named {name!r}; installed: {', '.join(communicator_names())}")
    owners = [point.dist.name if point.dist else "unknown distribution" for point in points]
    if len(points) > 1:
        raise CommunicatorError(f"communicator name {name!r} is claimed by {' and '.join(owners)}; uninstall one")
    return owners[0], points[0].load


def _entry_points() -> dict[str, list[Any]]:
    """Scan the installed distributions, at the first call for a name that is not built in."""
    from importlib.metadata import entry_points  # 20 ms, and never needed for the built-in ones

    found: dict[str, list[Any]] = {}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, []).append(point)
    return found
