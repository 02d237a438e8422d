"""Names that Paddle has and argosy does not: each is there, and says why it does nothing when it is called."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

__all__ = ["absent_names"]


def absent_names(module: str, shown: str, reasons: Mapping[str, str]) -> Callable[[str], Any]:
    """``__getattr__`` for ``module``: for each name of ``reasons`` a function that raises NotImplementedError with the
    reason, calling the name ``shown.name``. Raises AttributeError for others."""

    def get(name: str) -> Any:
        if name not in reasons:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")

        def absent(*args: Any, **kwargs: Any) -> NoReturn:
            raise NotImplementedError(f"{shown}.{name} is not implemented: {reasons[name]}")

        absent.__name__ = absent.__qualname__ = name
        absent.__module__ = module
        absent.__doc__ = f"Raises NotImplementedError: {reasons[name]}."
        return absent

    return get
