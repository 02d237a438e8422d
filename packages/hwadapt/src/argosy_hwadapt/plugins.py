"""Plug-ins by name: built-in ones from a table, others by entry points, each loaded at first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


class PlugIns:
    """The plug-ins of the entry-point group ``group``. ``kind`` is what errors call one, ``error`` the errors' class,
    ``built_in`` maps names of this package to "module:attribute"; these need no scan of installed distributions.
    """

    def __init__(
        self, group: str, kind: str, error: type[Exception], built_in: Mapping[str, str] | None = None
    ) -> None:
        self.group, self.kind, self.error, self.built_in = group, kind, error, built_in or {}

    def names(self) -> list[str]:
        """The names of all installed ones, loaded or not, without loading any."""
        return sorted({*self.built_in, *_entry_points(self.group)})

    def locate(self, name: str) -> tuple[str, Callable[[], Any]]:
        """The distribution that owns a name, and a function that loads what it names. Raises ``error`` when nothing
        has this name or two distributions do."""
        if name in self.built_in:
            module, _, attribute = self.built_in[name].partition(":")
            return "argosy-hwadapt", lambda: getattr(import_module(module), attribute)
        points = _entry_points(self.group).get(name, [])
        if not points:
            raise self.error(f"no {self.kind} is named {name!r}; installed: {', '.join(self.names()) or 'none'}")
        owners = [point.dist.name if point.dist else "unknown distribution" for point in points]
        if len(points) > 1:
            raise self.error(f"{self.kind} name {name!r} is claimed by {' and '.join(owners)}; uninstall one of them")
        return owners[0], points[0].load


def _entry_points(group: str) -> dict[str, list[Any]]:
    """The entry points of a group by name, found by a scan of the installed distributions."""
    from importlib.metadata import entry_points  # 20 ms, and never needed for what is built in

    found: dict[str, list[Any]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, []).append(point)
    return found
