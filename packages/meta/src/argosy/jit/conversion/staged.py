"""``if`` and ``while`` on traced tensors, recorded as ``control.if`` and ``control.while``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.jit.conversion.values import NOT_RETURNED, Mismatch, Pair, Undefined, agree, as_tensor, is_number, match
from argosy_phi_ops.capture import Traced, Tracer, user_location
from argosy_phi_ops.capture_regions import Recorded, current_value, emitting, put_value, record
from argosy_phi_ops.context import grad_enabled
from argosy_phi_ops.errors import GraphBreak
from argosy_phi_ops.operator import get_operator
from argosy_pir.core import Region
from argosy_pir.values import Value
from argosy_tensorcore.tensor import Tensor

__all__ = ["staged_if", "staged_while"]

_ROUNDS = 8  # how often a loop's body is traced until the types of what it carries settle


def _condition(tracer: Tracer, x: Tensor, what: str) -> Value:
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
    payload = Traced(value, tracer, user_location(), active and differentiable)
    return Tensor._wrap(payload, not (wants and differentiable))


def _like_number(number: Any, like: Tensor) -> Tensor:
    """A number as what it is beside a tensor: of the tensor's dtype where that can hold it."""
    made = as_tensor(number)
    order = "biufc"
    fits = order.index(made.dtype.kind) <= max(order.index(like.dtype.kind), 2 if like.dtype.kind == "i" else 0)
    return as_tensor(made, like.dtype) if (fits and made.dtype.kind != "f") or like.dtype.kind in "fc" else made


# if


def staged_if(
    tracer: Tracer,
    test: Tensor,
    branches: Sequence[Callable[[], list[Any]]],
    names: Sequence[str],
) -> list[Any]:
    """Record both branches; each returns the values of ``names``. Gives the values after the ``if``."""
    condition = _condition(tracer, test, "if")
    a, b = (_side(tracer, branch) for branch in branches)
    sides = a, b
    trees = [agree(x, y, name) for x, y, name in zip(a.result, b.result, names, strict=True)]
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
            with emitting(tracer, side.block):
                out.append(tracer.value(_leaf(mine, other, dtype)))
    places = _merge_places(a, b)
    for _, values in places:
        ends[0].append(values[0])
        ends[1].append(values[1])
    regions = [Region([side.finish("control.yield", out)]) for side, out in zip(sides, ends, strict=True)]
    made = tracer.builder.create("control.if", [condition], regions=regions, location=user_location()).results
    for (place, _), value in zip(places, made[len(pairs) :], strict=True):
        put_place(tracer, place, value, True)
    results = iter([_wrap(tracer, v, (p.a, p.b)) for v, p in zip(made[: len(pairs)], pairs, strict=True)])
    return [match(tree, lambda _: next(results)) for tree in trees]


def _side(tracer: Tracer, branch: Callable[[], list[Any]]) -> Recorded:
    return record(tracer, (), lambda _: branch(), False, "an if on a tensor")


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


def _merge_places(a: Recorded, b: Recorded) -> list[tuple[Any, list[Value]]]:
    merged = []
    for key in {**a.written, **b.written}:
        place = (a.written.get(key) or b.written[key])[0]
        values = [side.written[key][1] if key in side.written else current_value(place) for side in (a, b)]
        merged.append((place, values))
    return merged


def put_place(tracer: Tracer, place: Any, value: Value, active: bool) -> None:
    """Give a place written within a region its value after it."""
    tracer._note(place)
    put_value(place, value, active)


# while


def staged_while(
    tracer: Tracer,
    test: Callable[[], Any],
    body: Callable[[], None],
    get: Callable[[], list[Any]],
    put: Callable[[list[Any]], None],
    names: Sequence[str],
) -> None:
    """Record the loop from the variables' values now; afterwards they hold the loop's results."""
    start = get()
    loop = _Loop(tracer, test, body, get, put, names, start)
    try:
        loop.settle()
        loop.emit()
    except BaseException:
        put(start)
        raise


