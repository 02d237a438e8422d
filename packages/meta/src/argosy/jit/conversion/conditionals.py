"""``if`` on traced tensors, recorded as ``control.if``; what loops share with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.jit.conversion.gradient_slots import is_empty, merge_empty, put_gradient, slot_value
from argosy.jit.conversion.values import (
    MaybeUndefined,
    Mismatch,
    Pair,
    UndefinedValue,
    agree,
    as_tensor,
    is_number,
    match,
)
from argosy_phi_ops.capture.regions import RecordedRegion, current_value, insertion_at, put_value, record, settle_draws
from argosy_phi_ops.capture.tracer import TracedPayload, Tracer
from argosy_phi_ops.context import grad_enabled
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.user_line import user_location
from argosy_pir.core import Region
from argosy_pir.values import Value
from argosy_tensorcore.tensor import Tensor

__all__ = ["put_place", "scalar_condition", "staged_if"]


def scalar_condition(tracer: Tracer, x: Tensor, what: str) -> Value:
    """The 0-D bool of the condition ``x`` of ``what``. Raises ValueError for a tensor of several elements."""
    if x.dtype.name != "bool":
        x = get_operator("cast")(x, "bool")
    if x.payload.shape != ():
        if any(n != 1 for n in x.payload.shape):
            raise ValueError(f"the condition of {what} is one element, not a tensor of shape {list(x.shape)}")
        x = get_operator("reshape")(x, [])
    return tracer.value(x)


def _wrap(tracer: Tracer, value: Value, sources: Sequence[Any]) -> Tensor:
    """The tensor of a result that comes from one of ``sources``."""
    tensors = [x for x in sources if type(x) is Tensor]
    differentiable = value.dtype.startswith(("float", "bfloat", "complex"))
    active = any(x.payload.active if x.payload.is_traced else not x.stop_gradient for x in tensors)
    wants = grad_enabled() and any(not x.stop_gradient for x in tensors)
    payload = TracedPayload(value, tracer, user_location(), active and differentiable)
    return Tensor._wrap(payload, not (wants and differentiable))


def staged_if(
    tracer: Tracer,
    test: Tensor,
    branches: Sequence[Callable[[], list[Any]]],
    names: Sequence[str],
    live: Sequence[str] = (),
) -> list[Any]:
    """Record both branches; each returns the values of ``names``. Gives the values after the ``if``. Raises
    MaybeUndefined for a ``live`` one that only one of them sets."""
    condition = scalar_condition(tracer, test, "if")
    a, b = (_side(tracer, branch) for branch in branches)
    sides = a, b
    trees = [agree(x, y, name) for x, y, name in zip(a.result, b.result, names, strict=True)]
    for name, tree, x, y in zip(names, trees, a.result, b.result, strict=True):
        if name in live and type(tree) is UndefinedValue and type(x) is not type(y):
            raise MaybeUndefined(name, "in only one branch of an if", user_location())
    pairs: list[Pair] = []
    for tree in trees:
        match(tree, pairs.append)
    ends: tuple[list[Value], list[Value]] = ([], [])
    for pair, name in zip(pairs, _leaf_names(trees, names), strict=True):
        dtype = _common_dtype(pair)
        shapes = [list(x.payload.shape) for x in (pair.a, pair.b) if type(x) is Tensor]
        if len(shapes) == 2 and shapes[0] != shapes[1]:
            raise Mismatch(
                f"variable {name!r} has shape {shapes[0]} where the condition holds and {shapes[1]} where not"
            )
        for side, mine, other, out in ((a, pair.a, pair.b, ends[0]), (b, pair.b, pair.a, ends[1])):
            with insertion_at(tracer, side.block):
                out.append(tracer.value(_leaf(mine, other, dtype)))
    settle_draws(tracer, sides)
    places, slots = _merge_places(a, b), _merge_slots(tracer, a, b)
    for _, values in (*places, *slots):
        ends[0].append(values[0])
        ends[1].append(values[1])
    regions = [Region([side.finish("control.yield", out)]) for side, out in zip(sides, ends, strict=True)]
    made = tracer.builder.create("control.if", [condition], regions=regions, location=user_location()).results
    rest = iter(made[len(pairs) :])
    for place, _ in places:
        put_place(tracer, place, next(rest), True)
    for tensor, _ in slots:
        put_gradient(tracer, tensor, next(rest))
    results = iter([_wrap(tracer, v, (p.a, p.b)) for v, p in zip(made[: len(pairs)], pairs, strict=True)])
    return [match(tree, lambda _: next(results)) for tree in trees]


def _side(tracer: Tracer, branch: Callable[[], list[Any]]) -> RecordedRegion:
    return record(tracer, (), lambda _: branch())


def _leaf_names(trees: Sequence[Any], names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for tree, name in zip(trees, names, strict=True):
        pairs: list[Pair] = []
        match(tree, pairs.append)
        found += [name] * len(pairs)
    return found


def _common_dtype(pair: Pair) -> Any:
    dtypes = [x.dtype for x in (pair.a, pair.b) if type(x) is Tensor]
    if len(dtypes) == 2 and dtypes[0] is not dtypes[1]:
        raise Mismatch(f"one branch gives {dtypes[0].name} and the other {dtypes[1].name}; cast one")
    if len(dtypes) == 1 and is_number(pair.b if type(pair.a) is Tensor else pair.a):
        number = pair.b if type(pair.a) is Tensor else pair.a
        kinds = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
        own = kinds[{bool: "b", int: "i", float: "f", complex: "c"}[type(number)]]
        if own > kinds[dtypes[0].kind]:
            return as_tensor(number).dtype
    if dtypes:
        return dtypes[0]
    kinds_of = {type(x) for x in (pair.a, pair.b) if x is not None}
    widest = next(kind for kind in (complex, float, int, bool) if kind in kinds_of)
    return as_tensor(widest(0)).dtype


def _leaf(mine: Any, other: Any, dtype: Any) -> Tensor:
    like = other if type(other) is Tensor else None
    number = 0 if mine is None else mine
    if type(number) is not Tensor and like is not None and like.payload.shape != ():
        made: Tensor = get_operator("full")(like.shape, number, dtype)
        return made
    return as_tensor(number, dtype)


Merged = list[tuple[Any, list[Value]]]


def _merge_places(a: RecordedRegion, b: RecordedRegion) -> Merged:
    merged: Merged = []
    for key in {**a.written, **b.written}:
        place = (a.written.get(key) or b.written[key])[0]
        values = [side.written[key][1] if key in side.written else current_value(place) for side in (a, b)]
        merged.append((place, values))
    return merged


def _merge_slots(tracer: Tracer, a: RecordedRegion, b: RecordedRegion) -> Merged:
    """Slots that hold a gradient after a branch; those that are empty either way are set at once."""
    merged: Merged = []
    for key in {**a.slots, **b.slots}:
        tensor = (a.slots.get(key) or b.slots[key])[0]
        held = [side.slots[key][1] if key in side.slots else tensor._grad for side in (a, b)]
        if all(map(is_empty, held)):
            tensor._grad = merge_empty(*held)
            continue
        values = []
        for side, gradient in zip((a, b), held, strict=True):
            with insertion_at(tracer, side.block):
                values.append(slot_value(tracer, tensor, gradient))
        merged.append((tensor, values))
    return merged


def put_place(tracer: Tracer, place: Any, value: Value, active: bool) -> None:
    """Give a place written within a region its value after it."""
    tracer._note(place)
    put_value(place, value, active)
