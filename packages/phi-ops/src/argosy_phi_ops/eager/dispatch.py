"""The one bind point: every application of an operator passes here.

:func:`bind` hands operator, operands and attributes to the innermost active layer (an :class:`Interpreter`: autocast,
SPMD, a tracer), which may continue to the layer below; at the bottom the kernel runner executes on arrays. With no
layer active nothing but the kernel runner is touched. Recording for gradients is a hook, not a layer: it runs after the
kernel when an operand wants gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from argosy_phi_ops import extension
from argosy_phi_ops.checks.memory_limits import check_attributes, check_program
from argosy_phi_ops.checks.value_checks import guarded
from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.declare import promotion
from argosy_phi_ops.declare.expansion import describe, inline_body
from argosy_phi_ops.declare.operator import Operator, attribute_key
from argosy_phi_ops.eager.gradient_blockers import note_walls, silenced, walls_of
from argosy_phi_ops.eager.kernel_choice import kernel_of
from argosy_phi_ops.eager.tiering import Counted, NativeKernel
from argosy_phi_ops.errors import OperatorError
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.rng import Generator
from argosy_tensorcore.storage import Strided
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "Interpreter", "Plan", "Recorder", "active_recorder", "bind", "call", "deliver", "drawing", "fresh_draw",
    "is_unwatched", "layer",
    "new_plan", "payload_of", "plan_for", "rebind", "record_results", "recording", "set_recorder", "suspended", "write",
]  # fmt: skip

_wrap = Tensor._wrap


class Interpreter:
    """One layer of the stack. Override what the layer changes; ``below`` continues with the next layer down.

    ``stays`` marks a layer that knows how to compute on payloads of its own (distributed tensors): it belongs at the
    bottom of the stack, and :func:`suspended` keeps it. Its payloads have an ``array_type``, too: an object of the
    layer's own that tells them apart as :class:`~argosy_tensorcore.storage.ArrayType` does arrays.
    """

    stays = False

    def process(
        self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]
    ) -> Any:
        """Apply ``op``; the default passes on."""
        return below(op, operands, attributes)

    def shortcut(
        self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any]
    ) -> Callable[[Sequence[Any], bool], Any] | None:
        """For a layer that stays: a function that applies ``op`` with these attributes to operands of the same types
        as these, while no other layer is active. Its second argument says that nothing is recorded. None: no such way.
        """
        return None

    def write(self, target: Tensor, value: Tensor, below: Callable[..., None]) -> None:
        """Overwrite the data of ``target`` with ``value``; the default passes on."""
        below(target, value)

    def has_written(self, x: Tensor) -> bool:
        """Whether ``x``, which is concrete, stands for other values here."""
        return False

    def reads(self, x: Tensor) -> None:
        """The values of the concrete ``x`` become attributes of what is applied (a mask does so)."""

    def draw(self, generator: Generator) -> tuple[Tensor, int] | None:
        """The random state and counter of a fresh draw; None leaves it to the layers below."""
        return None


class Recorder:
    """What a gradient recorder offers (autograd's tape installs one)."""

    def record(
        self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any], results: Sequence[Tensor]
    ) -> None:
        """Note that ``results`` came from ``operands``; called only when some operand wants gradients."""
        raise NotImplementedError

    def rebind(self, target: Tensor, value: Tensor) -> None:
        """``target`` now holds ``value``: its history becomes that of ``value``."""
        raise NotImplementedError

    def record_route(self, route: Any, operands: Sequence[Any], result: Tensor) -> None:
        """Like :meth:`record`, also marking ``result`` as wanting gradients, for an application that looks like an
        earlier one. ``route`` is a `eager.routes.Route`; what was worked out at the first application
        may stay in its ``recipes``."""
        result.stop_gradient = False
        self.record(route.op, operands, route.attributes, (result,))

    def record_repeated(self, repeated: Any, operands: Sequence[Any], results: Sequence[Tensor]) -> None:
        """Like :meth:`record`, for several results of an application that looks like an earlier one. ``repeated`` is a
        :class:`argosy_phi_ops.eager.repeated.Repeated`, which has ``recipes``, too."""
        self.record(repeated.op, operands, repeated.attributes, results)


