"""The Hurwitz zeta function."""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_tensorcore.tensor import Tensor

_TERMS = 10

_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
)  # fmt: skip


@operator(axes="..., ... -> ...", promote="float", upcast=True)
def zeta(x: Tensor, q: Tensor) -> Tensor:
    """Hurwitz' zeta function ``sum over k >= 0 of (q + k)^-x`` for x > 1 and q > 0; Riemann's with `q` = 1.

    Infinite at x = 1 or q = 0, NaN below. Ten terms of the sum, and the Euler-Maclaurin formula for the others (DLMF
    25.11.5).
    """
    shape = prim.broadcast_shapes([x.shape, q.shape])
    x, q = prim.broadcast_to(x, shape), prim.broadcast_to(q, shape)
    inside = prim.logical_and(prim.gt(x, 1.0), prim.gt(q, 0.0))
    s, start = prim.select(inside, x, 2.0), prim.select(inside, q, 1.0)
    power = prim.neg(s)
    total = prim.pow(start, power)
    for k in range(1, _TERMS):
        total = prim.add(total, prim.pow(prim.add(start, float(k)), power))
    end = prim.add(start, float(_TERMS))
    last = prim.pow(end, power)
    rest = prim.add(prim.div(end, prim.sub(s, 1.0)), 0.5)
    factor = prim.div(s, end)  # s (s + 1) ... (s + 2 j - 2) / end^(2 j - 1)
    for j, number in enumerate(_BERNOULLI, 1):
        rest = prim.add(rest, prim.mul(factor, number / factorial(2 * j)))
        ahead = prim.mul(prim.add(s, 2.0 * j - 1), prim.add(s, 2.0 * j))
        factor = prim.div(prim.mul(factor, ahead), prim.mul(end, end))
    found = prim.add(total, prim.mul(last, rest))
    pole = prim.logical_or(
        prim.logical_and(prim.eq(x, 1.0), prim.ge(q, 0.0)), prim.logical_and(prim.eq(q, 0.0), prim.ge(x, 1.0))
    )
    outside = prim.select(pole, prim.constant(float("inf"), x.dtype, shape), float("nan"))
    return prim.select(inside, found, outside)


@zeta.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.uniform(1.2, 6, (2, 3)), rng.uniform(0.3, 4, (2, 3)))
    yield Sample(rng.uniform(1.2, 6, (2, 1)), rng.uniform(0.3, 4, 3))
