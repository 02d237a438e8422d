"""``jet``: a truncated Taylor series through a function, in one forward sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

from argosy_autograd.activity import has_gradient, postorder, read_values
from argosy_autograd.derivatives import ProgramOperator
from argosy_autograd.errors import DifferentiationError, MissingRule, asked_for
from argosy_autograd.functional import jvp
from argosy_autograd.modes import enable_grad
from argosy_phi_ops.capture.tracer import Tracer, active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import bind
from argosy_phi_ops.errors import GraphBreak
from argosy_phi_ops.user_line import user_location
from argosy_pir import TensorType, Value
from argosy_pir.passes import PassManager
from argosy_tensorcore.tensor import Tensor

__all__ = ["jet"]

PIPELINE = "decompose,taylor-mode,expand-gradients,cse,dce"
Series = Sequence[Sequence[Any]]


def jet(func: Callable[..., Any], primals: Sequence[Tensor], series: Series) -> tuple[Any, Any]:
    """Derivatives of ``func`` along a curve, of every order up to the length of the series.

    ``series[i][k - 1]`` is the k-th derivative of the curve of input i at ``primals[i]``: a tensor of its shape, or
    a number for all its elements. Returns ``func(*primals)`` and, shaped alike, for each result the list of its
    derivatives 1 to K along the curve. ``jet(sin, (x,), ((1.0, 0.0, 0.0),))`` gives ``sin x`` and
    ``[cos x, -sin x, -cos x]``. Costs O(K^2) evaluations. Results stay in the graph: they can be differentiated
    by the primals, the series and whatever else ``func`` reads. (Griewank and Walther, Evaluating Derivatives,
    2008, chapter 13; the conventions are those of ``jax.experimental.jet``.)

    Functions with a derivative of their own have no Taylor rule, nor has an eager ``func`` that reads values: there
    derivatives along the curve are nested one in the other, at a cost that grows by a factor with every order, and
    ``func`` is called once for every order. Captured loops carry the coefficients. Raises
    :class:`DifferentiationError` for series that do not fit.
    """
    inputs = list(primals)
    terms, order = _check(inputs, series)
    flat = [*inputs, *(t for each in terms for t in each)]
    captured = active_tracer() is not None
    run = _trace if captured else _compute
    try:
        results, shape = run(func, flat, len(inputs), order)
    except (MissingRule, GraphBreak) as error:
        if captured and isinstance(error, GraphBreak):
            raise
        return _nest(func, inputs, terms)
    return _restore_structure(results, shape, order)


def _check(inputs: Sequence[Any], series: Series) -> tuple[list[list[Tensor]], int]:
    lengths = {len(each) for each in series}
    if len(series) != len(inputs) or not inputs or len(lengths) != 1 or lengths == {0}:
        raise DifferentiationError(
            "jet(): expected one series for each primal, all of one length of at least 1; got "
            f"{len(inputs)} primals and series of lengths {[len(each) for each in series]}"
        )
    order = lengths.pop()
    for i, x in enumerate(inputs):
        if type(x) is not Tensor or x.dtype.kind not in "fc":
            kind = f"{x.dtype.name} tensor" if type(x) is Tensor else type(x).__name__
            raise DifferentiationError(
                f"jet(): primal {i} is a {kind}; only floating and complex tensors can move; {asked_for(order)}"
            )
    paired = enumerate(zip(inputs, series, strict=True))
    terms = [[_term(i, k, c, x) for k, c in enumerate(each, 1)] for i, (x, each) in paired]
    return terms, order


def _term(number: int, k: int, c: Any, x: Tensor) -> Tensor:
    if type(c) is not Tensor:
        made: Tensor = get_operator("full_like")(x, c)
        return made
    if list(c.shape) != list(x.shape) or c.dtype is not x.dtype:
        raise DifferentiationError(
            f"jet(): derivative {k} of primal {number} is {c.dtype.name} {list(c.shape)}, the primal "
            f"{x.dtype.name} {list(x.shape)}"
        )
    return c


def _trace(func: Callable[..., Any], flat: Sequence[Tensor], count: int, order: int) -> tuple[list[Tensor], Any]:
    """Record an ``ad.jet`` in the program being captured. Results: the outputs, then the derivatives of each. Raises
    :class:`MissingRule` where that could not be expanded."""
    tracer = active_tracer()
    assert tracer is not None
    moving = []
    for x in flat[:count]:
        copied = get_operator("assign")(x)
        copied.stop_gradient = False
        copied.payload.active = True
        moving.append(copied)
    with enable_grad():
        made = func(*moving)
    outputs = list(made) if isinstance(made, (tuple, list)) else [made]
    values = [tracer.value(y) for y in outputs]
    if not all(has_gradient(v) for v in values):
        raise DifferentiationError(
            f"jet(): a result is of dtype {[v.dtype for v in values]}: it has no derivatives; {asked_for(order)}"
        )
    _check_rules(values, [tracer.value(x) for x in moving])
    operands = [*values, *(tracer.value(x) for x in (*moving, *flat[count:]))]
    counts = (len(values), count, order)
    op = tracer.builder.create("ad.jet", operands, {"counts": counts}, location=user_location())
    derivatives = [tracer.wrap(value, False) for value in op.results]
    return [*outputs, *derivatives], made


def _check_rules(outputs: Sequence[Value], inputs: Sequence[Value]) -> None:
    """Raise :class:`MissingRule` where a derivative of the user's own lies between ``inputs`` and ``outputs``."""
    moved = set(inputs)
    for op in postorder(outputs, None):
        if any(v in moved for v in read_values(op)):
            if any(inner.name == "ad.custom" for inner in (op.walk() if op.regions else ())):
                raise MissingRule(f"'{op.name}' ({op.location}) has no Taylor rule")
            moved.update(op.results)


