"""Reading elements as bits of another dtype, narrower and wider ones, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.errors import DTypeError, ShapeError
from argosy_phi_ops.primitives.checks import REAL_OF
from argosy_pir.types import ITEM_SIZES
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor


def reread(name: str, x: Tensor, dtype: str) -> Tensor:
    """The bits of ``x`` as elements of ``dtype``; the last axis grows or shrinks as they are narrower or wider.

    Raises :class:`ShapeError` where the last axis does not hold whole elements, :class:`DTypeError` for an unknown
    dtype.
    """
    if dtype not in ITEM_SIZES:
        raise DTypeError(f"{name}: there is no dtype {dtype!r}")
    if x.dtype == dtype:
        return x
    old, new = ITEM_SIZES[str(x.dtype)], ITEM_SIZES[dtype]
    check_last_axis(name, x.shape, x.dtype, dtype)
    if x.dtype in REAL_OF:
        return reread(name, _interleave(x), dtype)
    if dtype in REAL_OF:
        return _pair(reread(name, x, REAL_OF[dtype]))
    return prim.bitcast(x, dtype=dtype) if old == new else _split_bits(x, dtype) if old > new else _widen(x, dtype)


def check_last_axis(name: str, shape: tuple[Any, ...], old: str, new: str) -> None:
    """Raise :class:`ShapeError` unless a last axis of ``old`` elements holds whole ``new`` ones."""
    before, after = ITEM_SIZES[old], ITEM_SIZES[new]
    if before == after:
        return
    if not shape:
        raise ShapeError(f"{name}: a 0-D {old} tensor has no axis to change for {new}, which has another width")
    count = after // before
    if count > 1 and not isinstance(shape[-1], int):
        raise NotImplementedError(f"{name}: a last axis of unknown size ({shape[-1]}) of {old} read as the wider {new}")
    if count > 1 and shape[-1] % count:
        raise ShapeError(
            f"{name}: the last axis of {old} {list(shape)} should be a multiple of {count} to be read as {new}"
        )


def _interleave(x: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones along the last axis."""
    parts = [prim.reshape(p, shape=(*x.shape, 1)) for p in (prim.real(x), prim.imag(x))]
    both = prim.concat(*parts, axis=x.ndim)
    return prim.reshape(both, shape=(*x.shape[:-1], x.shape[-1] * 2) if x.ndim else (2,))


def _pair(x: Tensor) -> Tensor:
    """Neighbours along the last axis as real and imaginary parts."""
    shape = (*x.shape[:-1], x.shape[-1] // 2, 2)
    pairs = prim.reshape(x, shape=shape)
    rank = len(shape)

    def part(i: int) -> Tensor:
        start, limit = (*([0] * (rank - 1)), i), (*shape[:-1], i + 1)
        return prim.reshape(prim.slice(pairs, start=start, limit=limit, stride=(1,) * rank), shape=shape[:-1])

    return prim.complex(part(0), part(1))


def _unsigned_dtype(dtype: Any) -> str:
    return f"uint{8 * ITEM_SIZES[dtype]}"


def _places(shape: tuple[Any, ...], wide: Any, narrow: Any) -> Tensor:
    """By how many bits each narrow element is shifted within its wide one (the first one is the lowest)."""
    return prim.mul(prim.iota(shape=shape, axis=len(shape) - 1, dtype=_unsigned_dtype(wide)), 8 * ITEM_SIZES[narrow])


def _split_bits(x: Tensor, dtype: str) -> Tensor:
    count = ITEM_SIZES[str(x.dtype)] // ITEM_SIZES[dtype]
    shape = (*x.shape, count)
    bits = prim.bitcast(x, dtype=_unsigned_dtype(x.dtype)) if x.dtype != _unsigned_dtype(x.dtype) else x
    spread = prim.broadcast(bits, shape=shape, axes=tuple(range(x.ndim)))
    shifted = prim.shift_right(spread, _places(shape, x.dtype, dtype))
    mask = (1 << 8 * ITEM_SIZES[dtype]) - 1
    parts = prim.cast(prim.bitwise_and(shifted, mask), dtype=_unsigned_dtype(dtype))
    parts = prim.reshape(parts, shape=(*x.shape[:-1], x.shape[-1] * count))
    return parts if dtype == _unsigned_dtype(dtype) else prim.bitcast(parts, dtype=dtype)


def _widen(x: Tensor, dtype: str) -> Tensor:
    count = ITEM_SIZES[dtype] // ITEM_SIZES[str(x.dtype)]
    bits = prim.bitcast(x, dtype=_unsigned_dtype(x.dtype)) if x.dtype != _unsigned_dtype(x.dtype) else x
    shape = (*x.shape[:-1], x.shape[-1] // count, count)
    parts = prim.cast(prim.reshape(bits, shape=shape), dtype=_unsigned_dtype(dtype))
    shifted = prim.shift_left(parts, _places(shape, dtype, x.dtype))
    whole = prim.reduce_sum(shifted, axes=(len(shape) - 1,))
    return whole if dtype == _unsigned_dtype(dtype) else prim.bitcast(whole, dtype=dtype)


def reread_array(name: str, x: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """:func:`reread` of an array: a view where its last axis lies close together."""
    check_last_axis(name, x.shape, as_dtype(x.dtype).name, dtype)
    fits = x.ndim == 0 or x.strides[-1] == x.itemsize or x.itemsize == ITEM_SIZES[dtype]
    return (x if fits else x.copy()).view(as_dtype(dtype).numpy)
