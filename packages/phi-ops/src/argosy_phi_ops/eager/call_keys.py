"""What calls of an operator have in common that bind alike and run the same kernel."""

from __future__ import annotations

from typing import Any

from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.declare.signature import LIST, OPERAND, OPTIONAL
from argosy_tensorcore.dtype import DType
from argosy_tensorcore.tensor import Tensor

__all__ = ["NUMBERS", "call_key"]

NUMBERS = frozenset({int, float, bool, complex})
_NONE: Any = type(None)
_PLAIN = frozenset({int, bool, str, _NONE, DType})


def call_key(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], operands: list[Any]) -> Any:
    """What calls have in common that bind alike and run the same kernel: types of tensors and of numbers in their
    place, attributes by value. ``operands`` receives them in order. None when the call is out of the ordinary."""
    kinds = op.kinds
    if len(args) > len(kinds):
        return None
    parts: list[Any] = []
    try:
        for x, place in zip(args, kinds, strict=False):
            kind = type(x)
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
        frozen = _frozen(x)
        if frozen is not None:
            parts.append(kind)
            parts.append(frozen)
            return True
    return False


def _frozen(items: Any) -> tuple[Any, ...] | None:
    """A sequence of integers, strings, None and such sequences as a tuple; None when it holds anything else."""
    made: list[Any] = []
    for item in items:
        kind = type(item)
        if kind is tuple or kind is list:
            item = _frozen(item)
            if item is None:
                return None
        elif kind is not int and kind is not str and item is not None:
            return None
        made.append(item)
    return tuple(made)
