"""Tensors that a captured function puts in the place of others: ``self.hidden = ...``, a weight that a hook computes.

One that nobody differentiates, in the place of a tensor of its type, is a new value of a state (a running mean). Every
other one is a result of the program: after each call it stands in its place with its history, as after an eager call.
Where the function also reads what it replaces, the place is *carried*: its tensor is an input, too, with its gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from argosy.jit.guards import Guards
from argosy.jit.places import Place
from argosy.jit.structure import leaves
from argosy_autograd.modes import no_grad
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["Assignments", "NeedsCarried"]


class NeedsCarried(Exception):
    """The capture has to be made anew, with these ``places`` as inputs."""

    def __init__(self, places: list[Place]) -> None:
        super().__init__(", ".join(map(str, places)))
        self.places = places


class _Assignment:
    """A ``place`` that held ``before`` when the capture began, and holds the tensor ``now`` at its end."""

    __slots__ = ("before", "now", "place")

    def __init__(self, place: Place, before: Any, now: Tensor) -> None:
        self.place, self.before, self.now = place, before, now

    def is_one(self) -> bool:
        """Whether there is another tensor in the place: a traced one, or any in the place of a tensor."""
        now = self.now
        return type(now) is Tensor and now is not self.before and (now.payload.is_traced or type(self.before) is Tensor)

    def is_state(self, trained: bool) -> bool:
        """Whether ``now`` is a new value of ``before``; ``trained`` tells that gradients were taken already."""
        old, new = self.before, self.now
        return (
            type(old) is Tensor
            and old._node is None
            and (new.stop_gradient or trained)
            and new.payload.is_traced
            and list(old.shape) == list(new.shape)
            and old.dtype is new.dtype
        )


class Assignments:
    """What one capture does to places. ``carried`` are those that are inputs, ``values`` their tensors now."""

    def __init__(self, guards: Guards, carried: Sequence[Place]) -> None:
        self.guards = guards
        self.carried = [place for place in carried if _is_concrete(place.get())]
        self.values: list[Tensor] = [place.get() for place in self.carried]
        self.results: list[tuple[Place, Tensor]] = []
        self._inputs: list[Tensor] = []
        for place in self.carried:
            guards.watch_kind(place)

    def begin(self, inputs: Sequence[Tensor]) -> None:
        """Let the traced ``inputs`` stand in the carried places."""
        self._inputs = list(inputs)
        for place, traced in zip(self.carried, inputs, strict=True):
            place.put(traced)

    def new_tensors(self) -> list[Tensor]:
        """The tensors that stand in the places of others now."""
        return [each.now for each in self._find()]

    def missing_inputs(self, tracer: Tracer, result: Any) -> list[Place]:
        """Places that had better be inputs: the function, or its ``result``, reads what it replaces."""
        found, trained = self._find(), tracer.has_trained()
        outputs = [each for each in found if each.place not in self.carried and not each.is_state(trained)]
        seen = {id(x) for x in (*leaves(result, Tensor), *(each.now for each in found))}
        return [
            each.place
            for each in outputs
            if type(each.before) is Tensor and (id(each.before) in seen or tracer.has_read(each.before))
        ]

    def take_back(self, tracer: Tracer) -> None:
        """Within a capture, at its end: write states, and put back what stood in the places before it."""
        trained = tracer.has_trained()
        for each in self._find():
            each.place.put(each.before)
            if each.place not in self.carried and each.is_state(trained):
                with no_grad():
                    write(each.before, each.now.detach())
                continue
            self.results.append((each.place, each.now))
            if type(each.before) is not Tensor:
                self.guards.watch_before(each.place, each.before)
            elif each.place not in self.carried:
                self.guards.watch_kind(each.place)
        self.restore()

    def restore(self) -> None:
        """Put the concrete tensors back where traced ones stand."""
        for each in self._find():
            if each.now.payload.is_traced:
                each.place.put(each.before)
        for place, value, traced in zip(self.carried, self.values, self._inputs, strict=False):
            if place.get() is traced:
                place.put(value)

    def _find(self) -> list[_Assignment]:
        watched = [(self.guards.place(*item[:2]), item[2]) for item in (*self.guards.held, *self.guards.plain)]
        watched += [(Place(cell), value) for cell, value in self.guards.cells]
        inputs = zip(self.carried, self.values, self._inputs, strict=False)
        replaced = [(place, value) for place, value, traced in inputs if place.get() is not traced]
        made = dict([*watched, *self.guards.added_places(), *replaced])
        for place in set(self.carried) - {place for place, _ in replaced}:
            made.pop(place, None)
        found = [_Assignment(place, before, place.get()) for place, before in made.items() if _can_hold(place)]
        return [each for each in found if each.is_one()]


def _is_concrete(x: Any) -> bool:
    return type(x) is Tensor and not x.payload.is_traced


def _can_hold(place: Place) -> bool:
    return type(place.holder) is not MappingProxyType
