"""What operators' calls go to: an entry for those with nothing but one or two tensors, the general way for any other.

Entries are written out: they are what an ``x + y`` costs. They find the same applications, by types alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.declare.operator import NO_ATTRIBUTES, NO_KEYWORDS, Operator
from argosy_phi_ops.eager import dispatch
from argosy_phi_ops.eager.application import NUMBERS, Application
from argosy_phi_ops.eager.calls import call
from argosy_phi_ops.eager.creation import creation_scope
from argosy_phi_ops.eager.gradient_blockers import join_blockers
from argosy_phi_ops.eager.recording import block_silently
from argosy_phi_ops.eager.results import fresh_tensor, result_of
from argosy_phi_ops.eager.table import ApplicationTable
from argosy_phi_ops.reference.kernels.registry import quiet, shared_run
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["EVALUATOR", "Evaluator", "binary", "unary"]

_new = object.__new__
_ndarray = np.ndarray
_array = np.array
_OPERANDS = NUMBERS | {Tensor}


class Evaluator:
    """Eager execution, as operators know it: the composition root names it, see `extension.register_evaluator`."""

    def table(self, op: Operator) -> ApplicationTable:
        """A table for the applications of ``op``, with what its calls go to."""
        made = ApplicationTable()
        made.call = call
        if op.plain == 1:
            made.entry = made.method = unary(op, made)
        elif op.plain == 2:
            made.entry = binary(op, made, lambda x, y: call(op, (x, y), NO_KEYWORDS))
        else:
            made.entry = lambda *operands: call(op, operands, NO_KEYWORDS)
        return made

    def deliver(self, op: Any, results: Any, out: Any) -> Any:
        """See :func:`argosy_phi_ops.eager.dispatch.deliver`."""
        return dispatch.deliver(op, results, out)

    def create_on(self, device: Any, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call of ``op`` gives that makes new tensors on ``device``; None or a host device: on the host."""
        with creation_scope(device):
            return op(*args, **kwargs)


EVALUATOR = Evaluator()


def unary(op: Operator, table: ApplicationTable) -> Callable[[Tensor], Any]:
    """The entry of ``op``, which has no attributes, for one tensor."""
    by_types: dict[Any, Application] = table.by_types

    def first_call(x: Tensor) -> Any:
        result = call(op, (x,), NO_KEYWORDS)
        given = getattr(x.payload, "array_type", None)
        found = table.by_key.get((given,))
        if type(found) is Application and found.is_single:
            table.note_unary(given, found)
        return result

    def entry(x: Tensor) -> Any:
        silent = False
        if AMBIENT.word:
            ambient = context()
            if ambient.layers:
                return _apply_layers(op, (x,), ambient.layers)
            silent = not ambient.grad_enabled
        given = x.payload
        try:
            application = by_types[given.array_type]
        except (KeyError, AttributeError):
            return first_call(x)
        array = application.kernel(given.ndarray)
        if type(array) is _ndarray and array.base is None and array is not given.ndarray:
            result = fresh_tensor(array, application.result, x._gradient_blockers)  # type: ignore[arg-type]
        else:
            result = result_of(op, (x,), array)
            result._gradient_blockers = x._gradient_blockers
        if not x.stop_gradient:
            (block_silently if silent else application.record)(application, (x,), result)  # type: ignore[misc]
        return result

    return entry


def binary(op: Operator, table: Any, otherwise: Callable[[Tensor, Any], Any]) -> Callable[[Tensor, Any], Any]:
    """The entry of ``op``, which has no attributes, for a tensor and another one or a number; ``otherwise`` takes any
    other second operand."""
    if getattr(op.kernel, "ufunc", None) is None:
        return lambda x, y: call(op, (x, y), NO_KEYWORDS) if type(y) in _OPERANDS else otherwise(x, y)
    return _binary_elementwise(op, table, otherwise)


def _binary_elementwise(
    op: Operator, table: ApplicationTable, otherwise: Callable[[Tensor, Any], Any]
) -> Callable[[Tensor, Any], Any]:
    by_types: dict[Any, dict[Any, Application]] = table.by_types

    def first_call(x: Tensor, y: Any) -> Any:
        result = call(op, (x, y), NO_KEYWORDS)
        left = getattr(x.payload, "array_type", None)
        right = getattr(y.payload, "array_type", None) if type(y) is Tensor else type(y)
        found = table.by_key.get((left, right))
        if type(found) is Application and found.ufunc is not None:
            table.note_binary(left, right, found)
        return result

    def entry(x: Tensor, y: Any) -> Any:
        kind = type(y)
        if kind is not Tensor and kind not in NUMBERS:
            return otherwise(x, y)
        silent = False
        if AMBIENT.word:
            ambient = context()
            if ambient.layers:
                return _apply_layers(op, (x, y), ambient.layers)
            silent = not ambient.grad_enabled
        left = x.payload
        try:
            if kind is Tensor:
                right = y.payload
                application = by_types[left.array_type][right.array_type]
                right = right.ndarray
                kernel = application.ufunc
                blockers = (
                    x._gradient_blockers
                    if y._gradient_blockers is None
                    else join_blockers(x._gradient_blockers, y._gradient_blockers)
                )
                wanted = not (x.stop_gradient and y.stop_gradient)
            else:
                application = by_types[left.array_type][kind]
                right, constants = _array(y, application.dtypes[1]), application.constants  # type: ignore[index]
                kernel = application.ufunc if constants is None else constants.kernel_for((x, y), (x, y), NO_KEYWORDS)
                blockers, wanted = x._gradient_blockers, not x.stop_gradient
        except (KeyError, AttributeError):
            return first_call(x, y)
        try:
            array = shared_run(kernel, left.ndarray, right)
        except RuntimeError:  # another thread is in it
            array = quiet.run(kernel, left.ndarray, right)
        known: Any = application.result  # what `results.fresh` does: a call less
        payload = _new(StridedArray)
        payload.ndarray = array
        payload._storage = None
        payload.array_type = known
        payload.dtype = known.dtype
        payload.shape = known.shape
        payload.ndim = known.ndim
        result = _new(Tensor)
        result.payload = payload
        result._node = None
        result._gradient_blockers = blockers
        result.stop_gradient = True
        if wanted:
            (block_silently if silent else application.record)(application, (x, y), result)  # type: ignore[misc]
        return result

    return entry


def _apply_layers(op: Operator, operands: tuple[Any, ...], layers: Sequence[dispatch.Interpreter]) -> Any:
    """Apply ``op``, which has no attributes, under layers."""
    if len(layers) > 1 or not layers[0].keyed:
        return dispatch.call(op, operands, NO_ATTRIBUTES)
    return call(op, operands, NO_KEYWORDS)
