"""Functions of the array API standard that find, order and compare elements with each other."""

from __future__ import annotations

import builtins
from typing import NamedTuple

from argosy.array_api.manipulation import flip, normal_axes, reshape, take_along_axis
from argosy.array_api.promotion import Operand, apply, convert, promote_operands
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "argsort", "isin", "nonzero", "searchsorted", "sort", "unique_all", "unique_counts", "unique_inverse",
    "unique_values", "where",
]  # fmt: skip


class UniqueAll(NamedTuple):
    """The elements that occur, where each is first, which of them every element is, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The elements that occur, and how often."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The elements that occur, and which of them every element is."""

    values: Tensor
    inverse_indices: Tensor


def argsort(
    x: Tensor, /, *, axis: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """The indices that put elements in order along ``axis``; equal ones stay in their order."""
    (at,) = normal_axes("argsort", axis, x.ndim)
    if not descending:
        return apply("argsort", x, at)  # type: ignore[no-any-return]
    behind = x.shape[at] - 1
    return flip(apply("subtract", behind, apply("argsort", flip(x, axis=at), at)), axis=at)


def sort(
    x: Tensor, /, *, axis: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    """The elements in order along ``axis``; equal ones stay in their order."""
    return take_along_axis(x, argsort(x, axis=axis, descending=descending), axis=axis)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where elements are not zero: the indices along each axis."""
    if not x.ndim:
        raise ValueError("nonzero(): an array without axes has no indices")
    return tuple(reshape(each, (-1,)) for each in apply("nonzero", x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Operand, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where the elements of ``x2`` would be put in to keep the vector ``x1`` in order, before equal ones or behind
    them ("right"); ``sorter`` are the indices that put ``x1`` in order."""
    sequence, values = promote_operands("searchsorted", x1, x2)
    if sorter is not None:
        sequence = sequence[sorter]
    return apply("searchsorted", sequence, values, right=side == "right")  # type: ignore[no-any-return]


def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Tensor:
    """``x1`` where ``condition`` holds, else ``x2``."""
    return apply("where", condition, *promote_operands("where", x1, x2))  # type: ignore[no-any-return]


def isin(x1: Operand, x2: Operand, /, *, invert: builtins.bool = False) -> Tensor:
    """Whether each element of ``x1`` occurs in ``x2`` (does not, with ``invert``)."""
    return apply("isin", *promote_operands("isin", x1, x2), invert=invert)  # type: ignore[no-any-return]


def unique_all(x: Tensor, /) -> UniqueAll:
    """The elements that occur, in order, their first indices, the inverse and the counts; each NaN is one apart."""
    flat = reshape(x, (-1,))
    order = argsort(flat)
    ordered = flat[order]
    count = int(flat.size)
    first = _starts(ordered)
    (starts,) = nonzero(first)
    ends = [*starts.tolist()[1:], count] if count else []
    ranks = apply("cumsum", convert(first, as_dtype("int64")), 0) - 1
    inverse = apply("scatter", ranks, order, ranks) if count else ranks
    counts = Tensor(ends, "int64") - starts
    return UniqueAll(ordered[starts], order[starts], reshape(inverse, tuple(x.shape)), counts)


def _starts(ordered: Tensor) -> Tensor:
    """Where a value differs from the one before it."""
    if not ordered.size:
        return Tensor([], "bool")
    return apply("concat", [Tensor([True]), apply("not_equal", ordered[1:], ordered[:-1])], 0)  # type: ignore[no-any-return]


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The elements that occur, in order, and how often."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The elements that occur, in order, and which of them every element is."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The elements that occur, in order."""
    return unique_all(x).values
