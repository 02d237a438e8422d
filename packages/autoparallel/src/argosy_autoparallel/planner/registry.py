"""Planners by name among the installed distributions; each is loaded when it is first asked for."""

from __future__ import annotations

from argosy_autoparallel.planner.protocol import Planner
from argosy_hwadapt.plugins import PlugIns

_PLUG_INS = PlugIns("argosy.planners", "planner", LookupError)


def planner_names() -> list[str]:
    """Return the names of the installed planners without loading them."""
    return _PLUG_INS.names()


def get_planner(name: str) -> Planner:
    """Load and make the planner of this name. Raises LookupError if there is none or two claim the name."""
    _, load = _PLUG_INS.locate(name)
    planner: Planner = load()()
    return planner
