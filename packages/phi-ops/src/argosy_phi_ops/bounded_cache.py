"""Tables of what was worked out once, of a bounded size: sizes that never come again must not fill the memory."""

from __future__ import annotations

from typing import Any

__all__ = ["BoundedCache"]


class BoundedCache(dict[Any, Any]):
    """A table of at most ``limit`` entries; the oldest one makes room."""

    __slots__ = ("limit",)

    def __init__(self, limit: int = 1024) -> None:
        self.limit = limit

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= self.limit and key not in self:
            try:
                self.pop(next(iter(self)), None)
            except (RuntimeError, StopIteration):  # another thread makes room, too
                self.clear()
        super().__setitem__(key, value)
