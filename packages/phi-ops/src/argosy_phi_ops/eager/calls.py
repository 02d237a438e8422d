"""Calls of operators: arguments of users are bound, and the application that they stand for is found and run.

The first call that looks like this one (:func:`call_key`) goes the long way: its arguments are bound by the signature
and go through the layers (`eager.dispatch`) to the table of applications (`eager.table`), where the call's key is then
noted beside the application's. Whatever is out of the ordinary (layers, traced operands, attributes that are no plain
data) goes the long way every time; distributed tensors have applications that their layer gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.declare.signature import LIST, OPERAND, OPTIONAL
from argosy_phi_ops.eager import dispatch, native
from argosy_phi_ops.eager.application import NUMBERS, Application
from argosy_phi_ops.eager.results import any_state
from argosy_phi_ops.eager.table import application_key
from argosy_phi_ops.errors import FOREIGN
from argosy_tensorcore.dtype import DType
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["call", "call_key"]

_NONE: Any = type(None)
_PLAIN = frozenset({int, bool, str, _NONE, DType})


def call(
    op: Operator,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asked: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
) -> Any:
    """Call ``op``: by the application of an earlier call that looked the same, else the long way. ``asked`` are
    arguments as the user gave them, by which native code finds the same again, where they are others."""
    silent = False
    if AMBIENT.word:
        ambient = context()
        layers = ambient.layers
        if layers and (len(layers) > 1 or not layers[0].keyed):
            return _call_in_full(op, args, kwargs)
        silent = not ambient.grad_enabled
    operands: list[Any] = []
    key = call_key(op, args, kwargs, operands)
    if key is None:
        return _call_without_key(op, args, kwargs, asked)
    application = op.applications.by_key.get(key)
    if application is None:
        return _bind_first_call(op, args, kwargs, key, asked)
    if application.draws:
        operands.append(dispatch.fresh_draw(context().generator))
    try:
        constants = application.constants
        if constants is None or application.ufunc is not None:
            return application.run(operands, silent)
        return application.run(operands, silent, constants.kernel_for(operands, *(asked or (args, kwargs))))
    except FOREIGN as error:
        if isinstance(error, (ValueError, TypeError, IndexError)):
            application.explain(operands, error)
        given = operands[: len(operands) - application.draws]
        _annotate(op, given, application.attributes, error)
        raise


def _annotate(op: Operator, operands: Sequence[Any], attributes: dict[str, Any], error: Exception) -> None:
    """Raise what users are told in the place of an error of Python's insides: operator and argument by name."""
    better = import_module("argosy_phi_ops.checks.error_messages").explain_error(op, operands, attributes, error)
    if better is not None:
        raise better from error


def _call_without_key(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], asked: Any) -> Any:
    """A call that no key tells apart: with tensors in a row where a list of them is taken, or in another form."""
    in_list = op.signature.gather_list(args) if op.signature.lists else args
    if in_list is not args:
        return call(op, in_list, kwargs, asked or (args, kwargs))
    if op.form is None:
        return _call_in_full(op, args, kwargs)
    return _rewrite_call(op, args, kwargs, lambda args, kwargs: _call_in_full(op, args, kwargs))


def _bind_first_call(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any, asked: Any) -> Any:
    """The long way; the application is left where the key tells operands and attributes of the call apart."""
    if op.form is not None and asked is None:
        return _rewrite_call(op, args, kwargs, lambda args, kwargs: _bind(op, args, kwargs, key, (args, kwargs)))
    return _bind(op, args, kwargs, key, asked or (args, kwargs))


def _rewrite_call(
    op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], otherwise: Callable[[Any, Any], Any]
) -> Any:
    """The call of ``op`` that is meant by another form of it; native code learns it as it was written."""
    meant = op.form(op, args, kwargs)  # type: ignore[misc]
    if meant is None:
        return otherwise(args, kwargs)
    if meant[0] is not op:
        return meant[0](*meant[1], **meant[2])
    return call(op, meant[1], meant[2], (args, kwargs))


def _bind(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any, asked: Any) -> Any:
    operands, attributes = op.signature.bind(args, kwargs)
    result = _apply(op, operands, attributes)
    application = _layer_application(op, operands, attributes) or _application(op, operands, attributes)
    if application is not None:
        op.applications.keep(key, application)
        if type(application) is Application:
            application.read_as(native.read(*asked))
    return result


