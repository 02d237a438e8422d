"""The line of the user's code that an operation comes from, for errors, warnings and programs."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from argosy_pir.location import Location

__all__ = ["user_frame", "user_location", "warn_user"]

_OURS = frozenset(
    {
        "argosy", "argosy_autograd", "argosy_autoparallel", "argosy_cinn", "argosy_hwadapt", "argosy_infer",
        "argosy_phi_ops", "argosy_pir", "argosy_tensorcore",
        "contextlib", "importlib", "_frozen_importlib", "_frozen_importlib_external",
    }
)  # fmt: skip


_is_ours: dict[str, bool] = {}  # by module, as they are met


def user_location() -> Location:
    """The source line nearest to the top of the Python stack that is not the framework's own."""
    found = user_frame(sys._getframe(1))
    code = found.f_code
    return Location(code.co_filename, found.f_lineno, 0, code.co_name)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about `user_location`, however deep in the framework this is found out. What depends on which line it is
    (filters by module, showing a line's warning once) sees the user's."""
    frame = user_frame(sys._getframe(1))
    names = frame.f_globals
    warnings.warn_explicit(
        message, category, frame.f_code.co_filename, frame.f_lineno, names.get("__name__", "<string>"),
        names.setdefault("__warningregistry__", {}),
    )  # fmt: skip


def user_frame(start: FrameType) -> FrameType:
    """The first frame from ``start`` outwards that is not the framework's own; ``start`` where all are."""
    frame: FrameType | None = start
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        ours = _is_ours.get(name)
        if ours is None:
            ours = _is_ours[name] = name.partition(".")[0] in _OURS
        if not ours:
            return frame
        frame = frame.f_back
    return start
