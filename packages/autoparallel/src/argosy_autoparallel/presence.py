"""Whether a rank has distributed tensors now: only then does dispatch look for the layer that runs operators on them.

Every distributed payload of a rank holds the rank's one :class:`Presence`, and the rank's context refers to it weakly:
the number of references is the number of tensors, counted by nobody. With the last tensor the presence goes, and
dispatch is what it was before the first.
"""

from __future__ import annotations

import weakref
from typing import Any

from argosy_phi_ops.context import AMBIENT, context

__all__ = ["Presence", "leave", "presence", "serve"]

_KEY = "argosy.spmd.presence"
_serving: list[Any] = []


class Presence:
    """While one exists the process departs from plain eager execution."""

    __slots__ = ("__weakref__",)
    _ambient = AMBIENT  # also there when modules are torn down

    def __init__(self) -> None:
        self._ambient.word += 1

    def __del__(self) -> None:
        self._ambient.word -= 1


def serve(layer: Any) -> None:
    """Let ``layer`` be the one for operators on distributed tensors (the interpreter's, when it is loaded)."""
    _serving[:] = [layer]


def presence() -> Presence:
    """The presence of the calling rank, made with its first distributed tensor; keep it as long as the tensor."""
    ambient = context()
    reference = ambient.values.get(_KEY)
    found: Presence | None = None if reference is None else reference()
    if found is None:
        found = Presence()
        ambient.values[_KEY] = weakref.ref(found)
    layers = ambient.layers
    if not layers or layers[0] is not _serving[0]:
        layers[:] = [*_serving, *[each for each in layers if each not in _serving]]  # at the bottom
    return found


def leave() -> None:
    """Take the layer out of the calling rank's stack, where it costs little, when no distributed tensor is left."""
    ambient = context()
    reference = ambient.values.get(_KEY)
    if reference is None or reference() is None:
        ambient.values.pop(_KEY, None)
        ambient.layers[:] = [each for each in ambient.layers if each not in _serving]
