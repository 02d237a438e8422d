"""What the arguments of operators mean: axes counted from the end, shapes with gaps, values for each spatial axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.context import context
from argosy_phi_ops.declare.operator import Sample
from argosy_phi_ops.errors import AxisError, OperatorError, ShapeError
from argosy_pir.dims import Dim
from argosy_pir.types import TensorType

Shape = tuple[Any, ...]

Axes = int | Sequence[int] | None

INPUT = {"input": "x"}
"""The alias of the parameter of operators of one tensor."""

INPUT_OTHER = {"input": "x", "other": "y"}
"""The aliases of the parameters of operators of two tensors."""

FACTORY = ("device", "requires_grad", "pin_memory")
"""The keywords of operators that make tensors; see :mod:`argosy_phi_ops.declare.keywords`."""

_NARROW = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})


def in_float32(x: Any) -> Any:
    """A narrow float as float32, in which an operator of several steps is computed; anything else as it is."""
    return prim.cast(x, dtype="float32") if x.dtype in _NARROW else x


def narrow_integers(x: Any, dtype: str) -> Any:
    """`x` rounded back to `dtype`."""
    return x if x.dtype == dtype else prim.cast(x, dtype=dtype)


def axis_of(name: str, axis: int, rank: int) -> int:
    """`axis` counted from the front. Raises :class:`AxisError` outside ``[-rank, rank)`` (a 0-D tensor has axis 0)."""
    if not -max(rank, 1) <= axis < max(rank, 1):
        least = max(rank, 1)
        raise AxisError(
            f"{name}: axis {axis} is outside a tensor of {rank} axes; it should be from {-least} to {least - 1}"
        )
    return axis + rank if axis < 0 and rank else max(axis, 0)


def axes_of(name: str, axis: Axes, rank: int) -> tuple[int, ...]:
    """The distinct axes meant by an axis, a list of them or None (all), in ascending order."""
    if axis is None or (not isinstance(axis, int) and not len(axis)):
        return tuple(range(rank))
    if rank == 0:
        axis_of(name, axis if isinstance(axis, int) else axis[0], rank)
        return ()
    axes = [axis_of(name, a, rank) for a in ((axis,) if isinstance(axis, int) else axis)]
    if len(set(axes)) != len(axes):
        raise AxisError(f"{name}: axes {axis} repeat")
    return tuple(sorted(axes))


def check_same_shape(name: str, **tensors: Any) -> None:
    """Raises :class:`ShapeError` where a tensor is not of the shape of the first; sizes that are open may be equal."""
    (first, x), *others = tensors.items()
    for argument, y in others:
        pairs = zip(x.shape, y.shape, strict=False)
        if len(x.shape) != len(y.shape) or any(isinstance(m, int) and isinstance(n, int) and m != n for m, n in pairs):
            shapes = f"{list(x.shape)}, got {list(y.shape)}"
            raise ShapeError(f"{name}: argument '{argument}' should be of the shape of '{first}', {shapes}")


def shape_without(shape: Sequence[Any], axes: Sequence[int]) -> Shape:
    """`shape` without `axes`."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def ones_at(shape: Sequence[Any], axes: Sequence[int]) -> Shape:
    """`shape` with size one at `axes`."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def restore(x: Any, shape: Sequence[Any], axes: Sequence[int]) -> Any:
    """A reduced value repeated along the `axes` it lost, to `shape`."""
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    return prim.broadcast(x, shape=tuple(shape), axes=kept)


def broadcast_along(x: Any, shape: Sequence[Any], axis: int) -> Any:
    """A vector repeated to `shape` so that it runs along `axis`."""
    return prim.broadcast(x, shape=tuple(shape), axes=(axis,))


def _left_of_nothing(name: str, known: Sequence[Any], of: Sequence[Any], shape: Sequence[Any]) -> Any:
    """What takes the place of -1 beside a 0, where any size fits: what is left of the sizes that are not 0."""
    total, taken = (prod(n for n in sizes if not (isinstance(n, int) and n == 0)) for sizes in (of, known))
    if isinstance(total, int) and isinstance(taken, int) and total % taken:
        raise ShapeError(f"{name}: {list(of)} does not divide into shape {list(shape)}")
    return total // taken


def resolved_shape(name: str, shape: Sequence[Any], of: Sequence[Any]) -> Shape:
    """A requested shape with Paddle's gaps filled in: 0 copies the operand's size, one -1 takes what is left.

    For an operand without elements 0 means 0. Raises :class:`ShapeError` when the gaps cannot be filled.
    """
    empty = any(isinstance(n, int) and n == 0 for n in of)
    copied = [not empty and isinstance(n, int) and n == 0 and i < len(of) for i, n in enumerate(shape)]
    sizes = [of[i] if copy else n for i, (n, copy) in enumerate(zip(shape, copied, strict=True))]
    gaps = [i for i, n in enumerate(sizes) if isinstance(n, int) and n < 0]
    if not gaps:
        return tuple(sizes)
    if len(gaps) > 1 or sizes[gaps[0]] != -1:
        raise ShapeError(f"{name}: shape {list(shape)} may hold one -1 and no other negative size")
    known: Any = prod(n for i, n in enumerate(sizes) if i != gaps[0])
    if empty and isinstance(known, int) and known == 0:
        sizes[gaps[0]] = _left_of_nothing(name, [n for n in sizes if n != -1], of, shape)
        return tuple(sizes)
    total: Any = prod(of)
    if isinstance(known, int) and (known == 0 or (isinstance(total, int) and total % known)):
        raise ShapeError(f"{name}: {list(of)} does not divide into shape {list(shape)}")
    sizes[gaps[0]] = total // known
    return tuple(sizes)


def per_axis(name: str, value: int | Sequence[int], rank: int, positive: str = "") -> tuple[int, ...]:
    """One value for each of `rank` spatial axes; those of the argument `positive_samples` are integers above 0.

    Raises :class:`ShapeError` for another number of values and for values that are not.
    """
    values = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(values) == 1:
        values *= rank
    if len(values) != rank:
        raise ShapeError(f"{name}: {list(values)} should hold one value for each of the {rank} spatial axes")
    if positive and not all(isinstance(n, int) and n > 0 for n in values):
        raise ShapeError(f"{name}(): argument {positive!r} should hold integers above 0, got {list(values)}")
    return values


def table(values: np.ndarray) -> Any:
    """A constant with the elements of `values`, emitted where the operator's body is expanded."""
    ambient = context()
    if ambient.builder is None:
        raise OperatorError("a constant was asked for, but no builder is active; use emit_at(builder)")
    data = np.ascontiguousarray(values).tobytes()
    return ambient.builder.constant(TensorType(values.shape, values.dtype.name), data, ambient.location)


