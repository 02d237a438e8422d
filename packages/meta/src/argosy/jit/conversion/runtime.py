"""What rewritten functions call. On Python values each does what the statement did; on traced tensors it captures."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from argosy.jit.conversion.conditionals import staged_if
from argosy.jit.conversion.staged_loop import staged_while
from argosy.jit.conversion.values import NOT_RETURNED, UndefinedValue
from argosy.jit.reporting import note
from argosy_phi_ops.capture.tracer import Tracer, active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.errors import GraphBreak
from argosy_phi_ops.user_line import user_location
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "NOT_RETURNED", "and_", "bool_", "choose", "compare", "fetch", "float_", "if_", "index_range", "int_",
    "is_staged_range", "is_true", "is_undefined", "len_", "not_", "or_", "print_", "range_", "return_if", "while_",
]  # fmt: skip


def _tracer_for(x: Any) -> Tracer | None:
    """The tracer that is to capture what depends on ``x``: there is one, and ``x`` is a tensor."""
    if type(x) is not Tensor:
        return None
    return x.payload.tracer if x.payload.is_traced and not x.payload.tracer.finished else active_tracer()


def fetch(name: str, read: Callable[[], Any]) -> Any:
    """The value of a variable, or Undefined where it has none."""
    try:
        return read()
    except NameError:
        return UndefinedValue(name)


def is_undefined(x: Any) -> bool:
    """Whether a variable that is given this has no value."""
    return type(x) is UndefinedValue


def if_(
    test: Any,
    holds: Callable[[], Any],
    fails: Callable[[], Any],
    get: Callable[[], list[Any]],
    put: Callable[[list[Any]], None],
    names: Sequence[str],
    live: Sequence[str],
) -> None:
    """``if test: holds() else: fails()``, where both set variables that ``get`` and ``put`` read and write, of which
    those that are ``live`` may be read afterwards."""
    tracer = _tracer_for(test)
    if tracer is not None:
        before = get()

        def side(branch: Callable[[], Any]) -> list[Any]:
            put(before)
            branch()
            return get()

        try:
            _check_containers(tracer, before)
            put(staged_if(tracer, test, [lambda: side(holds), lambda: side(fails)], names, live))
            return
        except Exception as error:  # noqa: BLE001 (Python runs it then, and meets what is an error)
            put(before)
            _go_on(tracer, error)
    if test:
        holds()
    else:
        fails()


def choose(test: Any, holds: Callable[[], Any], fails: Callable[[], Any]) -> Any:
    """``holds() if test else fails()``."""
    tracer = _tracer_for(test)
    if tracer is not None:
        try:
            return staged_if(tracer, test, [lambda: [holds()], lambda: [fails()]], ["the result"])[0]
        except Exception as error:  # noqa: BLE001 (Python runs it then, and meets what is an error)
            _go_on(tracer, error)
    return holds() if test else fails()


def while_(
    test: Callable[[], Any],
    body: Callable[[], None],
    get: Callable[[], list[Any]],
    put: Callable[[list[Any]], None],
    names: Sequence[str],
    live: Sequence[str] = (),
) -> None:
    """``while test(): body()``. Steps run as Python until the condition is a traced tensor; the rest is captured."""
    given_up = False
    while True:
        holds = test()
        tracer = None if given_up else _tracer_for(holds)
        if tracer is not None:
            try:
                _check_containers(tracer, get())
                staged_while(tracer, test, body, get, put, names, live)
                return
            except Exception as error:  # noqa: BLE001 (Python runs it then, and meets what is an error)
                _go_on(tracer, error)
                given_up = True
        if not holds:
            return
        body()


def _go_on(tracer: Tracer, error: Exception) -> None:
    """After control flow could not be captured: raise, unless the graph may break here and Python decides."""
    if not tracer.breaks or tracer.journals:
        tracer.escaping = error
        raise error
    tracer.escaping = None
    note(user_location(), f"control flow on a tensor is left to Python: {error}")


def and_(first: Any, *others: Callable[[], Any]) -> Any:
    """``first and others[0]() and ...``; for traced tensors, ``logical_and``."""
    for other in others:
        if _tracer_for(first) is not None:
            second = other()
            first = get_operator("logical_and")(*_tensor_pair(first, second))
        elif first:
            first = other()
        else:
            return first
    return first


def or_(first: Any, *others: Callable[[], Any]) -> Any:
    """``first or others[0]() or ...``; for traced tensors, ``logical_or``."""
    for other in others:
        if _tracer_for(first) is not None:
            second = other()
            first = get_operator("logical_or")(*_tensor_pair(first, second))
        elif first:
            return first
        else:
            first = other()
    return first


def _tensor_pair(a: Any, b: Any) -> tuple[Any, Any]:
    return a, b if type(b) is Tensor else get_operator("full_like")(a, bool(b), "bool")


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq,
    "NotEq": operator.ne, "Is": operator.is_, "IsNot": operator.is_not,
    "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b,
}  # fmt: skip


def _identity(x: Any) -> Any:
    return x


def compare(names: Sequence[str], left: Any, *others: Callable[[], Any]) -> Any:
    """``left < others[0]() < ...``, each evaluated once, and only as far as needed."""
    result: Any = True
    for name, other in zip(names, others, strict=True):
        right = other()
        holds = _COMPARISONS[name](left, right)
        result = holds if result is True else and_(result, partial(_identity, holds))
        if _tracer_for(result) is None and not result:
            return result
        left = right
    return result


def not_(x: Any) -> Any:
    """``not x``; for traced tensors, ``logical_not``."""
    return not x if _tracer_for(x) is None else get_operator("logical_not")(x)


class StagedRange:
    """``range`` with bounds that are traced tensors."""

    __slots__ = ("start", "step", "stop")

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step

    def __iter__(self) -> Iterator[int]:
        return iter(range(int(self.start), int(self.stop), int(self.step)))


def range_(*bounds: Any) -> Any:
    """``range(...)`` over numbers or tensors."""
    if all(_tracer_for(x) is None for x in bounds):
        return range(*bounds)
    if len(bounds) == 1:
        return StagedRange(0, bounds[0], 1)
    start, stop, step = (*bounds, 1)[:3]
    if not isinstance(step, int) or step == 0:
        raise TypeError(f"range() over tensors takes a step that is an integer other than 0, not {step!r}")
    return StagedRange(start, stop, step)


def is_staged_range(x: Any) -> bool:
    """Whether a ``for`` over ``x`` is a loop on tensors."""
    return type(x) is StagedRange


def index_range(x: StagedRange) -> tuple[Any, Callable[[Any], Any], int]:
    """First index, the test whether an index is within, and the step."""
    start: Any = x.start
    if type(x.stop) is Tensor and type(start) is not Tensor:
        start = get_operator("full")([], start, x.stop.dtype)
    return start, (lambda i: i < x.stop) if x.step > 0 else (lambda i: i > x.stop), x.step


def is_true(flag: Any) -> bool:
    """Whether a flag of a loop is known to be set."""
    return flag is True or (type(flag) is Tensor and not flag.payload.is_traced and bool(flag))


def return_if(
    test: Any,
    holds: Callable[[], Any],
    fails: Callable[[], Any],
    get: Callable[[], list[Any]],
    put: Callable[[list[Any]], None],
) -> Any:
    """``if test: return holds()``, ``else: return fails()``."""
    tracer = _tracer_for(test)
    if tracer is not None:
        before = get()

        def side(branch: Callable[[], Any]) -> list[Any]:
            put(before)
            return [branch()]

        try:
            _check_containers(tracer, before)
            return staged_if(tracer, test, [lambda: side(holds), lambda: side(fails)], ["the result"])[0]
        except Exception as error:  # noqa: BLE001 (Python runs it then, and meets what is an error)
            put(before)
            _go_on(tracer, error)
    return holds() if test else fails()


def _check_containers(tracer: Tracer, values: Sequence[Any]) -> None:
    """Where Python may decide instead: do not run code twice that may change a list, dict or set."""
    if tracer.breaks and any(type(x) in (list, dict, set) for x in values):
        raise GraphBreak("a list, dict or set may be changed within")


# builtins


def int_(x: Any = 0, *args: Any) -> Any:
    """``int``; of a traced tensor, a cast to int64."""
    return int(x, *args) if _tracer_for(x) is None else get_operator("cast")(x, "int64")


def float_(x: Any = 0.0) -> Any:
    """``float``; of a traced tensor, a cast to the default floating dtype."""
    return float(x) if _tracer_for(x) is None else get_operator("cast")(x, default_dtype())


def print_(*values: Any, **options: Any) -> None:
    """``print``, which needs the values of traced tensors."""
    for x in values:
        if type(x) is Tensor and x.payload.is_traced:
            x.payload.concretize("print()")
    print(*values, **options)  # noqa: T201 (the user's)


def bool_(x: Any = False) -> Any:
    """``bool``; of a traced tensor, a cast to bool."""
    return bool(x) if _tracer_for(x) is None else get_operator("cast")(x, "bool")


def len_(x: Any) -> Any:
    """``len``; of a traced tensor, its leading size."""
    if _tracer_for(x) is None:
        return len(x)
    if not x.payload.shape:
        raise TypeError("len() of a tensor of shape [] (a 0-D tensor has no length)")
    return x.shape[0]
