"""Communicators of processes by name, each loaded at its first use."""

from __future__ import annotations

from argosy_hwadapt.communicator import Communicator
from argosy_hwadapt.errors import CommunicatorError
from argosy_hwadapt.plugins import PlugIns

#: Functions that take ``check`` and return the communicator of all launched processes.
_PLUG_INS = PlugIns(
    "argosy.communicators",
    "communicator",
    CommunicatorError,
    {"mpi": "argosy_hwadapt.mpi:world", "solo": "argosy_hwadapt.solo:world"},
)


def open_world(name: str, check: bool = True) -> Communicator:
    """Return the communicator ``name`` of all processes of this job, which must all call this.

    With ``check`` ranks compare their calls where the implementation can. Raises CommunicatorError when nothing has
    this name, two distributions do, or it does not load.
    """
    owner, load = _PLUG_INS.locate(name)
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
    return _PLUG_INS.names()