_recorder: Recorder | None = None


def set_recorder(recorder: Recorder | None) -> None:
    """Install autograd's recorder; None uninstalls it."""
    global _recorder
    _recorder = recorder


def active_recorder() -> Recorder | None:
    """The installed recorder, or the one that autograd registered, which is loaded now."""
    if _recorder is None and (source := extension.recorder_source()):
        set_recorder(extension.load(source))
    return _recorder


def call(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Apply ``op`` to bound operands: IR values inline its body, tensors go through :func:`bind`."""
    for x in operands:
        if type(x) is not Tensor and isinstance(x, Value):
            return inline_body(op, operands, attributes)
    if op.random:
        operands, attributes = _with_randomness(op, operands, attributes)
    return bind(op, operands, attributes)


def bind(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Apply ``op`` to ``operands`` (tensors and Python numbers) through the active layers."""
    if AMBIENT.word:
        layers = tuple(context().layers)  # one that stays may go in the middle, with the last tensor it is for
        if layers:
            return _descend(layers, len(layers) - 1, op, operands, attributes)
    return run_kernel(op, operands, attributes)


def _descend(layers: Sequence[Any], at: int, op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    if at < 0:
        return op.settled(op, operands, attributes)

    def below(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
        return _descend(layers, at - 1, op, operands, attributes)

    return layers[at].process(op, operands, attributes, below)


def is_unwatched(x: Tensor) -> bool:
    """Whether data can be overwritten with nobody to be told: no layer is active, nothing is or was recorded."""
    return not AMBIENT.word and x.stop_gradient and x._node is None and type(x.payload) is Strided


def write(target: Tensor, value: Tensor) -> None:
    """Overwrite ``target`` with ``value`` (equal shapes) in place, through the active layers.

    Raises ``ValueError`` when ``target`` is a leaf that wants gradients and recording is on.
    """
    if is_unwatched(target) and is_unwatched(value) and target.payload.array_type is value.payload.array_type:
        target.payload.ndarray[...] = value.payload.ndarray
        target.payload.bump_version()
        return
    _check_writable(target)
    unsized = target.payload.is_traced and target.payload.selected  # its tracer looks at that
    if not unsized and tuple(target.payload.shape) != tuple(value.payload.shape):
        raise ValueError(
            f"an in-place operation cannot change the shape: argument 'x' is {list(target.payload.shape)}, "
            f"the result got {list(value.payload.shape)}"
        )
    layers = tuple(context().layers) if AMBIENT.word else ()
    _descend_write(layers, len(layers) - 1, target, value)


def deliver(op: Operator, results: Any, out: Any) -> Any:
    """Put ``results`` in the tensor ``out`` (a tuple of tensors for several results), and return ``out``.

    ``out`` takes the results' shape and dtype, as in Paddle; of equal ones its memory is written. Raises
    :class:`OperatorError` when ``out`` is something else.
    """
    targets = tuple(out) if isinstance(out, (list, tuple)) else (out,)
    values = results if isinstance(results, tuple) else (results,)
    if len(targets) != len(values) or any(type(t) is not Tensor for t in targets):
        kinds = [type(t).__name__ for t in targets]
        raise OperatorError(f"{op.name}: out should hold a Tensor for each of {len(values)} results, got {kinds}")
    for target, value in zip(targets, values, strict=True):
        alike = tuple(target.payload.shape) == tuple(value.payload.shape) and target.dtype is value.dtype
        (write if alike else rebind)(target, value)
    return out


def recording() -> bool:
    """Whether gradients are recorded now."""
    return not AMBIENT.word or context().grad_enabled


def _check_writable(target: Tensor) -> None:
    if recording() and not target.stop_gradient and target._node is None and not target.payload.is_traced:
        raise ValueError(
            f"a leaf tensor that wants gradients ({target.name}) cannot be changed in place; use no_grad() or clone()"
        )


def rebind(target: Tensor, view: Tensor) -> None:
    """Let ``target`` be what ``view``, a view of it, is: the in-place form of operators that only change the shape.

    Raises ``ValueError`` as :func:`write`, ``NotImplementedError`` for a state of the program being captured.
    """
    _check_writable(target)
    if view.payload.is_traced and not target.payload.is_traced:
        raise NotImplementedError(f"changing the shape of state {target.name} in place while capturing")
    target.payload, target._walls = view.payload, view._walls
    if type(view.payload) is not Strided and not view.payload.is_traced:
        view.payload.is_copied_view = False  # nobody else shows these elements
    if _recorder is not None and (view._node is not None or target._node is not None):
        _recorder.rebind(target, view)
    target.stop_gradient = view.stop_gradient


def _descend_write(layers: Sequence[Any], at: int, target: Tensor, value: Tensor) -> None:
    if at < 0:
        _write_data(target, value)
    else:
        layers[at].write(target, value, lambda t, v: _descend_write(layers, at - 1, t, v))


def _write_data(target: Tensor, value: Tensor) -> None:
    payload = target.payload
    if payload.dtype is value.payload.dtype:
        payload.ndarray[...] = value.payload.ndarray
        payload.bump_version()
    else:
        target.payload = value.payload
    if _recorder is not None and (value._node is not None or target._node is not None):
        _recorder.rebind(target, value)
    if not value.stop_gradient:
        target.stop_gradient = False


@contextmanager
def layer(interpreter: Interpreter) -> Iterator[Interpreter]:
    """Push ``interpreter`` on the stack of this thread within the block."""
    layers = context().layers
    layers.append(interpreter)
    AMBIENT.word += 1
    try:
        yield interpreter
    finally:
        AMBIENT.word -= 1
        layers.remove(interpreter)


@contextmanager
def suspended() -> Iterator[None]:
    """Run eagerly within the block, whatever layers are active (for state made while capturing)."""
    layers = context().layers
    held = list(layers)
    layers[:] = [each for each in held if each.stays]
    try:
        yield
    finally:
        staying = [each for each in layers if each.stays]
        layers[:] = staying + [each for each in held if not each.stays]


# The kernel runner


class Plan:
    """How to run an operator on operands of given types: conversions, and a kernel on arrays.

    ``kernel`` takes the list of arrays and the attributes; ``positional``, where there is one, is the same function
    taking them as arguments.
    """

    __slots__ = ("dtypes", "kernel", "plain", "positional")

    def __init__(
        self, dtypes: tuple[Any, ...], kernel: Callable[..., Any], positional: Callable[..., Any] | None = None
    ) -> None:
        self.dtypes = dtypes
        self.kernel = kernel
        self.plain = not any(dtypes)
        self.positional = positional

    def on_arrays(self, attributes: dict[str, Any]) -> Callable[..., Any]:
        """The kernel with its attributes filled in, as a function of arrays."""
        if self.positional is not None:
            return partial(self.positional, **attributes) if attributes else self.positional
        kernel = self.kernel
        return lambda *arrays: kernel(arrays, attributes)


def run_kernel(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Execute on the operands' arrays, wrap the results, and record when gradients are wanted."""
    plan = plan_for(op, operands, attributes)
    arrays = [x.payload.ndarray if type(x) is Tensor else x for x in operands]
    if not plan.plain:
        arrays = [a if d is None else np.asarray(a, d) for a, d in zip(arrays, plan.dtypes, strict=True)]
    if attributes and op.kernel is not None:
        check_attributes(op, arrays, attributes)
    kernel = _kernel(op, operands, attributes, plan) if plan.plain and not op.random else plan.kernel
    try:
        results = kernel(arrays, attributes)
    except (ValueError, TypeError, IndexError) as error:
        _explain(op, arrays, attributes, error)
        raise
    if type(results) is not tuple:
        result = _wrap(payload_of(op, operands, results))
        record_results(op, operands, attributes, (result,))
        return result
    wrapped = tuple(_wrap(payload_of(op, operands, array)) for array in results)
    record_results(op, operands, attributes, wrapped)
    return wrapped


def _kernel(op: Operator, operands: Sequence[Any], attributes: dict[str, Any], plan: Plan) -> Callable[..., Any]:
    """What computes these operands, which need no conversion: the kernel that routes choose, too."""
    try:
        types = tuple([x.payload.array_type if type(x) is Tensor else type(x) for x in operands])
        key = types, attribute_key(attributes)
        found = op.kernels.get(key)
    except (AttributeError, TypeError):  # a payload that is no plain array, attributes that are no plain data
        return plan.kernel
    if found is None:
        found = op.kernels[key] = kernel_of(op, types, attributes) or plan.kernel
    return found


def _explain(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any], error: Exception) -> None:
    """Raise what the operator's body says of these operands, when it refuses them: it names them and what it
    expects.
    """
    if isinstance(error, OperatorError) or op.opaque:
        return
    types = [TensorType(np.shape(a), as_dtype(np.asarray(a).dtype).name) for a in arrays]
    try:
        op.expand(types, attributes)
    except OperatorError as better:
        raise better from None


def payload_of(op: Operator, operands: Sequence[Any], array: Any) -> Strided:
    if type(array) is not np.ndarray:
        array = np.asarray(array)
    for x in operands:
        if type(x) is Tensor:
            given = x.payload.ndarray
            base = array.base
            if array is given or (
                base is not None and (base is given or base is given.base or np.may_share_memory(array, given))
            ):
                if op.view and x is operands[0] and array.flags.writeable:
                    view: Strided = x.payload.share(array)
                    return view
                return Strided(array.copy())  # only declared views may share memory
    return Strided.from_array(array) if array.base is not None else Strided(array)


def record_results(
    op: Operator, operands: Sequence[Any], attributes: dict[str, Any], results: Sequence[Tensor]
) -> None:
    """Mark ``results`` as wanting gradients and hand the application to the recorder, where an operand wants them.

    For the kernel runner and for layers that compute results themselves.
    """
    walls = walls_of(operands)
    if walls is not None:
        for result in results:
            result._walls = walls
    for x in operands:
        if type(x) is Tensor and not x.stop_gradient:
            break
    else:
        return
    if AMBIENT.word and not context().grad_enabled:
        for result in results:
            result._walls = silenced(walls)
        return
    moving = [] if op.constant else [result for result in results if result.payload.dtype.kind in "fc"]
    for result in moving:
        result.stop_gradient = False
    if len(moving) < len(results):
        note_walls(op, operands, results)
    recorder = _recorder or active_recorder()
    if moving and recorder is not None:
        recorder.record(op, operands, attributes, results)


def plan_for(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Plan:
    if op.kernel is not None and not op.random:  # random operators are compiled, for the sizes they are given
        key: Any = tuple([(x.payload.dtype, x.payload.ndim > 0) if type(x) is Tensor else type(x) for x in operands])
    else:
        key = (
            tuple([(x.payload.dtype, x.payload.shape) if type(x) is Tensor else (type(x), x) for x in operands]),
            attribute_key(attributes),
        )
    plan: Plan | None = op.plans.get(key)
    if plan is None:
        plan = new_plan(op, operands, attributes)
        if op.random:
            plan = _counted(op, key, plan, operands, attributes)
        op.plans[key] = plan
    return plan


def new_plan(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Plan:
    """A plan that nobody counts the calls of."""
    plan = _make_plan(op, operands, attributes)
    return plan if op.bounds is None and op.refusal is None else Plan(plan.dtypes, guarded(op, plan.kernel))


def _counted(op: Operator, key: Any, plan: Plan, operands: Sequence[Any], attributes: dict[str, Any]) -> Plan:
    """``plan`` until it is hot, for applications of random operators without a route, which would count them."""
    types = [
        TensorType(tuple(np.shape(_array(x))), as_dtype(_array(x).dtype if d is None else d).name)
        for x, d in zip(operands, plan.dtypes, strict=True)
        if type(x) is Tensor
    ]
    if len(types) < len(operands):
        return plan
    counted = Counted(
        plan.kernel,
        lambda: op.expand(types, attributes).program,
        _adapted,
        lambda kernel: op.plans.update({key: Plan(plan.dtypes, kernel)}),
    )
    return Plan(plan.dtypes, counted)


def _adapted(native: NativeKernel) -> Callable[..., Any]:
    def run(arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
        results = native(arrays)
        return results[0] if len(results) == 1 else tuple(results)

    return run


def _make_plan(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Plan:
    described = [describe(x.payload if type(x) is Tensor else x) for x in operands]
    targets = promotion.promote(op.promote, op.name, described)
    dtypes = tuple(
        None if dtype == old else as_dtype(dtype).numpy for dtype, (old, _) in zip(targets, described, strict=True)
    )
    if op.kernel is not None:
        return Plan(dtypes, *_direct(op))
    types = [TensorType(tuple(np.shape(_array(x))), dtype) for x, dtype in zip(operands, targets, strict=True)]
    expansion = op.expand(types, attributes)
    if not op.view:
        check_program(op.name, expansion.program)
    from argosy_phi_ops.reference.interpreter import prepare
    from argosy_phi_ops.reference.straight import StraightLine

    run = prepare(expansion.runs)
    if expansion.bare:
        line = getattr(run, "__self__", None)
        single = line.single if type(line) is StraightLine else None
        return Plan(dtypes, lambda arrays, _: run(arrays)[0], single and (lambda *arrays, **_: single(*arrays)))
    return Plan(dtypes, lambda arrays, _: tuple(run(arrays)))


def _array(x: Any) -> Any:
    return x.payload.ndarray if type(x) is Tensor else x


def _direct(op: Operator) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """The operator's own kernel: of a list of arrays and attributes, and where it can be of arguments."""
    kernel, signature = op.kernel, op.signature
    assert kernel is not None
    names = [p.name for p in signature.operands]
    body = op.body.__code__
    leading = body.co_varnames[: len(names)] == tuple(names)
    if not signature.segmented and leading and body.co_kwonlyargcount == 0:
        return lambda arrays, attributes: kernel(*arrays, **attributes), kernel
    return lambda arrays, attributes: kernel(**signature.regroup(arrays, attributes)), None


def _with_randomness(
    op: Operator, operands: Sequence[Any], attributes: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Fill in the random state (the last operand, declared ``rng: Tensor | None = None``) and the draw's counter."""
    ambient = context()
    for interpreter in reversed(ambient.layers):
        drawn = interpreter.draw(ambient.generator)
        if drawn is not None:
            break
    else:
        drawn = fresh_draw(ambient.generator), 0
    rng, counter = drawn
    return (*operands, rng), drawing(attributes, counter)


def fresh_draw(generator: Generator) -> Tensor:
    """The state of a draw, which the generator counts."""
    return _wrap(Strided(np.array(generator.draw(), np.uint64)))


def drawing(attributes: dict[str, Any], counter: int) -> dict[str, Any]:
    """The attributes of a random operator that has been given a state, its last operand."""
    return {**attributes, "counter": counter, "segments": (*attributes["segments"][:-1], 1)}


Operator.apply = staticmethod(call)  # type: ignore[method-assign]
Operator.deliver = staticmethod(deliver)  # type: ignore[method-assign]
