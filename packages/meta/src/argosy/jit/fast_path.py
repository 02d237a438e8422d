"""The way of a call that is like an earlier one: a few comparisons by identity, then the compiled program.

A route serves calls whose arguments are tensors of the types of the capture, in positions, and plain values. Whatever
it does not recognise at once it leaves to the long way, which compares by value and finds or makes another capture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.jit.compiled import CompiledCall
from argosy.jit.places import ABSENT
from argosy.nn.hooks import CHANGES
from argosy_phi_ops.context import AMBIENT, context, own_default_dtype
from argosy_tensorcore.dtype import default_listeners
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["MISS", "Route", "is_plain_eager", "is_plain_no_grad", "route"]

#: Takes the positional arguments of a call; returns its result, or `MISS` with nothing done.
Route = Callable[[tuple[Any, ...]], Any]
MISS: Any = object()

_PLAIN = frozenset({int, float, bool, str, bytes, type(None)})
_wrap = Tensor._wrap
default_listeners.append(CHANGES.note)
Expected = tuple[Any, Any]  # the type of a tensor's array and its stop_gradient; a plain value and None


def route(compiled: CompiledCall, args: tuple[Any, ...]) -> Route | None:
    """The route of calls like this one, or None where the long way is needed: gradients come and go, arguments are
    written or nested, floats became inputs, or the program is none that takes arrays."""
    on_arrays = getattr(compiled.run, "on_arrays", None)
    if on_arrays is None or type(compiled) is not CompiledCall or not compiled.is_plain or compiled.carried:
        return None
    expected = [_expected_value(x) for x in args]
    return None if None in expected else _route(compiled, tuple(expected), on_arrays)  # type: ignore[arg-type]


def is_plain_eager() -> bool:
    """Whether nothing departs from plain eager execution for ordinary tensors: there may be distributed ones, whose
    layer leaves others alone."""
    word = AMBIENT.word
    return not word or (word == AMBIENT.quiet and not AMBIENT.silent)


def is_plain_no_grad() -> bool:
    """The same, but that gradients are not recorded here."""
    ambient = context()
    if ambient.grad_enabled or ambient.rank or own_default_dtype() is not None:
        return False
    return all([layer.stays for layer in ambient.layers])


def _expected_value(x: Any) -> Expected | None:
    if type(x) is Tensor and type(x.payload) is StridedArray:
        return x.payload.array_type, x.stop_gradient
    return (x, None) if type(x) in _PLAIN else None


def _route(compiled: CompiledCall, expected: tuple[Expected, ...], on_arrays: Any) -> Route:  # noqa: C901
    """One closure, with its loops written out: this is what a call costs beside the program."""
    guards, bound, tree, slots = compiled.guards, compiled.bound, compiled.tree, compiled.slots
    count, entries, cells, sequences = len(expected), [*guards.held, *guards.plain], guards.cells, guards.sequences
    look_at_contents = bool(guards.kinds or guards.contents)
    look_at_slots = bool(slots.held or slots.empty)
    bare = tree.bare

    def call(args: tuple[Any, ...]) -> Any:  # noqa: C901
        if len(args) != count:
            return MISS
        arrays = []
        for x, (kind, stop) in zip(args, expected):  # noqa: B905  (their number is the same)
            if type(x) is Tensor:
                payload = x.payload
                if type(payload) is not StridedArray or payload.array_type is not kind or x.stop_gradient is not stop:
                    return MISS
                arrays.append(payload.ndarray)
            elif x is not kind:
                return MISS
        for place, name, value in entries:
            if place.get(name, ABSENT) is not value:
                return MISS
        for cell, value in cells:
            if cell.cell_contents is not value:
                return MISS
        for tensor, state in bound:
            if tensor.payload is not state:
                return MISS
        for sequence, items in sequences:
            if len(sequence) != len(items):
                return MISS
            for now, value in zip(sequence, items):  # noqa: B905  (their number is the same)
                if now is not value:
                    return MISS
        if (
            guards.seen != CHANGES.count
            or (look_at_slots and not slots.hold())
            or (look_at_contents and not guards.contents_hold())
        ):
            return MISS
        made = on_arrays(arrays)
        if made is None:
            return MISS
        if bare:
            return _wrap(StridedArray(made[0]))
        return tree.fill([_wrap(StridedArray(array)) for array in made])

    return call
