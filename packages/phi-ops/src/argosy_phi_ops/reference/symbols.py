"""Symbolic sizes at run time: bound from the shapes of actual inputs, then put in place of expressions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_phi_ops.errors import DTypeError, ShapeError
from argosy_pir.attributes import Attributes
from argosy_pir.dims import Dim, SymExpr
from argosy_pir.types import TensorType
from argosy_pir.values import BlockArgument

if TYPE_CHECKING:
    from argosy_pir.attributes import Attribute

Array = np.ndarray[Any, Any]
Symbols = dict[str, int]


def bind_symbols(arguments: Iterable[tuple[str, BlockArgument, Any]]) -> Symbols:
    """The value of every symbol in the types of (label, argument, actual array or payload).

    Raises:
        ShapeError: naming the argument whose rank or size does not fit its type, or another argument's.
        DTypeError: for another dtype.
    """
    symbols: Symbols = {}
    derived: list[tuple[str, TensorType, int, Any]] = []
    for label, argument, array in arguments:
        expected = argument.type
        if not isinstance(expected, TensorType):
            continue
        _check_kind(label, expected, array)
        for axis, (dim, size) in enumerate(zip(expected.shape, array.shape, strict=True)):
            name = str(dim) if isinstance(dim, SymExpr) and dim.symbols == {str(dim)} else ""
            if name:
                dim = symbols.setdefault(name, size)
            elif isinstance(dim, SymExpr):
                derived.append((label, expected, axis, array))
                continue
            if dim != size:
                raise ShapeError(_mismatch(label, expected, axis, array, dim))
    for label, expected, axis, array in derived:  # sizes that follow from symbols bound above
        size = evaluate_dim(expected.shape[axis], symbols)
        if size != array.shape[axis]:
            raise ShapeError(_mismatch(label, expected, axis, array, size))
    return symbols


def _check_kind(label: str, expected: TensorType, array: Any) -> None:
    if array.dtype.name != expected.dtype:
        raise DTypeError(f"{label} has dtype {array.dtype.name}, the program expects {expected}")
    if array.ndim != expected.ndim:
        raise ShapeError(f"{label} has shape {list(array.shape)}, the program expects {expected}")


def _mismatch(label: str, expected: TensorType, axis: int, array: Any, size: int) -> str:
    return f"{label} has shape {list(array.shape)}: axis {axis} of {expected} is {size} here, not {array.shape[axis]}"


def evaluate_dim(dim: Dim, symbols: Symbols) -> int:
    """`dim` as a number; raises ValueError naming symbols that no input bound."""
    return dim.evaluate(symbols) if isinstance(dim, SymExpr) else dim


def evaluate_shape(shape: Iterable[Dim], symbols: Symbols) -> tuple[int, ...]:
    """`shape` in numbers."""
    return tuple(evaluate_dim(dim, symbols) for dim in shape)


def has_symbols(value: Attribute) -> bool:
    """Whether an attribute contains a symbolic size."""
    return isinstance(value, SymExpr) or (isinstance(value, tuple) and any(map(has_symbols, value)))


def evaluate_attribute(value: Any, symbols: Symbols) -> Any:
    """An attribute with every symbolic size in it replaced by its number."""
    if isinstance(value, SymExpr):
        return value.evaluate(symbols)
    if isinstance(value, tuple):
        return tuple(evaluate_attribute(item, symbols) for item in value)
    return value


def evaluate_attributes(attributes: Attributes, symbols: Symbols) -> dict[str, Any]:
    """All attributes of an operation, in numbers."""
    return {name: evaluate_attribute(value, symbols) for name, value in attributes.items()}
