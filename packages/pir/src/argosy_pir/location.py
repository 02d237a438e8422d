"""Where in the user's source an operation comes from."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Location:
    """A place in a source file. ``line`` and ``column`` count from 1; 0 means not known. Immutable by
    convention."""

    __slots__ = ("column", "file", "function", "line")

    def __init__(self, file: str, line: int, column: int = 0, function: str = "") -> None:
        self.file = file
        self.line = line if line > 0 else 0
        self.column = column if column > 0 else 0
        self.function = function

    @staticmethod
    def fuse(locations: Iterable[Location]) -> Location:
        """The location of an operation made from several: the distinct known ones, flattened."""
        parts: dict[Location, None] = {}
        for location in locations:
            inner = location.locations if isinstance(location, FusedLocation) else (location,)
            parts.update((part, None) for part in inner if not part.is_unknown)
        if len(parts) <= 1:
            return next(iter(parts), UNKNOWN)
        return FusedLocation(tuple(parts))

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known about the place."""
        return not self.file and not self.line and not self.function

    @property
    def suffix(self) -> str:
        """Text for the end of a message: `` at file:line``, or nothing where the place is unknown."""
        return "" if self.is_unknown else f" at {self}"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Location) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.file, self.line, self.column, self.function)

    def __str__(self) -> str:
        if self.is_unknown:
            return "unknown"
        place = f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")
        return f"{place} in {self.function}" if self.function else place

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"


class FusedLocation(Location):
    """Several places at once, as :meth:`Location.fuse` makes it; ``file`` and ``line`` are those of the
    first."""

    __slots__ = ("locations",)

    def __init__(self, locations: tuple[Location, ...]) -> None:
        first = locations[0]
        super().__init__(first.file, first.line, first.column, first.function)
        self.locations = locations

    def _key(self) -> tuple[object, ...]:
        return tuple(location._key() for location in self.locations)

    def __str__(self) -> str:
        return "fused[" + ", ".join(map(str, self.locations)) + "]"


UNKNOWN = Location("", 0)
