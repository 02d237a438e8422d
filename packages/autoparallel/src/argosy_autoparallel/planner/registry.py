"""Finding planners by name among the installed distributions; each is loaded when it is first asked for."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from argosy_autoparallel.planner.protocol import Planner

GROUP = "argosy.planners"


def planner_names() -> list[str]:
    """Return the names of the installed planners without loading them."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def get_planner(name: str) -> Planner:
    """Load and make the planner of this name. Raises LookupError if there is none or two claim the name."""
    points = [point for point in entry_points(group=GROUP) if point.name == name]
    if not points:
        raise LookupError(f"no planner is named {name!r}; installed: {', '.join(planner_names()) or 'none'}")
    if len(points) > 1:
        raise LookupError(f"planner name {name!r} is claimed by {' and '.join(_owner(point) for point in points)}")
    planner: Planner = points[0].load()()
    return planner


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.value
