"""Bitwise operators, elementwise with broadcasting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.common.arguments import INPUT_OTHER, boolean_pairs, integer_pairs
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_tensorcore.tensor import Tensor


def bits(rng: np.random.Generator) -> Iterator[Sample]:
    """Pairs of integers and of booleans."""
    yield from integer_pairs(rng)
    yield from boolean_pairs(rng)


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases=INPUT_OTHER,
    positional_out=True,
    reference=KERNELS["bitwise_and"],
    samples=bits,
)
def bitwise_and(x: Tensor, y: Tensor) -> Tensor:
    """``x & y`` of integers or booleans."""
    return prim.bitwise_and(x, y)


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases=INPUT_OTHER,
    positional_out=True,
    reference=KERNELS["bitwise_or"],
    samples=bits,
)
def bitwise_or(x: Tensor, y: Tensor) -> Tensor:
    """``x | y`` of integers or booleans."""
    return prim.bitwise_or(x, y)


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases=INPUT_OTHER,
    positional_out=True,
    reference=KERNELS["bitwise_xor"],
    samples=bits,
)
def bitwise_xor(x: Tensor, y: Tensor) -> Tensor:
    """``x ^ y`` of integers or booleans."""
    return prim.bitwise_xor(x, y)


@operator(axes="... -> ...", inplace=True, positional_out=True, reference=KERNELS["bitwise_not"])
def bitwise_not(x: Tensor) -> Tensor:
    """``~x`` of integers; negation of booleans."""
    return prim.bitwise_not(x)


@bitwise_not.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.integers(-9, 9, 4))
    yield Sample(rng.random(4) < 0.5)


@operator(axes="..., ... -> ...", promote="binary", inplace=True, positional_out=True, samples=integer_pairs)
def bitwise_left_shift(x: Tensor, y: Tensor, is_arithmetic: bool = True) -> Tensor:
    """``x << y``."""
    return prim.shift_left(x, y)


_UNSIGNED = {"int8": "uint8", "int16": "uint16", "int32": "uint32", "int64": "uint64"}


@operator(axes="..., ... -> ...", promote="binary", inplace=True, positional_out=True)
def bitwise_right_shift(x: Tensor, y: Tensor, is_arithmetic: bool = True) -> Tensor:
    """``x >> y``, keeping the sign, or filling with zeros unless `is_arithmetic`."""
    unsigned = _UNSIGNED.get(x.dtype)
    if is_arithmetic or unsigned is None:
        return prim.shift_right(x, y)
    shifted = prim.shift_right(prim.bitcast(x, dtype=unsigned), prim.bitcast(y, dtype=unsigned))
    return prim.bitcast(shifted, dtype=x.dtype)


@bitwise_right_shift.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield from integer_pairs(rng)
    yield Sample(np.array([-8, 8]), np.array([1, 1]), is_arithmetic=False)
