"""Indices held against the sizes of the axes that they address, in eager execution.

The primitives ``gather`` and ``scatter`` clamp and drop what is out of range, as compiled code must. An operator that
users give indices to says with :meth:`Operator.bounded` which they are, and they are looked at before its kernel runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from argosy_phi_ops.errors import AxisError
from argosy_phi_ops.operator import Operator

__all__ = ["Bound", "bounds_of", "check_bounds", "check_indices", "known_bounds"]


def check_bounds(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> None:
    """Raise :class:`AxisError` where an index of an application of ``op`` is out of range."""
    bounds = op.bounds or op.own_bounds
    assert bounds is not None
    for indices, low, size, *besides in bounds(**op.signature.regroup(arrays, attributes)):
        check_indices(op.name, indices, low, size, *besides)


class Bound(NamedTuple):
    """Indices from ``low`` to ``size - 1``, and ``besides``: an operand, by its number, or one ``column`` of its last
    axis."""

    operand: int
    column: int | None
    low: int
    size: int
    besides: int


def bounds_of(op: Operator, types: Sequence[Any], attributes: dict[str, Any]) -> list[Bound] | None:
    """The bounds of operands of these array types, whoever looks at them; None where what is looked at is no part of
    one."""
    bounds = op.bounds or op.own_bounds
    if bounds is None:
        return []
    samples = [np.zeros(t.shape, t.dtype.numpy) for t in types]
    found = []
    for indices, low, size, *besides in bounds(**op.signature.regroup(samples, attributes)):
        numbers = int(low), int(size), int(*besides or (low,))
        bound = next((Bound(i, c, *numbers) for i, c in _places(indices, samples)), None)
        if bound is None:
            return None
        found.append(bound)
    return found


def _places(indices: Any, samples: Sequence[Any]) -> Iterator[tuple[int, int | None]]:
    """Where in ``samples`` the array is: the number of one, and its column."""
    for i, sample in enumerate(samples):
        if sample is indices:
            yield i, None
        elif indices.base is sample and indices.shape == sample.shape[:-1]:
            yield i, (indices.ctypes.data - sample.ctypes.data) // sample.itemsize


def known_bounds(op: Operator, types: Sequence[Any], attributes: dict[str, Any]) -> list[Bound] | None:
    """What eager execution has to look at, for operands of these array types; None where that is not an operand as it
    is."""
    found = bounds_of(op, types, attributes)
    return None if found is None or any(bound.column is not None for bound in found) else found


def check_indices(name: str, indices: Any, low: int, size: int, besides: int | None = None) -> None:
    """Raise :class:`AxisError`, naming the operator, where an index is less than ``low`` or not less than ``size``, and
    not the one that is allowed ``besides``."""
    if not indices.size or indices.dtype.kind not in "iu":
        return
    least, most = int(indices.min()), int(indices.max())
    if least >= low and most < size:
        return
    wrong = indices[(indices < low) | (indices >= size)]
    wrong = wrong if besides is None else wrong[wrong != besides]
    if wrong.size:
        also = "" if besides is None or low <= besides < size else f", or {besides}"
        raise AxisError(
            f"{name}: index {wrong.flat[0]} is out of range; expected {low} to {size - 1} for an axis of {size}{also}"
        )
