"""Random bits, and the uniform and normal numbers made of them: functions of (seed, draw, element index) by Philox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.errors import DTypeError
from argosy_phi_ops.ops.common.arguments import section
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.tensor import Tensor

_FRACTION_BITS = {"float32": 24, "float16": 11, "bfloat16": 8}

PARTS = {"complex64": "float32", "complex128": "float64"}


def uniform_values(
    rng: Tensor, counter: int, shape: Sequence[Any], dtype: str, start: Sequence[int] = (), whole: Sequence[int] = ()
) -> Tensor:
    """Uniform numbers in [0, 1): as many leading bits of each word as `dtype` holds, as a fraction, exactly; with
    `whole`, but for float64, the block at `start` of a draw of that shape."""
    if dtype == "float64":
        high, low = _words(rng, counter, shape)
        wide = [prim.cast(prim.shift_right(w, n), dtype="float64") for w, n in ((high, 5), (low, 6))]
        return prim.mul(prim.add(prim.mul(wide[0], 67108864.0), wide[1]), 2.0**-53)
    digits = _FRACTION_BITS[_draw_dtype(dtype)]
    bits = prim.rng_bits(rng, shape=tuple(shape), counter=counter, start=tuple(start), whole=tuple(whole))
    fraction = prim.mul(prim.cast(prim.shift_right(bits, 32 - digits), dtype="float32"), 2.0**-digits)
    return fraction if dtype == "float32" else prim.cast(fraction, dtype=dtype)


def normal_values(rng: Tensor, counter: int, shape: Sequence[Any], dtype: str) -> Tensor:
    """Standard normal numbers: ``sqrt(2) erfinv(x)`` of the midpoints x of equal cells of (-1, 1).

    Complex ones have independent parts of variance 1/2 each.
    """
    if dtype in PARTS:
        pairs = normal_values(rng, counter, (*shape, 2), PARTS[dtype])
        halves = (section(pairs, len(shape), i, i + 1) for i in (0, 1))
        parts = (prim.mul(prim.reshape(half, shape=tuple(shape)), 0.5**0.5) for half in halves)
        return prim.complex(*parts)
    if dtype == "float64":
        high, low = (prim.cast(prim.shift_right(w, 6), dtype="int64") for w in _words(rng, counter, shape))
        cell, digits = prim.add(prim.shift_left(high, 26), low), 52
    else:
        bits = prim.rng_bits(rng, shape=tuple(shape), counter=counter)
        cell, digits = prim.cast(prim.shift_right(bits, 9), dtype="int32"), 23
    wide = "float64" if digits == 52 else "float32"
    odd = prim.add(prim.mul(cell, 2), 1 - (1 << digits))
    normal = prim.mul(prim.erfinv(prim.mul(prim.cast(odd, dtype=wide), 2.0**-digits)), float(np.sqrt(2.0)))
    return normal if wide == _draw_dtype(dtype) else prim.cast(normal, dtype=dtype)


def _draw_dtype(dtype: str) -> str:
    if dtype not in ("float64", *_FRACTION_BITS):
        raise DTypeError(f"random numbers are float16, bfloat16, float32 or float64, not {dtype}")
    return dtype


def _words(rng: Tensor, counter: int, shape: Sequence[Any]) -> tuple[Tensor, Tensor]:
    bits = prim.rng_bits(rng, shape=(*shape, 2), counter=counter)
    high, low = (prim.reshape(section(bits, len(shape), i, i + 1), shape=tuple(shape)) for i in (0, 1))
    return high, low


def word_pairs(rng: Tensor, counter: int, shape: Sequence[Any]) -> Tensor:
    """Random numbers of 64 bits."""
    high, low = (prim.cast(word, dtype="uint64") for word in _words(rng, counter, shape))
    return prim.bitwise_or(prim.shift_left(high, 32), low)


def random_bits(rng: Array, counter: int, shape: Sequence[int], dtype: str) -> Array:
    full = (*shape, 2) if dtype == "float64" else tuple(shape)
    result: Array = KERNELS["rng_bits"](rng, counter=counter, shape=full)
    return result
