"""Functions of the array API standard that reduce arrays: sums, extremes, truths, running sums, differences."""

from __future__ import annotations

import builtins
from typing import Any

from argosy.array_api.creation import full
from argosy.array_api.manipulation import Axes, concat, normal_axes, reshape
from argosy.array_api.promotion import apply, convert, promote_operands
from argosy_tensorcore.dtype import DType, as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean",
    "min", "prod", "std", "sum", "var",
]  # fmt: skip


def _reduce(operator: str, x: Tensor, axis: Axes | None, keepdims: builtins.bool, **more: Any) -> Tensor:
    axes = normal_axes(operator, axis, x.ndim)
    if axis is not None and not axes:  # no axis is reduced, which the operators read as all of them
        x, axes = reshape(x, (*x.shape, 1)), (x.ndim,)
        return apply(operator, x, list(axes), keepdim=False, **more)  # type: ignore[no-any-return]
    return apply(operator, x, list(axes) or None, keepdim=keepdims, **more)  # type: ignore[no-any-return]


def _accumulator(x: Tensor, dtype: DType | None) -> DType:
    """The dtype of sums: integers and booleans are summed in 64 bits unless ``dtype`` says otherwise."""
    if dtype is not None:
        return as_dtype(dtype)
    return {"b": as_dtype("int64"), "i": as_dtype("int64"), "u": as_dtype("uint64")}.get(x.dtype.kind, x.dtype)


def sum(
    x: Tensor, /, *, axis: Axes | None = None, dtype: DType | None = None, keepdims: builtins.bool = False
) -> Tensor:
    """The sum over axes, all by default; of integers in 64 bits."""
    wanted = _accumulator(x, dtype)
    return convert(_reduce("sum", convert(x, wanted), axis, keepdims), wanted)


def prod(
    x: Tensor, /, *, axis: Axes | None = None, dtype: DType | None = None, keepdims: builtins.bool = False
) -> Tensor:
    """The product over axes, all by default; of integers in 64 bits."""
    wanted = _accumulator(x, dtype)
    return convert(_reduce("prod", convert(x, wanted), axis, keepdims), wanted)


def mean(x: Tensor, /, *, axis: Axes | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The mean over axes, all by default."""
    return _reduce("mean", x, axis, keepdims)


def var(
    x: Tensor, /, *, axis: Axes | None = None, correction: builtins.float = 0.0, keepdims: builtins.bool = False
) -> Tensor:
    """The mean squared distance from the mean over axes, dividing by the count less ``correction``."""
    return _reduce("var", x, axis, keepdims, correction=float(correction))


def std(
    x: Tensor, /, *, axis: Axes | None = None, correction: builtins.float = 0.0, keepdims: builtins.bool = False
) -> Tensor:
    """The square root of :func:`var`."""
    return apply("sqrt", var(x, axis=axis, correction=correction, keepdims=keepdims))  # type: ignore[no-any-return]


def max(x: Tensor, /, *, axis: Axes | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The largest element over axes, NaN where one is."""
    return _reduce("max", x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axes | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest element over axes, NaN where one is."""
    return _reduce("min", x, axis, keepdims)


def all(x: Tensor, /, *, axis: Axes | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether all elements over axes are true (not zero)."""
    return _reduce("all", x, axis, keepdims)


def any(x: Tensor, /, *, axis: Axes | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether any element over axes is true (not zero)."""
    return _reduce("any", x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axes | None = None, keepdims: builtins.bool = False) -> Tensor:
    """How many elements over axes are not zero, as int64."""
    return _reduce("count_nonzero", x, axis, keepdims)


def argmax(x: Tensor, /, *, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first largest element along ``axis``, or in the flattened array."""
    return _place("argmax", x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first smallest element along ``axis``, or in the flattened array."""
    return _place("argmin", x, axis, keepdims)


def _place(operator: str, x: Tensor, axis: builtins.int | None, keepdims: builtins.bool) -> Tensor:
    found = apply(operator, reshape(x, (-1,)) if axis is None else x, 0 if axis is None else axis)
    if not keepdims:
        return found  # type: ignore[no-any-return]
    reduced = normal_axes(operator, axis, x.ndim)
    return reshape(found, tuple(1 if i in reduced else size for i, size in enumerate(x.shape)))


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: builtins.int | None = None,
    dtype: DType | None = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """The running sum along ``axis``, with a zero in front if ``include_initial``."""
    return _cumulate("cumsum", 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: builtins.int | None = None,
    dtype: DType | None = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """The running product along ``axis``, with a one in front if ``include_initial``."""
    return _cumulate("cumprod", 1, x, axis, dtype, include_initial)


def _cumulate(
    operator: str,
    start: builtins.int,
    x: Tensor,
    axis: builtins.int | None,
    dtype: DType | None,
    include_initial: builtins.bool,
) -> Tensor:
    if axis is None and x.ndim != 1:
        raise ValueError(f"{operator}: an array of {x.ndim} axes needs argument 'axis'")
    (at,) = normal_axes(operator, 0 if axis is None else axis, x.ndim)
    wanted = _accumulator(x, dtype)
    found = convert(apply(operator, convert(x, wanted), at), wanted)
    if not include_initial:
        return found
    shape = tuple(1 if i == at else size for i, size in enumerate(x.shape))
    return concat([full(shape, start, dtype=wanted), found], axis=at)


def diff(
    x: Tensor,
    /,
    *,
    axis: builtins.int = -1,
    n: builtins.int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The differences of neighbours along ``axis``, taken ``n`` times, of ``x`` with what stands before and behind."""
    (at,) = normal_axes("diff", axis, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    whole = concat(promote_operands("diff", *parts), axis=at) if len(parts) > 1 else x
    for _ in range(n):
        front = (slice(None),) * at
        whole = apply("subtract", whole[(*front, slice(1, None))], whole[(*front, slice(None, -1))])
    return whole if n or len(parts) > 1 else apply("assign", x)
