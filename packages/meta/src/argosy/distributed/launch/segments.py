"""Shared memory that MPI takes and gives back only if all goes well: a job that was ended leaves it to the launcher."""

from __future__ import annotations

from pathlib import Path

__all__ = ["Segments"]

_FOLDER = "/dev/shm/"
_PREFIX = _FOLDER + "mpich_shm_"
"""MPICH's segments; Open MPI's launcher removes its own."""


class Segments:
    """The segments of one job, seen in the memory of its ranks (Linux; elsewhere none are found)."""

    def __init__(self) -> None:
        self._found: set[Path] = set()

    def __bool__(self) -> bool:
        return bool(self._found)

    def look(self, process: int) -> None:
        """Remember the segments that a process has mapped; one that has ended has none."""
        try:
            maps = Path(f"/proc/{process}/maps").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        self._found.update(Path(line[line.index(_FOLDER) :]) for line in maps.splitlines() if _PREFIX in line)

    def remove(self) -> None:
        """Give the memory back. All ranks must have ended."""
        for path in self._found:
            path.unlink(missing_ok=True)
