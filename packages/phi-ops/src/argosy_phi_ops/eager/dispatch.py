"""The one bind point: every application of an operator passes here.

:func:`bind` hands operator, operands and attributes to the innermost active layer (an :class:`Interpreter`: autocast,
SPMD, a tracer), which may continue to the layer below; at the bottom the application to these operands is found and
run (`eager.table`). With no layer active nothing else is touched. Writes in place go through the layers, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.declare.expansion import inline_body
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.eager import table
from argosy_phi_ops.eager.placement import copy_elements
from argosy_phi_ops.eager.recording import installed_recorder
from argosy_phi_ops.errors import OperatorError
from argosy_pir.values import Value
from argosy_tensorcore.rng import Generator
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "Interpreter", "bind", "call", "deliver", "draw_attributes", "fresh_draw", "is_recording", "is_unwatched", "layer",
    "rebind", "suspend_layers", "write",
]  # fmt: skip

_wrap = Tensor._wrap


class Interpreter:
    """One layer of the stack. Override what the layer changes; ``below`` continues with the next layer down.

    ``stays`` marks a layer that belongs at the bottom of the stack, and that :func:`suspended` keeps. ``keyed``: it
    stays, and computes on payloads of its own alone (distributed tensors), which have an ``array_type``, too: an object
    of the layer's own that tells them apart as :class:`~argosy_tensorcore.storage.ArrayType` does arrays.
    ``applies_to_building``: it is active in contexts of compilers and passes, too (`context.own_context`).
    """

    stays = keyed = applies_to_building = False

    def process(
        self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]
    ) -> Any:
        """Apply ``op``; the default passes on."""
        return below(op, operands, attributes)

    def application(self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
        """For a keyed layer: what applies ``op`` with these attributes to operands of the same types as these, as
        an :class:`~argosy_phi_ops.eager.application.Application` does by its method ``run``, while no other layer is
        active. None: there is nothing that could be kept."""
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
    return table.apply(op, operands, attributes)


def _descend(layers: Sequence[Any], at: int, op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    if at < 0:
        return table.apply(op, operands, attributes)

    def dispatch_below(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
        return _descend(layers, at - 1, op, operands, attributes)

    return layers[at].process(op, operands, attributes, dispatch_below)


def is_unwatched(x: Tensor) -> bool:
    """Whether data can be overwritten with nobody to be told: no layer is active, nothing is or was recorded."""
    return not AMBIENT.word and x.stop_gradient and x._node is None and type(x.payload) is StridedArray


def write(target: Tensor, value: Tensor) -> None:
    """Overwrite ``target`` with ``value`` (equal shapes) in place, through the active layers.

    Raises ``ValueError`` when ``target`` is a leaf that wants gradients and recording is on.
    """
    if is_unwatched(target) and is_unwatched(value) and target.payload.array_type is value.payload.array_type:
        try:
            target.payload.ndarray[...] = value.payload.ndarray
        except BufferError:  # the host cannot see it
            copy_elements(target.payload, value.payload)
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


def is_recording() -> bool:
    """Whether gradients are recorded now."""
    return not AMBIENT.word or context().grad_enabled


def _check_writable(target: Tensor) -> None:
    if is_recording() and not target.stop_gradient and target._node is None and not target.payload.is_traced:
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
    target.payload, target._gradient_blockers = view.payload, view._gradient_blockers
    recorder = installed_recorder()
    if recorder is not None and (view._node is not None or target._node is not None):
        recorder.rebind(target, view)
    target.stop_gradient = view.stop_gradient


def _descend_write(layers: Sequence[Any], at: int, target: Tensor, value: Tensor) -> None:
    if at < 0:
        _write_data(target, value)
    else:
        layers[at].write(target, value, lambda t, v: _descend_write(layers, at - 1, t, v))


def _write_data(target: Tensor, value: Tensor) -> None:
    payload = target.payload
    if payload.dtype is value.payload.dtype:
        try:
            payload.ndarray[...] = value.payload.ndarray
        except BufferError:  # the host cannot see it
            copy_elements(payload, value.payload)
        payload.bump_version()
    else:
        target.payload = value.payload
    recorder = installed_recorder()
    if recorder is not None and (value._node is not None or target._node is not None):
        recorder.rebind(target, value)
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
def suspend_layers() -> Iterator[None]:
    """Run eagerly within the block, whatever layers are active (for state made while capturing)."""
    layers = context().layers
    held = list(layers)
    layers[:] = [each for each in held if each.stays]
    try:
        yield
    finally:
        staying = [each for each in layers if each.stays]
        layers[:] = staying + [each for each in held if not each.stays]


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
    return (*operands, rng), draw_attributes(attributes, counter)


def fresh_draw(generator: Generator) -> Tensor:
    """The state of a draw, which the generator counts."""
    return _wrap(StridedArray(np.array(generator.draw(), np.uint64)))


def draw_attributes(attributes: dict[str, Any], counter: int) -> dict[str, Any]:
    """The attributes of a random operator that has been given a state, its last operand."""
    return {**attributes, "counter": counter, "segments": (*attributes["segments"][:-1], 1)}