def _application(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """The application that these operands were given to just now, where it stays what it is."""
    if op.random:
        operands, attributes = (*operands, any_state()), dispatch.draw_attributes(attributes, 0)
    try:
        found = op.applications.by_key.get(application_key(operands, attributes))
    except (AttributeError, TypeError):  # a payload that is no plain array, attributes that are no plain data
        return None
    return found if getattr(found, "fixed", False) else None


def _layer_application(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """That of the layer that stays, where it is the only one, for operands that are no plain arrays."""
    layers = tuple(context().layers) if AMBIENT.word else ()
    if len(layers) != 1 or op.random or op.opaque:
        return None
    if all(type(x) is not Tensor or type(x.payload) is StridedArray for x in operands):
        return None
    return layers[0].application(op, operands, attributes)


def _call_in_full(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Bind ``args`` and ``kwargs`` in full generality and apply the operator."""
    if op.form is not None and (meant := op.form(op, args, kwargs)) is not None:
        return meant[0](*meant[1], **meant[2])
    if op.keywords and kwargs and not kwargs.keys().isdisjoint(op.keywords):
        return import_module("argosy_phi_ops.declare.keywords").call_with_keyword(op, args, kwargs)
    out = kwargs.pop("out", None) if kwargs else None
    if op.positional_out and len(args) > len(op.signature.parameters) and type(args[-1]) is Tensor:
        args, out = args[:-1], args[-1]
    operands, attributes = op.signature.bind(args, kwargs)
    result = _apply(op, operands, attributes)
    return result if out is None else dispatch.deliver(op, result, out)


def _apply(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Apply the operator to what :meth:`Signature.bind` gives; errors of Python's insides become
    :class:`OperatorError`, naming the operator and the argument."""
    try:
        return dispatch.call(op, operands, attributes)
    except FOREIGN as error:
        _annotate(op, operands, attributes, error)
        raise


# What calls have in common


def call_key(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], operands: list[Any]) -> Any:
    """What calls have in common that bind alike and run the same kernel: types of tensors and of numbers in their
    place, attributes by value. ``operands`` receives them in order. None when the call is out of the ordinary."""
    kinds = op.kinds
    if len(args) > len(kinds):
        return None
    parts: list[Any] = []
    try:
        for at, x in enumerate(args):  # cheaper than a zip
            place, kind = kinds[at], type(x)
            if kind is Tensor and (place is OPERAND or place is OPTIONAL):
                parts.append(x.payload.array_type)
                operands.append(x)
            elif place is None and kind in _PLAIN:
                parts.append(kind)
                parts.append(x)
            elif not _add_part(parts, operands, x, place):
                return None
        if not kwargs:
            return tuple(parts)
        last = len(args)
        for name, x in kwargs.items():
            at = op.places.get(name, -1)
            operand = kinds[at] is not None
            if at < (last if operand else len(args)):
                return None  # another name of a parameter, or operands out of order
            last = at + 1 if operand else last
            parts.append(name)
            if not _add_part(parts, operands, x, kinds[at]):
                return None
    except AttributeError:  # a payload that is no plain array
        return None
    return tuple(parts)


def _add_part(parts: list[Any], operands: list[Any], x: Any, place: str | None) -> bool:
    """Add what tells the argument ``x`` apart from others; False when nothing does."""
    kind = type(x)
    if place is None:
        return _add_attribute(parts, x, kind)
    if kind is Tensor and place is not LIST:
        parts.append(x.payload.array_type)
        operands.append(x)
        return True
    if kind in NUMBERS and place is not LIST:
        parts.append(kind)
        operands.append(x)
        return True
    if place is LIST and kind in (list, tuple) and all([type(item) is Tensor for item in x]):
        parts.append(tuple([item.payload.array_type for item in x]))
        operands.extend(x)
        return True
    if x is None and place is OPTIONAL:
        parts.append(_NONE)
        return True
    return False


def _add_attribute(parts: list[Any], x: Any, kind: type) -> bool:
    if kind in _PLAIN:
        parts.append(kind)
        parts.append(x)
        return True
    if kind is float and x == x:  # no NaN
        parts.append(kind)
        parts.append(x or repr(x))  # the zeros are equal, but differ by sign
        return True
    if kind in (list, tuple):
        frozen = _freeze(x)
        if frozen is not None:
            parts.append(kind)
            parts.append(frozen)
            return True
    return False


def _freeze(items: Any) -> tuple[Any, ...] | None:
    """A sequence of integers, strings, None and such sequences as a tuple; None when it holds anything else."""
    made: list[Any] = []
    for item in items:
        kind = type(item)
        if kind is tuple or kind is list:
            item = _freeze(item)
            if item is None:
                return None
        elif kind is not int and kind is not str and item is not None:
            return None
        made.append(item)
    return tuple(made)