class _Loop:
    """A loop being recorded: which variables and places it carries, as tensors of which type."""

    def __init__(
        self, tracer: Tracer, test: Any, body: Any, get: Any, put: Any, names: Sequence[str], start: list[Any]
    ) -> None:
        self.tracer, self.test, self.body, self.get, self.put, self.names = tracer, test, body, get, put, names
        self.start = list(start)
        self.temporary: set[int] = set()  # variables that each step sets anew
        self.carried: list[int] = [i for i, x in enumerate(start) if type(x) is Tensor]
        self.places: list[Any] = []
        self.active: dict[int, bool] = {}
        self.wants: dict[int, bool] = {}
        for i in self.carried:
            self._mark(i, self.start[i])

    def _mark(self, i: int, x: Tensor) -> bool:
        active = x.payload.active if x.payload.is_traced else not x.stop_gradient
        changed = (active and not self.active.get(i)) or (not x.stop_gradient and not self.wants.get(i))
        self.active[i] = self.active.get(i, False) or active
        self.wants[i] = self.wants.get(i, False) or not x.stop_gradient
        return changed

    def settle(self) -> None:
        """Trace the body until what it carries, and of which types, does not change any more."""
        for _ in range(_ROUNDS):
            trial = self._record(self._step)
            changed = self._learn(trial)
            trial.drop()
            if not changed:
                return
        raise Mismatch("the variables of a loop on tensors take other shapes or dtypes with every step")

    def _starts(self) -> list[Value]:
        values = [self.tracer.value(as_tensor(self.start[i])) for i in self.carried]
        return values + [current_value(place) for place in self.places]

    def _record(self, run: Callable[[], Any]) -> Recorded:
        def within(arguments: Sequence[Value]) -> Any:
            values = list(self.start)
            for i, argument in zip(self.carried, arguments, strict=False):
                payload = Traced(argument, self.tracer, user_location(), self.active.get(i, False))
                values[i] = Tensor._wrap(payload, not self.wants.get(i, False))
            for place, argument in zip(self.places, arguments[len(self.carried) :], strict=True):
                put_place(self.tracer, place, argument, True)
            self.put(values)
            return run()

        types = [value.type for value in self._starts()]
        try:
            return record(self.tracer, types, within, True, "a loop on a tensor")
        finally:
            self.put(self.start)

    def _step(self) -> list[Any]:
        self.body()
        values: list[Any] = self.get()
        return values

    def _learn(self, trial: Recorded) -> bool:
        changed = False
        for i, after in enumerate(trial.result):
            changed |= self._learn_variable(i, after)
        for place, _, _ in trial.written.values():
            if not any(place is known for known in self.places):
                self.places.append(place)
                changed = True
        return changed

    def _learn_variable(self, i: int, after: Any) -> bool:
        before, name = self.start[i], self.names[i]
        if i in self.carried:
            return self._widen(i, after)
        if (
            i in self.temporary
            or after is before
            or (is_number(before) and type(after) is type(before) and after == before)
        ):
            return False
        if before is NOT_RETURNED and (type(after) is Tensor or is_number(after)):
            after = as_tensor(after)
            self.start[i] = get_operator("zeros")(list(after.payload.shape), after.dtype)
        elif before is NOT_RETURNED or isinstance(before, Undefined):
            self.temporary.add(i)
            return False
        elif is_number(before) and (type(after) is Tensor or is_number(after)):
            self.start[i] = as_tensor(before)
        else:
            agree(before, after, name)
            raise Mismatch(
                f"variable {name!r} changes within a loop on a tensor and is {type(before).__name__} before it; only "
                "tensors and numbers are carried from step to step: use separate variables, or paddle.concat"
            )
        self.carried.append(i)
        self._mark(i, self.start[i])
        return True

    def _widen(self, i: int, after: Any) -> bool:
        before, name = self.start[i], self.names[i]
        if not (type(after) is Tensor or is_number(after)):
            raise Mismatch(f"variable {name!r} is a tensor before a loop on a tensor and {after!r:.60} after a step")
        if type(after) is not Tensor:
            after = _like_number(after, before)
        if tuple(after.payload.shape) != tuple(before.payload.shape):
            raise Mismatch(
                f"variable {name!r} has shape {list(before.payload.shape)} before a step of a loop on a tensor and "
                f"{list(after.payload.shape)} after it; shapes must stay"
            )
        changed = self._mark(i, after)
        if after.dtype is not before.dtype:
            if before.payload.shape != () or before.dtype.kind not in "biu" or after.dtype.kind not in "iuf":
                raise Mismatch(
                    f"variable {name!r} is {before.dtype.name} before a step of a loop on a tensor and "
                    f"{after.dtype.name} after it; cast one"
                )
            self.start[i] = as_tensor(before, after.dtype)
            changed = True
        return changed

    def emit(self) -> None:
        """Record the operation for good and give the variables its results."""
        tracer = self.tracer
        starts = self._starts()
        tests = self._record(self.test)
        if any(value not in tests.block.arguments for _, value, _ in tests.written.values()):
            raise GraphBreak("a write in place within the condition of a while on a tensor")
        with emitting(tracer, tests.block):
            holds = _condition(tracer, as_tensor(tests.result), "while")
        steps = self._record(self._step)
        with emitting(tracer, steps.block):
            ends = [tracer.value(as_tensor(steps.result[i], self.start[i].dtype)) for i in self.carried]
        ends += [steps.written[id(place)][1] for place in self.places]
        regions = [
            Region([tests.finish("control.condition", [holds])]),
            Region([steps.finish("control.yield", ends)]),
        ]
        made = tracer.builder.create("control.while", starts, regions=regions, location=user_location()).results
        after = list(self.start)
        for i, value in zip(self.carried, made, strict=False):
            payload = Traced(value, tracer, user_location(), self.active.get(i, False))
            after[i] = Tensor._wrap(payload, not (self.wants.get(i, False) and grad_enabled()))
        for i in self.temporary:
            after[i] = Undefined(self.names[i])
        for place, value in zip(self.places, made[len(self.carried) :], strict=True):
            put_place(tracer, place, value, True)
        self.put(after)
