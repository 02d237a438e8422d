"""Rational routines: common divisors and multiples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import operator
from argosy_phi_ops.ops.common.arguments import integer_pairs
from argosy_phi_ops.ops.common.loops import scan
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor


def _common_divisor(x: Any, y: Any) -> Any:
    """Euclid's algorithm on integers that broadcast, with as many steps as the widest numbers of the dtype can need
    (Lamé, 1844: five for each decimal digit of the smaller one)."""
    shape = prim.broadcast_shapes([x.shape, y.shape])
    steps = prim.constant(False, "bool", (round(as_dtype(x.dtype).itemsize * 8 * 1.5),))

    def step(_: Sequence[Any], carried: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        larger, smaller = carried
        ended = prim.eq(smaller, 0)
        rest = prim.rem(larger, prim.select(ended, 1, smaller))
        return (), (prim.select(ended, larger, smaller), prim.select(ended, smaller, rest))

    sizes = [prim.abs(prim.broadcast_to(v, shape)) for v in (x, y)]
    return prim.abs(scan(step, [steps], sizes)[1][0])


@operator(promote="binary", inplace=True, reference=np.gcd, samples=integer_pairs)
def gcd(x: Tensor, y: Tensor) -> Tensor:
    """The greatest common divisor of integers, 0 of zeros."""
    return _common_divisor(x, y)


@operator(promote="binary", inplace=True, reference=np.lcm, samples=integer_pairs)
def lcm(x: Tensor, y: Tensor) -> Tensor:
    """The least common multiple of integers, 0 where one of them is."""
    divisor = _common_divisor(x, y)
    part = prim.floor_div(prim.abs(prim.broadcast_to(x, divisor.shape)), prim.maximum(divisor, 1))
    return prim.mul(part, prim.abs(prim.broadcast_to(y, divisor.shape)))
