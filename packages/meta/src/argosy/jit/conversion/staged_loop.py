"""``while`` on traced tensors, recorded as ``control.while``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.jit.conversion.conditionals import put_place, scalar_condition
from argosy.jit.conversion.gradient_slots import is_empty, merge_empty, put_gradient, slot_value
from argosy.jit.conversion.nested_loops import InnerLoops, LoopSignature, LoopVariable
from argosy.jit.conversion.values import (
    NOT_RETURNED,
    MaybeUndefined,
    Mismatch,
    UndefinedValue,
    agree,
    as_tensor,
    is_number,
)
from argosy_phi_ops.capture.regions import RecordedRegion, current_value, insertion_at, record
from argosy_phi_ops.capture.tracer import TracedPayload, Tracer
from argosy_phi_ops.context import grad_enabled
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.errors import GraphBreak
from argosy_phi_ops.user_line import user_location
from argosy_pir.core import Region
from argosy_pir.values import Value
from argosy_tensorcore.tensor import Tensor

__all__ = ["staged_while"]

_ROUNDS = 8  # how often a loop's body is traced until the types of what it carries settle


def staged_while(
    tracer: Tracer,
    test: Callable[[], Any],
    body: Callable[[], None],
    get: Callable[[], list[Any]],
    put: Callable[[list[Any]], None],
    names: Sequence[str],
    live: Sequence[str],
) -> None:
    """Record the loop from the variables' values now; afterwards they hold the loop's results. Raises MaybeUndefined
    for a ``live`` variable that only its steps set."""
    start = get()
    around = tracer.loops[-1].inner if tracer.loops else None
    key = None if around is None else around.key(_Loop._record.__code__)
    try:
        loop = _Loop(tracer, test, body, get, put, names, start, None if around is None else around.get(key))
        steps = loop.settle()
        if around is not None:
            around.put(key, loop.signature())
        for name in loop.temporaries():
            if name in live:
                raise MaybeUndefined(name, "only within a loop", user_location())
        loop.emit(steps)
    except BaseException:
        put(start)
        raise


def _like_number(number: Any, like: Tensor) -> Tensor:
    """A number as what it is beside a tensor: of the tensor's dtype where that can hold it."""
    made = as_tensor(number)
    order = "biufc"
    fits = order.index(made.dtype.kind) <= max(order.index(like.dtype.kind), 2 if like.dtype.kind == "i" else 0)
    return as_tensor(made, like.dtype) if (fits and made.dtype.kind != "f") or like.dtype.kind in "fc" else made