def check_static_sizes(name: str, sizes: Sequence[Any]) -> None:
    """Raises ``NotImplementedError`` where one of `sizes` is symbolic, for operators that compute with their values."""
    if not all(isinstance(n, int) for n in sizes):
        shown = ", ".join(map(str, sizes))
        raise NotImplementedError(f"{name} over axes of symbolic size ({shown}) is not implemented")


def section(x: Any, axis: int, start: Any, limit: Any) -> Any:
    """`x` from `start` up to `limit` along `axis`."""
    starts, limits = [0] * x.ndim, list(x.shape)
    starts[axis], limits[axis] = start, limit
    return prim.slice(x, start=tuple(starts), limit=tuple(limits), stride=(1,) * x.ndim)


# Inputs for the tests of many operators


def real_samples(rng: np.random.Generator) -> Iterator[Sample]:
    """A matrix, a 0-D tensor and no elements, of both usual widths."""
    yield Sample(rng.standard_normal((2, 3)))
    yield Sample(np.asarray(rng.standard_normal(), np.float32))
    yield Sample(np.zeros((0, 2), np.float32))


def positive_samples(rng: np.random.Generator) -> Iterator[Sample]:
    """Numbers above zero."""
    yield Sample(rng.uniform(0.1, 3, (2, 3)))
    yield Sample(rng.uniform(0.1, 3, 4).astype(np.float32))


def unit(rng: np.random.Generator) -> Iterator[Sample]:
    """Numbers strictly between -1 and 1."""
    yield Sample(rng.uniform(-0.95, 0.95, (2, 3)))
    yield Sample(rng.uniform(-0.95, 0.95, 4).astype(np.float32))


def pairs(rng: np.random.Generator) -> Iterator[Sample]:
    """Two tensors: alike, broadcasting, and one with a Python number."""
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((2, 1, 3)), rng.standard_normal((4, 1)))
    yield Sample(rng.standard_normal(3).astype(np.float32), 0.5)


def integer_pairs(rng: np.random.Generator) -> Iterator[Sample]:
    """Two tensors of integers without zeros in the second."""
    yield Sample(rng.integers(-9, 9, (2, 3)), rng.integers(1, 5, (2, 3)))
    yield Sample(rng.integers(-9, 9, (2, 1)).astype(np.int32), rng.integers(1, 5, 3).astype(np.int32))


def boolean_pairs(rng: np.random.Generator) -> Iterator[Sample]:
    """Two boolean tensors that broadcast."""
    yield Sample(rng.random((2, 3)) < 0.5, rng.random(3) < 0.5)


def complex_too(rng: np.random.Generator) -> Iterator[Sample]:
    """Real and complex numbers."""
    yield Sample(rng.standard_normal((2, 3)))
    yield Sample((rng.standard_normal(4) + 1j * rng.standard_normal(4)).astype(np.complex64))


def positive_part(x: Any) -> Any:
    """`x` where it is positive, else 0, with derivative 0 at 0 (``prim.maximum`` would share it); NaN stays."""
    return prim.select(prim.le(x, 0), 0, x)


def smooth_abs(x: Any) -> Any:
    """``|x|`` of real `x` with slope 1 at 0: a smooth function of it, even or odd, then has all of its derivatives
    there, which the slope 0 of ``prim.abs`` cuts off."""
    return prim.select(prim.lt(x, 0), prim.neg(x), x)


def softplus_parts(x: Any) -> tuple[Any, Any]:
    """``max(x, 0)`` and ``log(1 + exp(-|x|))``, whose sum is ``log(1 + exp(x))``: without overflow, and smooth."""
    negative = prim.lt(x, 0)
    tail = prim.log1p(prim.exp(prim.select(negative, x, prim.neg(x))))
    return prim.select(negative, 0, x), tail


def clamp(x: Any, low: float, high: float) -> Any:
    """`x` moved into [low, high], with derivative 0 on the bounds; NaN stays."""
    return prim.select(prim.le(x, low), low, prim.select(prim.ge(x, high), high, x))


def require_size(name: str, size: Dim) -> None:
    """Let calls be refused at which an open ``size`` is less than one."""
    if not isinstance(size, int):
        prim.check_index(prim.constant(0, "int64"), operator=name, low=0, size=size, besides=None)


def require_multiple(name: str, size: Dim, factor: int) -> None:
    """Let calls be refused at which an open ``size`` is no multiple of ``factor``."""
    require_size(name, 1 - size % factor)
