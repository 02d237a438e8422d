"""Scalars that a program returns, a loss for example, reduced together with its other values: gradients."""

from __future__ import annotations

from typing import TypeAlias

from argosy_autoparallel.placement import Placement
from argosy_autoparallel.resharding.emitter import shape_of
from argosy_autoparallel.tensor_layout import Layout
from argosy_pir import Value

__all__ = ["ScalarReductions"]

_Kind: TypeAlias = "tuple[str, Layout, tuple[Placement | None, ...]]"


class ScalarReductions:
    """What has been reduced, whole or in parts, which is the same on all ranks: a scalar of that kind needs no
    collective of its own where it is made before those values are used, as a loss is. One that is to be reduced along
    several mesh dimensions would need one for each but the first."""

    def __init__(self) -> None:
        self._made: set[_Kind] = set()

    def note(self, value: Value, source: Layout, layout: Layout) -> None:
        """A value has been brought from one layout to another."""
        on_one_mesh = source.mesh == layout.mesh
        if source.is_partial and on_one_mesh and all(map(_is_reduced, source.placements, layout.placements)):
            self._made.add(_kind(value, source))

    def layout(self, value: Value, layout: Layout | None) -> Layout | None:
        """That of an output which lies in ``layout`` unless it is reduced."""
        if layout is None or not all(n == 1 for n in shape_of(value)):
            return layout
        one = sum(p.is_partial() for p in layout.placements) == 1
        return layout.without_partials() if one and _kind(value, layout) in self._made else layout


def _is_reduced(source: Placement, placement: Placement) -> bool:
    """Whether terms are reduced, for all ranks or each for a part of them; what is no term stays as it is."""
    return not placement.is_partial() if source.is_partial() else source == placement


def _kind(value: Value, layout: Layout) -> _Kind:
    """What is reduced as one: numbers of a dtype, along the same dimensions of a mesh, by the same operation."""
    partials = tuple(p if p.is_partial() else None for p in layout.placements)
    return value.dtype, Layout.replicate(layout.mesh), partials