def _compute(func: Callable[..., Any], flat: Sequence[Tensor], count: int, order: int) -> tuple[list[Tensor], Any]:
    """Capture the sweep as a program of primitives and apply it as one operator, which the tape can differentiate."""
    with Tracer("jet") as tracer:
        traced = [tracer.input(TensorType(x.payload.shape, x.dtype.name), stop_gradient=False) for x in flat]
        results, shape = _trace(func, traced, count, order)
        captured = tracer.finish(results)
    if captured.written or captured.grads or captured.draws:
        raise DifferentiationError("jet(): the function changes tensors, gradients or the random state outside of it")
    program = captured.program
    program.states.clear()  # they are the last arguments of the block: inputs from here on
    program.set_outputs(program.outputs[: len(results)])
    PassManager(PIPELINE).run(program)
    made = bind(ProgramOperator("jet", program), [*flat, *captured.states], {})  # type: ignore[arg-type]
    return list(made), shape


def _nest(func: Callable[..., Any], inputs: Sequence[Any], terms: Sequence[Sequence[Any]]) -> tuple[Any, Any]:
    """The same by derivatives of derivatives by the parameter of the curve."""
    cast = get_operator("cast")

    def curve(t: Any, x: Any, coefficients: Sequence[Any]) -> Any:
        for k, c in enumerate(coefficients, 1):
            x = x + c * cast(t**k / factorial(k), x.dtype.name)
        return x

    def on_curve(t: Any) -> Any:
        return func(*(curve(t, x, each) for x, each in zip(inputs, terms, strict=True)))

    start = get_operator("full")([], 0.0, "float64")
    series: list[Any] = []
    moving: Callable[[Any], Any] = on_curve
    for _ in terms[0]:
        moving = _slope(moving)
        series.append(moving(start))
    value = func(*inputs)
    if isinstance(value, (tuple, list)):
        return value, type(value)([[each[i] for each in series] for i in range(len(value))])
    return value, series


def _slope(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda t: jvp(function, t)[1]


def _restore_structure(results: Sequence[Tensor], shape: Any, order: int) -> tuple[Any, Any]:
    if not isinstance(shape, (tuple, list)):
        return results[0], list(results[1:])
    count = len(shape)
    rest = results[count:]
    return type(shape)(results[:count]), type(shape)([rest[i * order : (i + 1) * order] for i in range(count)])
