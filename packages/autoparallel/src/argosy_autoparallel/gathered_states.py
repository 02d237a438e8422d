"""Gathered states: whole versions of states that are split over ranks, as parameters are in ZeRO's third stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from argosy_autoparallel.placement import Shard
from argosy_autoparallel.tensor_layout import Layout
from argosy_autoparallel.value_layouts import ValueLayouts, bytes_of
from argosy_pir import Operation, Value

__all__ = ["GatheredStates"]

_SAME_SIZE = frozenset({"cast", "reshape", "stop_gradient", "transpose"})


class GatheredStates:
    """A cache of the least recently used kind: a version of a state, or of one in another dtype or shape, is forgotten
    when more bytes of others were gathered since its last use than it has itself. Who needs it then gathers it again.

    Forward passes and backward passes so keep few parameters at a time (Rajbhandari et al., 2020, section 7.2.2), and
    the last layer's, which the backward pass begins with, are kept.
    """

    def __init__(self, held: Mapping[Value, ValueLayouts], states: Iterable[Value]) -> None:
        self._held = held
        self._states = set(states)
        self._used: dict[tuple[Value, Layout], float] = {}  # how much was gathered by the last use
        self._gathered = 0.0

    @property
    def are_tracked(self) -> bool:
        """Whether there are states whose versions may be forgotten."""
        return bool(self._states)

    def follow(self, op: Operation) -> None:
        """What ``op`` makes of a state that is split, and what has its size, is as good as one."""
        if op.dialect == "prim" and op.kind in _SAME_SIZE and op.operand(0) in self._states:
            self._states.update(op.results)

    def use(self, value: Value, layout: Layout | None) -> None:
        """A version is read."""
        if layout is not None and (value, layout) in self._used:
            self._used[value, layout] = self._gathered

    def gather(self, value: Value, source: Layout, layout: Layout) -> None:
        """A version has been made of another one."""
        if value not in self._states or not _is_gathered(source, layout):
            return
        self._gathered += bytes_of(value) / layout.parts()
        self._used[value, layout] = self._gathered
        for (other, version), since in list(self._used.items()):
            if self._gathered - since > bytes_of(other) / version.parts():
                self._held[other].forget(version)
                del self._used[other, version]


def _is_gathered(source: Layout, layout: Layout) -> bool:
    pairs = zip(source.placements, layout.placements, strict=True)
    return source.mesh == layout.mesh and any(isinstance(a, Shard) and b.is_replicated() for a, b in pairs)
