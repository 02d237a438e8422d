"""Functions that take ``input`` and ``dim``, and give values with their places in named tuples."""

from __future__ import annotations

import builtins
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.argument_checks import validate_call
from argosy.framework.creation import assign
from argosy.framework.random import seed as start
from argosy_phi_ops.declare.composition import find_function
from argosy_tensorcore.tensor import Tensor

__all__ = ["equal", "max", "median", "min", "nanmedian", "seed", "slogdet", "sort", "split", "unique"]


class MedianRetType(NamedTuple):
    """The middle elements and where they are."""

    values: Tensor
    indices: Tensor


class MinMaxRetType(NamedTuple):
    """The extremes and where they are."""

    values: Tensor
    indices: Tensor


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


class SortRetType(NamedTuple):
    """The elements in order and where they were."""

    values: Tensor
    indices: Tensor


def _call(name: str, *args: Any, **kwargs: Any) -> Any:
    function: Any = find_function(name)
    return function(*args, **kwargs)


def _deliver(function: str, found: Any, out: Any) -> Any:
    """``found``, written to ``out`` where that is given: a tensor for one result, two of them for two."""
    if out is None:
        return found
    if isinstance(found, Tensor):
        if not isinstance(out, Tensor):
            raise TypeError(f"{function}(): argument 'out' should be a Tensor, got {type(out).__name__}")
        return assign(found, out)
    if not isinstance(out, (tuple, list)) or len(out) != len(found):
        raise TypeError(f"{function}(): argument 'out' should hold {len(found)} Tensors, got {type(out).__name__}")
    return type(found)(*[assign(value, place) for value, place in zip(found, out, strict=True)])


@validate_call
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape and the same elements, in the wider dtype of both."""
    if list(input.shape) != list(other.shape):
        return False
    wide = builtins.max(input.dtype, other.dtype, key=lambda dtype: ("biufc".find(dtype.kind), dtype.itemsize))
    input, other = input.astype(wide), other.astype(wide)
    return bool(_call("all", _call("equal", input, other)).item())


def _middle(name: str, input: Tensor, dim: int | None, keepdim: bool, out: Any) -> Any:
    found = _call(name, input, axis=dim, keepdim=keepdim, mode="min")
    if dim is not None:
        found = MedianRetType(found[0], _call("maximum", found[1], _call("zeros_like", found[1])))
    return _deliver(f"compat.{name}", found, out)


@validate_call
def median(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The middle element, the lower of two; along ``dim`` with its index, as (values, indices).

    Returns a tensor, with ``dim`` (values, indices).
    """
    return _middle("median", input, dim, keepdim, out)


@validate_call
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The same of the elements that are numbers. Returns a tensor, with ``dim`` (values, indices)."""
    return _middle("nanmedian", input, dim, keepdim, out)


def _extreme(name: str, input: Tensor, args: tuple[Any, ...], out: Any, kwargs: dict[str, Any]) -> Any:
    given = {**dict(zip(("dim", "keepdim"), args, strict=False)), **kwargs}
    other = given.pop("other", given.get("dim") if isinstance(given.get("dim"), Tensor) else None)
    function = f"compat.{name}"
    if len(args) > 2 or given.keys() - {"dim", "keepdim"} or ("keepdim" in given and "dim" not in given):
        raise TypeError(f"{function}() takes input; input, other; or input, dim, keepdim; got {sorted(given)}")
    if other is not None:
        if not isinstance(other, Tensor) or "keepdim" in given:
            raise TypeError(f"{function}(): argument 'other' should be a Tensor and stand alone, got {other!r:.60}")
        return _deliver(function, _call(f"{name}imum", input, other), out)
    if "dim" not in given:
        return _deliver(function, _call(name, input), out)
    dim = given["dim"]
    if type(dim) is not int:
        raise TypeError(f"{function}(): argument 'dim' should be an integer or a Tensor, got {dim!r:.60}")
    if not input.ndim:
        return _deliver(function, MinMaxRetType(input, _call("zeros", [], "int64")), out)
    places = _call(f"arg{name}", input, axis=dim, keepdim=True)
    found = [_call("take_along_axis", input, places, dim), places]
    if not given.get("keepdim", False):
        found = [_call("squeeze", x, dim) for x in found]
    return _deliver(function, MinMaxRetType(*found), out)


@validate_call
def min(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """``min(input)`` of all elements, ``min(input, other)`` of two tensors elementwise, or
    ``min(input, dim, keepdim=False)`` along an axis: (values, indices of the first).
    Returns a tensor, with ``dim`` alone (values, indices).
    """
    return _extreme("min", input, args, out, kwargs)


@validate_call
def max(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """``max(input)`` of all elements, ``max(input, other)`` of two tensors elementwise, or
    ``max(input, dim, keepdim=False)`` along an axis: (values, indices of the first).
    Returns a tensor, with ``dim`` alone (values, indices).
    """
    return _extreme("max", input, args, out, kwargs)


@validate_call
def slogdet(x: Tensor, out: Any = None) -> SlogdetResult:
    """(sign, logabsdet) of the determinants of matrices [..., n, n]."""
    found = _call("slogdet", x)
    result: SlogdetResult = _deliver("compat.slogdet", SlogdetResult(found[0], found[1]), out)
    return result


@validate_call
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False, out: Any = None) -> SortRetType:
    """(values, indices) of the elements in order along ``dim``."""
    places = _call("argsort", input, axis=dim, descending=descending, stable=stable)
    values = _call("take_along_axis", input, places, dim) if input.ndim else input
    result: SortRetType = _deliver("compat.sort", SortRetType(values, places), out)
    return result


@validate_call
def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts along ``dim`` of so many elements each, the last one perhaps smaller, or of the sizes that are listed."""
    size = split_size_or_sections
    if isinstance(size, int):
        if size <= 0:
            raise ValueError(f"compat.split(): argument 'split_size_or_sections' should be positive, got {size}")
        length = tensor.shape[dim]
        size = [size] * (length // size) + ([length % size] if length % size else [])
    elif any(int(part) < 0 for part in size):
        raise ValueError(f"compat.split(): argument 'split_size_or_sections' has negative sizes: {list(size)}")
    return tuple(_call("split", tensor, list(size), dim))


@validate_call
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements (or slices along ``dim``), in order; see :func:`argosy.unique`.

    Returns a tensor, or the tuple of it and what was asked for: the inverse, then the counts.
    """
    kwargs = {"return_inverse": return_inverse, "return_counts": return_counts, "axis": dim, "sorted": sorted}
    return _call("unique", input, **kwargs)


def seed() -> int:
    """Restart the random generator from a number that nobody knows before, and tell it."""
    number = secrets.randbits(53)
    start(number)
    return number