class _Loop:
    """A loop being recorded: which variables and places it carries, as tensors of which type."""

    def __init__(
        self,
        tracer: Tracer,
        test: Any,
        body: Any,
        get: Any,
        put: Any,
        names: Sequence[str],
        start: list[Any],
        known: LoopSignature | None,
    ) -> None:
        self.tracer, self.test, self.body, self.get, self.put, self.names = tracer, test, body, get, put, names
        self.given = start
        self.start = list(start)
        self.inner = InnerLoops() if known is None else known.inner
        self.temporary: set[int] = set()  # variables that each step sets anew
        self.carried: list[int] = [i for i, x in enumerate(start) if type(x) is Tensor]
        self.places: list[Any] = []
        self.slots: list[Tensor] = []  # tensors whose gradients are carried
        self.emptied: dict[int, tuple[Tensor, Any]] = {}  # slots that each step fills and empties
        self.active: dict[int, bool] = {}
        self.wants: dict[int, bool] = {}
        self.draws = False
        for i in self.carried:
            self._mark(i, self.start[i])
        if known is not None:
            self._recall(known)

    def _recall(self, known: LoopSignature) -> None:
        """Begin with what this loop came to carry when it was traced before."""
        for i, variable in known.variables.items():
            self._recall_variable(i, variable)
        if known.draws:
            self.tracer.advance_generator()
        self.places += known.places
        self.slots += known.slots

    def _recall_variable(self, i: int, known: LoopVariable) -> None:
        before = self.start[i]
        if i not in self.carried:
            if before is NOT_RETURNED:
                before = get_operator("zeros")(list(known.shape), known.dtype)
            elif is_number(before) and type(before) is type(known.started) and before == known.started:
                before = as_tensor(before)
            else:
                return
            self.carried.append(i)
        if tuple(before.payload.shape) == known.shape:
            self.start[i] = as_tensor(before, known.dtype)
            self.active[i] = self.active.get(i, False) or known.active
            self.wants[i] = self.wants.get(i, False) or known.wants

    def signature(self) -> LoopSignature:
        """What the loop carries, but for the places and slots of what a trial of the loop around it made."""
        variables = {}
        for i in self.carried:
            x, before = self.start[i], self.given[i]
            kind = x.dtype, tuple(x.payload.shape), self.active.get(i, False), self.wants.get(i, False)
            variables[i] = LoopVariable(before if is_number(before) else None, *kind)
        states = [place for place in self.places if hasattr(place, "state")]
        slots = [x for x in self.slots if not x.payload.is_traced or any(x is given for given in self.tracer.inputs)]
        return LoopSignature(variables, states, slots, self.draws, self.inner)

    def _mark(self, i: int, x: Tensor) -> bool:
        active = x.payload.active if x.payload.is_traced else not x.stop_gradient
        changed = (active and not self.active.get(i)) or (not x.stop_gradient and not self.wants.get(i))
        self.active[i] = self.active.get(i, False) or active
        self.wants[i] = self.wants.get(i, False) or not x.stop_gradient
        return changed

    def settle(self) -> RecordedRegion:
        """Trace the body until what it carries, and of which types, does not change any more; the last trace is the
        loop's."""
        for _ in range(_ROUNDS):
            trial = self._record(self._step)
            try:
                changed = self._learn(trial)
            except BaseException:
                trial.drop()
                raise
            if not changed:
                return trial
            trial.drop()
        raise Mismatch("the variables of a loop on tensors take other shapes or dtypes with every step")

    def temporaries(self) -> list[str]:
        """The variables that have no value before the loop."""
        return [name for i, name in enumerate(self.names) if i in self.temporary]

    def _starts(self) -> list[Value]:
        values = [self.tracer.value(as_tensor(self.start[i])) for i in self.carried]
        values += [current_value(place) for place in self.places]
        return values + [slot_value(self.tracer, tensor, tensor._grad) for tensor in self.slots]

    def _record(self, run: Callable[[], Any]) -> RecordedRegion:
        starts = self._starts()

        def run_body(arguments: Sequence[Value]) -> Any:
            self.tracer.starts.update(zip(arguments, starts, strict=True))
            values = list(self.start)
            for i, argument in zip(self.carried, arguments, strict=False):
                payload = TracedPayload(argument, self.tracer, user_location(), self.active.get(i, False))
                values[i] = Tensor._wrap(payload, not self.wants.get(i, False))
            self._put_rest(arguments[len(self.carried) :])
            self.put(values)
            return run()

        types = [value.type for value in starts]
        self.inner.begin()
        self.tracer.loops.append(self)
        try:
            return record(self.tracer, types, run_body)
        finally:
            self.tracer.loops.pop()
            self.put(self.start)

    def _put_rest(self, values: Sequence[Value]) -> None:
        """Give places and slots the values that follow those of variables."""
        for place, value in zip(self.places, values, strict=False):
            put_place(self.tracer, place, value, True)
        for tensor, value in zip(self.slots, values[len(self.places) :], strict=True):
            put_gradient(self.tracer, tensor, value)

    def _step(self) -> list[Any]:
        self.body()
        if self.tracer.random_state in self.places:
            self.tracer.advance_generator()
        values: list[Any] = self.get()
        return values

    def _learn(self, trial: RecordedRegion) -> bool:
        changed = False
        for i, after in enumerate(trial.result):
            changed |= self._learn_variable(i, after)
        for place, _, _ in trial.written.values():
            if not any(place is known for known in self.places):
                self.places.append(place)
                changed = True
        return self._learn_draws(trial) | self._learn_slots(trial) | changed

    def _learn_draws(self, trial: RecordedRegion) -> bool:
        """Whether steps turn out to draw: then the random state moves on before the loop and at the end of each."""
        if trial.drawn == self.tracer._draws:
            return False
        self.draws = True
        self.tracer.advance_generator()
        if self.tracer.random_state not in self.places:
            self.places.append(self.tracer.random_state)
        return True

    def _learn_slots(self, trial: RecordedRegion) -> bool:
        changed = False
        for key, (tensor, after) in trial.slots.items():
            if is_empty(tensor._grad) and is_empty(after):
                self.emptied[key] = tensor, merge_empty(tensor._grad, after)
            elif not any(tensor is known for known in self.slots):
                self.slots.append(tensor)
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
        elif before is NOT_RETURNED or isinstance(before, UndefinedValue):
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

    def emit(self, steps: RecordedRegion) -> None:
        """Record the operation for good, with the body ``steps``, and give the variables its results."""
        tracer = self.tracer
        starts = self._starts()
        tests = self._record(self.test)
        if any(value not in tests.block.arguments for _, value, _ in tests.written.values()):
            raise GraphBreak("a write in place within the condition of a while on a tensor")
        if tests.drawn != tracer._draws or tests.slots.keys() - {id(tensor) for tensor in self.slots}:
            raise GraphBreak("backward() or random numbers within the condition of a while on a tensor")
        with insertion_at(tracer, tests.block):
            holds = scalar_condition(tracer, as_tensor(tests.result), "while")
        with insertion_at(tracer, steps.block):
            ends = [tracer.value(as_tensor(steps.result[i], self.start[i].dtype)) for i in self.carried]
            ends += [steps.written[id(place)][1] for place in self.places]
            ends += [slot_value(tracer, tensor, steps.slots[id(tensor)][1]) for tensor in self.slots]
        regions = [
            Region([tests.finish("control.condition", [holds])]),
            Region([steps.finish("control.yield", ends)]),
        ]
        made = tracer.builder.create("control.while", starts, regions=regions, location=user_location()).results
        after = list(self.start)
        for i, value in zip(self.carried, made, strict=False):
            payload = TracedPayload(value, tracer, user_location(), self.active.get(i, False))
            after[i] = Tensor._wrap(payload, not (self.wants.get(i, False) and grad_enabled()))
        for i in self.temporary:
            after[i] = UndefinedValue(self.names[i])
        self._put_rest(made[len(self.carried) :])
        for tensor, gradient in self.emptied.values():
            if not any(tensor is carried for carried in self.slots):
                tensor._grad = gradient
        self.put(after)
