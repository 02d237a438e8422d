"""The line of the user's code that an operation comes from, for errors and programs."""

from __future__ import annotations

import sys

from argosy_pir.location import Location

__all__ = ["user_location"]

_OURS = frozenset(
    {
        "argosy", "argosy_autograd", "argosy_autoparallel", "argosy_cinn", "argosy_hwadapt", "argosy_infer",
        "argosy_phi_ops", "argosy_pir", "argosy_tensorcore", "contextlib",
    }
)  # fmt: skip


_is_ours: dict[str, bool] = {}  # by module, as they are met


def user_location() -> Location:
    """The source line nearest to the top of the Python stack that is not the framework's own."""
    frame = sys._getframe(1)
    found = frame
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        ours = _is_ours.get(name)
        if ours is None:
            ours = _is_ours[name] = name.partition(".")[0] in _OURS
        if not ours:
            found = frame
            break
        frame = frame.f_back  # type: ignore[assignment]
    code = found.f_code
    return Location(code.co_filename, found.f_lineno, 0, code.co_name)
