"""Whether a rank has distributed tensors now: only then does dispatch look for the layer that runs operators on them.

Every distributed payload of a rank holds the rank's one :class:`Presence`, and the rank's context refers to it weakly:
the number of references is the number of tensors, counted by nobody. With the last tensor the presence goes and takes
the layer out of the rank's stack, and dispatch is what it was before the first.
"""

from __future__ import annotations

import weakref
from typing import Any

from argosy_phi_ops.context import AMBIENT, Context, context

__all__ = ["Presence", "presence", "serve"]

_KEY = "argosy.spmd.presence"
_serving: list[Any] = []


class Presence:
    """While one exists the process departs from plain eager execution, and the layer is at the bottom of a stack."""

    __slots__ = ("__weakref__", "_context", "_layer")
    _ambient = AMBIENT  # also there when modules are torn down

    def __init__(self, ambient: Context, layer: Any) -> None:
        self._context, self._layer = ambient, layer
        self._ambient.word += 1
        self._ambient.quiet += 1
        ambient.put_everywhere(layer)

    def __del__(self) -> None:
        self._ambient.word -= 1
        self._ambient.quiet -= 1
        self._context.take_everywhere(self._layer)


def serve(layer: Any) -> None:
    """Let ``layer`` be the one for operators on distributed tensors (when what makes them is loaded)."""
    _serving[:] = [layer]


def presence() -> Presence:
    """The presence of the calling rank, made with its first distributed tensor; keep it as long as the tensor."""
    ambient = context()
    reference = ambient.values.get(_KEY)
    found: Presence | None = None if reference is None else reference()
    if found is None:
        found = Presence(ambient, _serving[0])
        ambient.values[_KEY] = weakref.ref(found)
    return found
