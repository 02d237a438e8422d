"""Adaptive steps with Dormand and Prince's method, and derivatives of solutions by the adjoint equation.

The pair of orders 5 and 4 (Dormand and Prince, 1980; Hairer, Norsett, Wanner, 1993, section II.4). A cotangent g of the
solution is carried backwards by ``da/dt = -(df/dy)^T a``, along with the solution itself, and collects
``integral of (df/dp)^T a`` for the parameters p (Chen et al., Neural ordinary differential equations, 2018): no
step is kept, and the accuracy is that of the tolerances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.science.loops import scan
from argosy.static.control_flow import while_loop
from argosy_autograd.engine import grad
from argosy_autograd.modes import enable_grad, is_grad_enabled, no_grad
from argosy_autograd.pylayer import PyLayer
from argosy_autograd.tracing import traced_refusal
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Tolerances", "solve"]

Field = Callable[..., Any]
State = list[Any]

_NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
_WEIGHTS = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


class Tolerances(NamedTuple):
    """The error of a step is kept below ``atol + rtol |y|`` in the mean; ``steps`` are tried at most between two
    times. ``depth``: derivatives of so many orders lie around what is solved."""

    rtol: float
    atol: float
    steps: int
    depth: int = 0


_DEPTH = 1
"""While capturing, derivatives are recorded together with what they are of, so their order must be bounded."""


def solve(func: Field, y0: Any, t: Any, args: Sequence[Any], tolerances: Tolerances) -> Any:
    """The solution of ``dy/dt = func(t, y, *args)`` at the times ``t`` [n]: [n, *y0.shape].

    Derivatives by ``y0``, ``t``, the tensors among ``args``, and the parameters of ``func`` where it is a layer. Where
    more than ``steps`` are needed the result is NaN from there on.
    """
    own = list(func.parameters()) if hasattr(func, "parameters") else []
    return _solve(func, y0, t, args, own, tolerances)


def _solve(func: Field, y0: Any, t: Any, args: Sequence[Any], own: Sequence[Any], tolerances: Tolerances) -> Any:
    return _Solution.apply(func, tolerances, len(args), y0, t, *args, *own)


class _Solution(PyLayer):
    """The path of y; the parameters of a layer follow the arguments, only to receive gradients."""

    @staticmethod
    def forward(ctx: Any, func: Field, tolerances: Tolerances, count: int, y0: Any, t: Any, *inputs: Any) -> Any:
        """Step from time to time."""
        args, own = inputs[:count], inputs[count:]
        with no_grad():
            path = _path(lambda s, y: [func(s, y[0], *args).detach()], y0.detach(), t.detach(), tolerances)
        ctx.func, ctx.tolerances, ctx.t, ctx.args, ctx.own, ctx.path = func, tolerances, t, args, own, path
        return path

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        """Carry the cotangents back."""
        moving = [x for x in (*ctx.args, *ctx.own) if _is_floating(x)]
        last = active_tracer() is not None and (ctx.tolerances.depth >= _DEPTH or not _has_static_sizes(ctx))
        adjoint = _recorded_adjoint if is_grad_enabled() and not last else _adjoint
        by_y0, by_t, sums = adjoint(ctx.func, ctx.t, ctx.path, g, ctx.args, ctx.own, ctx.tolerances)
        if last:
            reason = (
                f"odeint(): while capturing, derivatives with adaptive steps above order {_DEPTH + 1}, or of second "
                "order with sizes that are not known, are not implemented; fixed steps have them"
            )
            by_y0, by_t, *sums = traced_refusal([by_y0, by_t, *sums], reason)
        found = dict(zip(map(id, moving), sums, strict=True))
        tensors = [x for x in (*ctx.args, *ctx.own) if type(x) is Tensor]
        return (by_y0, by_t, *(found.get(id(x)) for x in tensors))


def _path(field: Callable[[Any, State], State], y0: Any, t: Any, tolerances: Tolerances) -> Any:
    def interval(carried: State, slices: State) -> tuple[State, State]:
        *state, h = carried
        moved, h = _integrate(field, slices[0], slices[1], state, h, tolerances)
        return [*moved, h], moved

    first = get_operator("unsqueeze")(y0, 0)
    if t.shape[0] == 1:
        return first
    start = (t[1] - t[0]) * 0.01
    _, (rest,) = scan(interval, [y0, start], [t[:-1], t[1:]])
    return get_operator("concat")([first, rest], 0)


def _integrate(
    field: Callable[[Any, State], State], start: Any, end: Any, state: State, h: Any, tolerances: Tolerances
) -> tuple[State, Any]:
    """The state at ``end`` from the one at ``start``, with a first step like ``h``; and a step for what follows."""
    count, where = len(state), get_operator("where")
    sign = get_operator("sign")(end - start)

    def goes_on(number: Any, t: Any, h: Any, *values: Any) -> Any:
        left = get_operator("abs")(end - t) > 1e-14 * get_operator("abs")(end)
        return get_operator("logical_and")(number < tolerances.steps, left)

    def attempt(number: Any, t: Any, h: Any, *values: Any) -> State:
        y, slope = list(values[:count]), list(values[count:])
        room = get_operator("abs")(end - t)
        last = h >= room
        step = sign * where(last, room, h)
        moved, slope_there, error = _step(field, t, y, slope, step)
        ratio = _ratio(y, moved, error, tolerances)
        accepted = ratio <= 1.0  # False for NaN: a smaller step may do
        wanted = 0.9 * get_operator("maximum")(ratio, get_operator("full_like")(ratio, 1e-10)) ** -0.2
        factor = get_operator("clip")(wanted, 0.2, 10.0)
        factor = where(get_operator("isfinite")(ratio), factor, get_operator("full_like")(factor, 0.2))
        following = where(get_operator("logical_and")(last, accepted), h, get_operator("abs")(step) * factor)
        time = where(accepted, where(last, end, t + step), t)
        pairs = zip((*moved, *slope_there), (*y, *slope), strict=True)
        return [number + 1, time, following, *(where(accepted, new, old).detach() for new, old in pairs)]

    number = get_operator("full")([], 0, "int64")
    slope = [k.detach() for k in field(start, state)]
    held = while_loop(goes_on, attempt, [number, start, get_operator("abs")(h), *state, *slope])
    arrived = held[1] == end
    done = get_operator("logical_or")(arrived, held[0] < tolerances.steps)
    lost = where(done, h * 0, get_operator("full_like")(h, float("nan")))
    return [y + lost.astype(y.dtype) for y in held[3 : 3 + count]], held[2]


def _step(field: Callable[[Any, State], State], t: Any, y: State, slope: State, h: Any) -> tuple[State, State, State]:
    """The state after a step of ``h``, its slope there (the first one of the next step), and the estimated error."""
    slopes = [slope]
    for node, row in zip(_NODES, _STAGES, strict=True):
        slopes.append(field(t + node * h, _combine(y, slopes, row, h)))
    moved = _combine(y, slopes, _WEIGHTS, h)
    slopes.append(field(t + h, moved))
    error = [e - x for e, x in zip(_combine(y, slopes, _ERROR, h), y, strict=True)]
    return moved, slopes[-1], error


def _combine(y: State, slopes: Sequence[State], weights: Sequence[float], h: Any) -> State:
    made = []
    for i, x in enumerate(y):
        terms = [k[i] * w for k, w in zip(slopes, weights, strict=True) if w]
        made.append(x + h.astype(x.dtype) * sum(terms[1:], terms[0]))
    return made


def _ratio(y: State, moved: State, error: State, tolerances: Tolerances) -> Any:
    """The largest, over the tensors of the state, of the root mean square of errors by what is allowed."""
    largest, size = None, get_operator("abs")
    for before, after, e in zip(y, moved, error, strict=True):
        allowed = tolerances.atol + tolerances.rtol * get_operator("maximum")(size(before), size(after))
        ratio = get_operator("sqrt")(get_operator("mean")((size(e) / allowed) ** 2))
        largest = ratio if largest is None else get_operator("maximum")(largest, ratio)
    return largest


def _adjoint(
    func: Field, t: Any, path: Any, g: Any, args: Sequence[Any], own: Sequence[Any], tolerances: Tolerances
) -> tuple[Any, Any, list[Any]]:
    """Gradients by y0, t and the floating tensors of ``args`` and ``own``."""
    moving = [x for x in (*args, *own) if _is_floating(x)]
    zeros = get_operator("zeros_like")

    def back(s: Any, state: State) -> State:
        slope, pulled = _pull_back(func, s, state[0], args, own, state[1])
        return [slope, *(-p for p in pulled)]

    def interval(carried: State, slices: State) -> tuple[State, State]:
        a, *sums, h = carried
        start, end, y, direct = slices
        by_time = (direct * func(end, y, *args)).sum().reshape([]).astype(t.dtype)
        (_, *moved), h = _integrate(back, end, start, [y, a + direct, *sums], h, tolerances)
        return [*moved, h], [by_time]

    a, sums, n = zeros(path[0]), [zeros(x) for x in moving], t.shape[0]
    times = []
    with no_grad():
        if n > 1:
            slices = [_flip(t[:-1]), _flip(t[1:]), _flip(path[1:]), _flip(g[1:])]
            carried = [a, *sums, (t[-1] - t[-2]).detach() * 0.01]
            (a, *sums, _), (times_back,) = scan(interval, carried, slices)
            times = [_flip(times_back)]
        first = -(a * func(t[0].detach(), path[0].detach(), *args)).sum().reshape([1]).astype(t.dtype)
        return (a + g[0]).detach(), get_operator("concat")([first, *times], 0), sums


def _recorded_adjoint(
    func: Field, t: Any, path: Any, g: Any, args: Sequence[Any], own: Sequence[Any], tolerances: Tolerances
) -> tuple[Any, Any, list[Any]]:
    """The same with derivatives of its own: solution, cotangent and sums are one vector, and the way back from a time
    to the one before is a solution as well."""
    moving = [x for x in (*args, *own) if _is_floating(x)]
    likes = [path[0], path[0], *moving]

    def back(s: Any, z: Any, *args: Any) -> Any:
        y, a, *_ = _parts(z, likes)
        slope, pulled = _pull_back(func, s, y, args, own, a, True)
        return _concatenate([slope, *(-p for p in pulled)])

    def interval(carried: State, slices: State) -> tuple[State, State]:
        a, *sums = carried
        start, end, y, direct = slices
        by_time = (direct * func(end, y, *args)).sum().reshape([]).astype(t.dtype)
        z = _concatenate([y, a + direct, *sums])
        deeper = tolerances._replace(depth=tolerances.depth + 1)
        way = get_operator("stack")([end, start])
        return _parts(_solve(back, z, way, args, own, deeper)[1], likes)[1:], [by_time]

    zeros = get_operator("zeros_like")
    a, sums, times = zeros(path[0]), [zeros(x) for x in moving], []
    if t.shape[0] > 1:
        slices = [get_operator("flip")(x, 0) for x in (t[:-1], t[1:], path[1:], g[1:])]
        (a, *sums), (times_back,) = scan(interval, [a, *sums], slices)
        times = [get_operator("flip")(times_back, 0)]
    first = -(a * func(t[0], path[0], *args)).sum().reshape([1]).astype(t.dtype)
    return a + g[0], get_operator("concat")([first, *times], 0), sums


def _concatenate(parts: Sequence[Any]) -> Any:
    """Tensors as one vector of a dtype that holds them all."""
    names = {x.dtype.name for x in parts}
    wide = not names.isdisjoint(("float64", "complex128"))
    if any(x.dtype.kind == "c" for x in parts):
        common = "complex128" if wide else "complex64"
    else:
        common = "float64" if wide else "float32"
    return get_operator("concat")([x.reshape([-1]).astype(common) for x in parts], 0)


def _parts(z: Any, likes: Sequence[Any]) -> list[Any]:
    """The way back, to tensors like ``likes``."""
    pieces = get_operator("split")(z, [prod(x.shape) for x in likes], 0)
    real = [x.real() if x.dtype.kind == "c" and y.dtype.kind != "c" else x for x, y in zip(pieces, likes, strict=True)]
    return [x.astype(y.dtype).reshape(list(y.shape)) for x, y in zip(real, likes, strict=True)]


def _has_static_sizes(ctx: Any) -> bool:
    """Whether all sizes are numbers."""
    tensors = [x for x in (ctx.path, *ctx.args, *ctx.own) if type(x) is Tensor]
    return all(isinstance(n, int) and n >= 0 for x in tensors for n in x.shape)


def _flip(x: Any) -> Any:
    return get_operator("flip")(x.detach(), 0)


def _pull_back(
    func: Field, s: Any, y: Any, args: Sequence[Any], own: Sequence[Any], a: Any, recorded: bool = False
) -> tuple[Any, list[Any]]:
    """``func`` at a point and ``a`` times its derivatives by y and the floating tensors; constants unless
    ``recorded``."""
    zeros, copied = get_operator("zeros_like"), _copy if recorded else _as_leaf
    with enable_grad():
        point = copied(y)
        copies = [copied(x) if _is_floating(x) else x for x in args]
        slope = func(s, point, *copies)
        inputs = [point, *(x for x in copies if _is_floating(x)), *own]
        if slope.stop_gradient:
            return slope, [zeros(x) for x in inputs]
        found = grad(slope, inputs, a, create_graph=recorded, allow_unused=True)
        pulled = [zeros(x) if p is None else p for x, p in zip(inputs, found, strict=True)]
    return (slope, pulled) if recorded else (slope.detach(), [p.detach() for p in pulled])


def _as_leaf(x: Any) -> Any:
    """A copy to differentiate by, of no history."""
    return _copy(x.detach())


def _copy(x: Any) -> Any:
    """A copy to differentiate by, in the graph of ``x``."""
    made = get_operator("assign")(x)
    if active_tracer() is not None and made.payload.is_traced:
        made.payload.active = True
    made.stop_gradient = False
    return made


def _is_floating(x: Any) -> bool:
    return type(x) is Tensor and x.dtype.kind in "fc"
