"""The short way of eager execution: applications of an operator that look like an earlier one.

The first application to operands of some types and with some attributes goes the long way through
`eager.dispatch`; what it worked out (how arguments bind, which kernel, which type comes out, what the
tape must keep) stays as a :class:`Route`. Later ones find it by the identity of the operands' types, call the kernel,
wrap the array and leave a node. Applications with several results are found again as a
`eager.repeated.Repeated`. Whatever is out of the ordinary (layers, traced operands, attributes that
are no plain data) goes the long way every time; applications to distributed tensors have a short way that their layer
gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from argosy_phi_ops.checks import value_checks
from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.declare.operator import NO_ATTRIBUTES, NO_KEYWORDS, OPERATORS, Operator
from argosy_phi_ops.eager import dispatch, native, tiering
from argosy_phi_ops.eager.call_keys import NUMBERS, call_key
from argosy_phi_ops.eager.gradient_blockers import joined, note_walls, silenced, walls_of
from argosy_phi_ops.eager.kernel_choice import is_view, may_be_compiled
from argosy_phi_ops.eager.repeated import Repeated, any_state, is_repeatable, type_of
from argosy_phi_ops.eager.tiering import Counted, NativeKernel
from argosy_phi_ops.eager.valued import valued
from argosy_phi_ops.reference.kernels.registry import quiet, shared_run
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import default_listeners
from argosy_tensorcore.storage import ArrayType, Strided
from argosy_tensorcore.tensor import Tensor

__all__ = ["KEPT", "Route", "binary", "forget", "general", "repeated_of", "route_of", "unary"]

KEPT = 1024  # routes of one operator; varied attributes must not fill the memory
_new = object.__new__
_ndarray = np.ndarray
_array = np.array


class Route:
    """How an operator is applied to operands of certain types.

    ``kernel`` takes arrays; ``dtypes`` are what they are converted to first, None where nothing is; ``result`` is the
    type that comes out; ``record(route, operands, result)`` leaves a node when an operand wants gradients, and
    ``recipes`` belongs to it: what it worked out, by which operands want them. ``reading`` is how native code tells its
    calls, None where it cannot; ``place`` and ``calls`` are its native plans. ``values`` counts
    numbers among the operands, where they may become constants of native code. ``draws``: the last operand is the state
    of a random draw, which callers do not give.
    """

    __slots__ = (
        "attributes", "calls", "draws", "dtypes", "kernel", "op", "place", "reading", "recipes", "record", "result",
        "types", "values",
    )  # fmt: skip

    def __init__(
        self,
        op: Operator,
        types: Sequence[Any],
        attributes: dict[str, Any],
        plan: dispatch.Plan,
        result: ArrayType,
        reading: native.Reading | None,
    ) -> None:
        self.op = op
        self.draws = op.random
        self.reading = reading
        self.types = tuple(types)
        self.attributes = attributes
        self.dtypes = None if plan.plain else plan.dtypes
        special = None
        if op.choose is not None and plan.plain and all(type(t) is ArrayType for t in types):
            special = op.choose(types, attributes)
        self.kernel: Callable[..., Any] = plan.on_arrays(attributes) if special is None else self.guarded(special)
        self.result = result
        tensors = [t for t in types if type(t) is ArrayType]
        if op.constant or not result.differentiable:
            self.record: Callable[[Route, Sequence[Any], Tensor], None] = _nothing_recorded
        else:
            self.record = _record_first if all(t.differentiable for t in tensors) else _record_mixed
        self.recipes: dict[Any, Any] = {}
        self.place: int | None = None
        self.calls: list[Any] = []
        self.values = valued(self) if reading is not None else None
        if is_view(op, types) and plan.plain and reading is not None:
            native.learn_view(self)
        elif plan.plain and may_be_compiled(op, types):
            least = partial(native.least_steps, self)
            self.kernel = Counted(self.kernel, self.program, self._single, self._replace, least)

    def __call__(self, operands: Sequence[Any], silent: bool) -> Any:
        """The result for bound operands of these types. Raises what the kernel does."""
        arrays = [x.payload.ndarray if type(x) is Tensor else x for x in operands]
        if self.dtypes is not None:
            arrays = [a if d is None else np.asarray(a, d) for a, d in zip(arrays, self.dtypes, strict=True)]
        result = Tensor._wrap(dispatch.payload_of(self.op, operands, self.kernel(*arrays)))
        result._walls = walls_of(operands)
        if any([type(x) is Tensor and not x.stop_gradient for x in operands]):
            (_silenced if silent else self.record)(self, operands, result)
        return result

    def program(self) -> Program:
        """What the kernel computes, of primitives."""
        return self.op.expand([TensorType(t.shape, t.dtype.name) for t in self.types], self.attributes).program

    def _single(self, compiled: NativeKernel) -> Callable[..., Any]:
        if compiled.code is not None:
            native.learn_program(self, compiled.code)
        return self.guarded(lambda *arrays: compiled(arrays)[0])

    def guarded(self, kernel: Callable[..., Any], numbers: Sequence[Any] | None = None) -> Callable[..., Any]:
        """A kernel between looks at its indices and values, where the operator has any; those at ``numbers`` (None
        where a tensor is) are not taken again."""
        op, attributes = self.op, self.attributes
        unbounded = op.bounds is None and op.own_bounds is None
        if unbounded and value_checks.looks_at_constants(op, numbers or (None,) * len(self.types), attributes):
            return kernel
        run = value_checks.guarded(op, lambda arrays, _: kernel(*arrays))
        return lambda *arrays: run(arrays, attributes)

    def _replace(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel


def forget() -> None:
    """Drop all plans and routes: something that they were made with has changed."""
    for op in OPERATORS.values():
        op.plans.clear()
        op.routes.clear()
        op.pairs.clear()
        op.kernels.clear()
        op.beneath.clear()
    tiering.forget()
    native.forget()


default_listeners.append(forget)


def route_of(
    op: Operator, operands: Sequence[Any], attributes: dict[str, Any], result: Any, asked: Any
) -> Route | None:
    """The route for applications like this one, which gave ``result``; None where there is no short way. ``asked`` are
    the arguments of the call, None where native code shall not find it."""
    if op.opaque or type(result) is not Tensor or not is_repeatable(op, operands, (result,)):
        return None
    if op.random:
        operands, attributes = (*operands, any_state()), dispatch.drawing(attributes, 0)
    plan = (dispatch.new_plan if op.random else dispatch.plan_for)(op, operands, attributes)
    reading = None if asked is None else native.read(*asked)
    return Route(op, [type_of(x) for x in operands], attributes, plan, result.payload.array_type, reading)


def _layered(op: Operator, operands: tuple[Any, ...], layers: Sequence[dispatch.Interpreter]) -> Any:
    """Apply ``op``, which has no attributes, under layers; :func:`general` leaves the routes that are found here."""
    if len(layers) > 1 or not layers[0].stays:
        return dispatch.call(op, operands, NO_ATTRIBUTES)
    try:
        shortcut = op.routes.get(tuple([x.payload.array_type if type(x) is Tensor else type(x) for x in operands]))
    except AttributeError:  # a payload that is no plain array
        shortcut = None
    if shortcut is None or type(shortcut) is Route:
        return general(op, operands, NO_KEYWORDS)
    return shortcut(operands, not context().grad_enabled)


# Operators of one or two tensors and nothing else


def unary(op: Operator) -> Callable[[Tensor], Any]:
    """The entry of ``op``, which has no attributes, for one tensor."""
    routes: dict[ArrayType, Route] = op.pairs

    def first(x: Tensor) -> Any:
        result = op.applied((x,), NO_ATTRIBUTES)
        route = route_of(op, (x,), NO_ATTRIBUTES, result, ((x,), NO_KEYWORDS))
        if route is not None and route.dtypes is None:
            if len(routes) >= KEPT:
                routes.clear()
            routes[x.payload.array_type] = route
        return result

    def entry(x: Tensor) -> Any:
        silent = False
        if AMBIENT.word:
            ambient = context()
            if ambient.layers:
                return _layered(op, (x,), ambient.layers)
            silent = not ambient.grad_enabled
        given = x.payload
        try:
            route = routes[given.array_type]
        except (KeyError, AttributeError):
            return first(x)
        array = route.kernel(given.ndarray)
        if type(array) is _ndarray and array.base is None and array is not given.ndarray:
            payload = _new(Strided)
            payload.ndarray = array
            payload._storage = None
            payload.array_type = known = route.result
            payload.dtype = known.dtype
            payload.shape = known.shape
            payload.ndim = known.ndim
        else:
            payload = dispatch.payload_of(op, (x,), array)
        result = _new(Tensor)
        result.payload = payload
        result._node = None
        result._walls = x._walls
        result.stop_gradient = True
        if not x.stop_gradient:
            (_silenced if silent else route.record)(route, (x,), result)
        return result

    return entry


def binary(op: Operator, otherwise: Callable[[Tensor, Any], Any]) -> Callable[[Tensor, Any], Any]:
    """The entry of ``op``, which has no attributes, for a tensor and another one or a number; ``otherwise`` takes any
    other second operand."""
    if getattr(op.kernel, "ufunc", None) is None:
        return lambda x, y: general(op, (x, y), NO_KEYWORDS) if _is_operand(y) else otherwise(x, y)
    return _binary_elementwise(op, otherwise)


def _binary_elementwise(op: Operator, otherwise: Callable[[Tensor, Any], Any]) -> Callable[[Tensor, Any], Any]:
    """Everything is in one function: this is what an ``x + y`` costs."""
    pairs: dict[Any, dict[Any, Route]] = op.pairs

    def first(x: Tensor, y: Any) -> Any:
        result = op.applied((x, y), NO_ATTRIBUTES)
        route = _elementwise(op, (x, y), result)
        if route is not None:
            by_type = pairs.setdefault(x.payload.array_type, {})
            if len(pairs) > KEPT or len(by_type) > KEPT:
                pairs.clear()
            by_type[type_of(y)] = route
            native.learn(route)
        return result

    def entry(x: Tensor, y: Any) -> Any:
        kind = type(y)
        if kind is not Tensor and kind not in NUMBERS:
            return otherwise(x, y)
        silent = False
        if AMBIENT.word:
            ambient = context()
            if ambient.layers:
                return _layered(op, (x, y), ambient.layers)
            silent = not ambient.grad_enabled
        left = x.payload
        try:
            if kind is Tensor:
                right = y.payload
                route = pairs[left.array_type][right.array_type]
                right = right.ndarray
                kernel = route.kernel
            else:
                route = pairs[left.array_type][kind]
                right, values = _array(y, route.dtypes), route.values
                kernel = route.kernel if values is None else values.kernel((x, y), (x, y), NO_KEYWORDS)
        except (KeyError, AttributeError):
            return first(x, y)
        payload = _new(Strided)
        try:
            payload.ndarray = shared_run(kernel, left.ndarray, right)
        except RuntimeError:  # another thread is in it
            payload.ndarray = quiet.run(kernel, left.ndarray, right)
        payload._storage = None
        payload.array_type = known = route.result
        payload.dtype = known.dtype
        payload.shape = known.shape
        payload.ndim = known.ndim
        result = _new(Tensor)
        result.payload = payload
        result._node = None
        result._walls = x._walls if kind is not Tensor or y._walls is None else joined(x._walls, y._walls)
        result.stop_gradient = True
        if not (x.stop_gradient and (kind is not Tensor or y.stop_gradient)):
            (_silenced if silent else route.record)(route, (x, y), result)
        return result

    return entry


def _is_operand(y: Any) -> bool:
    return type(y) is Tensor or type(y) in NUMBERS


def _elementwise(op: Operator, operands: tuple[Any, Any], result: Any) -> Route | None:
    """The route of a binary entry: a numpy function for a tensor and what is of its dtype, or becomes so."""
    ufunc = getattr(op.kernel, "ufunc", None)
    if ufunc is None or type(result) is not Tensor or type(result.payload) is not Strided:
        return None
    x, y = operands
    if type(y) is Tensor and x.payload.dtype is not y.payload.dtype:
        return None
    route = route_of(op, operands, NO_ATTRIBUTES, result, (operands, NO_KEYWORDS))
    if route is None or (route.dtypes is not None and (route.dtypes[0] is not None or type(y) is Tensor)):
        return None
    route.dtypes = route.dtypes and route.dtypes[1]
    if op.name in native.KERNELS:
        route.values = None  # numbers are data of these
    kernel: Any = ufunc if route.result.ndim else op.kernel  # for 0-D, numpy gives scalars
    if type(route.kernel) is Counted and route.place is None:
        route.kernel.kernel = kernel
    else:
        route.kernel = kernel
    return route


def _silenced(route: Route, operands: Sequence[Any], result: Tensor) -> None:
    """A block that records nothing lets no gradient pass."""
    result._walls = silenced(result._walls)


def _nothing_recorded(route: Route, operands: Sequence[Any], result: Tensor) -> None:
    """Constants, and results that are no floating numbers, have no gradient."""
    if any([type(x) is Tensor and not x.stop_gradient and x.payload.array_type.differentiable for x in operands]):
        note_walls(route.op, operands, (result,))


def _record_first(route: Route, operands: Sequence[Any], result: Tensor) -> None:
    """Find the recorder, which is loaded with the first tensor that wants gradients."""
    recorder = dispatch.active_recorder()
    if recorder is None:
        _record_generally(route, operands, result)
    else:
        if route.record is _record_first:
            route.record = recorder.record_route
        recorder.record_route(route, operands, result)


def _record_mixed(route: Route, operands: Sequence[Any], result: Tensor) -> None:
    """Some operands are integers, which have no gradient even where they are said to want one."""
    mixed = any([type(x) is Tensor and not (x.stop_gradient or x.payload.array_type.differentiable) for x in operands])
    (_record_generally if mixed else _record_first)(route, operands, result)


def _record_generally(route: Route, operands: Sequence[Any], result: Tensor) -> None:
    dispatch.record_results(route.op, operands, route.attributes, (result,))


# Any call of an operator


def general(
    op: Operator,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asked: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
) -> Any:
    """Call ``op``: by the route of an earlier call that looked the same, else the long way. ``asked`` are arguments as
    the user gave them, by which native code finds the same again, where they are others."""
    silent = False
    if AMBIENT.word:
        ambient = context()
        layers = ambient.layers
        if layers and (len(layers) > 1 or not layers[0].stays):
            return op.long_call(args, kwargs)
        silent = not ambient.grad_enabled
    operands: list[Any] = []
    key = call_key(op, args, kwargs, operands)
    if key is None:
        return _keyless(op, args, kwargs, asked)
    route = op.routes.get(key)
    if type(route) is not Route:
        return _first(op, args, kwargs, key, asked) if route is None else route(operands, silent)
    if route.draws:
        operands.append(dispatch.fresh_draw(context().generator))
    arrays = [x.payload.ndarray if type(x) is Tensor else x for x in operands]
    kernel = route.kernel
    if route.dtypes is not None:
        kernel, arrays = _converting(route, operands, arrays, asked or (args, kwargs))
    try:
        array = kernel(*arrays)
    except (ValueError, TypeError, IndexError):
        return op.long_call(args, kwargs)  # explains it
    if type(array) is _ndarray and array.base is None and not any([array is a for a in arrays]):
        payload = _new(Strided)
        payload.ndarray = array
        payload._storage = None
        payload.array_type = known = route.result
        payload.dtype = known.dtype
        payload.shape = known.shape
        payload.ndim = known.ndim
    else:
        payload = dispatch.payload_of(op, operands, array)
    result = _new(Tensor)
    result.payload = payload
    result._node = None
    result._walls = walls_of(operands)
    result.stop_gradient = True
    for x in operands:
        if type(x) is Tensor and not x.stop_gradient:
            (_silenced if silent else route.record)(route, operands, result)
            break
    return result


def _keyless(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], asked: Any) -> Any:
    """A call that no key tells apart: with tensors in a row where a list of them is taken, or in another form."""
    in_list = op.signature.gathered(args) if op.signature.lists else args
    if in_list is not args:
        return general(op, in_list, kwargs, asked or (args, kwargs))
    return op.long_call(args, kwargs) if op.form is None else _rewritten(op, args, kwargs, op.long_call)


def _converting(route: Route, operands: Sequence[Any], arrays: Sequence[Any], asked: Any) -> Any:
    """What computes a call with numbers among its operands, or such as become another dtype; and what it takes."""
    arrays = [a if d is None else np.asarray(a, d) for a, d in zip(arrays, route.dtypes or (), strict=True)]
    values = route.values
    return (route.kernel if values is None else values.kernel(operands, *asked)), arrays


def _first(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any, asked: Any) -> Any:
    """The long way; a route is left where the key tells operands and attributes of the call apart."""
    if op.form is not None and asked is None:
        return _rewritten(op, args, kwargs, lambda args, kwargs: _bound(op, args, kwargs, key, None))
    return _bound(op, args, kwargs, key, asked)


def _rewritten(
    op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], otherwise: Callable[[Any, Any], Any]
) -> Any:
    """The call of ``op`` that is meant by another form of it; native code learns it as it was written."""
    meant = op.form(op, args, kwargs)  # type: ignore[misc]
    if meant is None:
        return otherwise(args, kwargs)
    if meant[0] is not op:
        return meant[0](*meant[1], **meant[2])
    return general(op, meant[1], meant[2], (args, kwargs))


def _bound(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any, asked: Any) -> Any:
    operands, attributes = op.signature.bind(args, kwargs)
    result = op.applied(operands, attributes)
    route = route_of(op, operands, attributes, result, asked or (args, kwargs))
    found = (
        route
        or _shortcut(op, operands, attributes)
        or repeated_of(op, operands, attributes, result, asked or (args, kwargs))
    )
    if found is not None:
        if len(op.routes) >= KEPT:
            op.routes.clear()
        op.routes[key] = found
    if route is not None:
        native.learn(route)
    return result


def repeated_of(
    op: Operator, operands: Sequence[Any], attributes: dict[str, Any], result: Any, asked: Any
) -> Repeated | None:
    if op.opaque or type(result) is not tuple or not is_repeatable(op, operands, result):
        return None
    return Repeated(op, operands, attributes, result, None if asked is None else native.read(*asked))


def _shortcut(
    op: Operator, operands: Sequence[Any], attributes: dict[str, Any]
) -> Callable[[Sequence[Any], bool], Any] | None:
    """The short way of the layer that stays, where that is the only one, for operands that are no plain arrays."""
    layers = tuple(context().layers) if AMBIENT.word else ()
    if len(layers) != 1 or op.random or op.opaque:
        return None
    if all(type(x) is not Tensor or type(x.payload) is Strided for x in operands):
        return None
    found: Callable[[Sequence[Any], bool], Any] | None = layers[0].shortcut(op, operands, attributes)
    return found


Operator.route = staticmethod(general)  # type: ignore[method-assign]
Operator.unary = staticmethod(unary)  # type: ignore[method-assign]
Operator.binary = staticmethod(binary)  # type: ignore[method-assign]
