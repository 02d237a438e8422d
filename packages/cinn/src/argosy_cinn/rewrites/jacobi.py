"""Orthogonal columns by one-sided Jacobi rotations, the pairs of a round at once (Brent and Luk, "The solution of
singular-value and symmetric eigenvalue problems on multiprocessor arrays", 1985)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy_cinn.shapes import sizes
from argosy_phi_ops import prim
from argosy_phi_ops.ops.common.loops import scan
from argosy_phi_ops.primitives.checks import COMPLEX, REAL_OF
from argosy_pir.values import Value

__all__ = ["MOST_COLUMNS", "conjugate", "orthogonalise", "real_part"]

#: Matrices of more have too many rounds.
MOST_COLUMNS = 512
_SWEEPS = {"float32": 9, "float64": 12}


def orthogonalise(x: Value) -> tuple[Value, Value]:
    """For matrices [batch, m, n]: columns of ``x v`` that are orthogonal to each other, and those of the unitary ``v``,
    each as rows: [batch, n, m] and [batch, n, n]."""
    batch, m, n = sizes(x)
    even = n + n % 2
    rows = _columns(x, even)
    unit = prim.eq(*(prim.iota(shape=(batch, even, n), axis=axis, dtype="int64") for axis in (1, 2)))
    both = prim.concat(rows, prim.cast(unit, dtype=x.dtype), axis=2)
    if n == 1:
        return _part(both, (0, 0, 0), (batch, n, m)), _part(both, (0, 0, m), (batch, n, m + n))
    dtype = REAL_OF.get(x.dtype, x.dtype)
    order = _next_round(batch, even)

    def step(slices: Sequence[Value], carried: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        turned = _rotate(carried[0], m, dtype)
        if even > 2:
            turned = prim.gather(turned, order, axes=(1,), batch=1)
        return [], [turned]

    rounds = prim.iota(shape=(_SWEEPS[dtype] * (even - 1),), axis=0, dtype="int64")
    _, (both,) = scan(step, [rounds], [both])
    return _part(both, (0, 0, 0), (batch, n, m)), _part(both, (0, 0, m), (batch, n, m + n))


def conjugate(x: Value) -> Value:
    """Complex numbers conjugated, real ones as they are."""
    return prim.conj(x) if x.dtype in COMPLEX else x


def real_part(x: Value) -> Value:
    """Of complex numbers; real ones as they are."""
    return prim.real(x) if x.dtype in COMPLEX else x


def _columns(x: Value, count: int) -> Value:
    """Columns as rows, with one of zeros where there are fewer than ``count``."""
    turned: Value = prim.transpose(x, permutation=(0, 2, 1))
    missing, zeros = count - sizes(turned)[1], (0, 0, 0)
    zero = prim.cast(prim.constant(0, "float32"), dtype=x.dtype)
    return prim.pad(turned, zero, low=zeros, high=(0, missing, 0), interior=zeros) if missing else turned


def _part(x: Value, start: tuple[int, ...], limit: tuple[int, ...], stride: tuple[int, ...] = (1, 1, 1)) -> Value:
    return prim.slice(x, start=start, limit=limit, stride=stride)  # type: ignore[no-any-return]


def _rotate(both: Value, m: int, dtype: str) -> Value:
    """Neighbours made orthogonal in their first ``m`` elements."""
    batch, n, length = sizes(both)
    p, q = (_part(both, (0, i, 0), (batch, n, length), (1, 2, 1)) for i in (0, 1))
    upper_p, upper_q = (_part(y, (0, 0, 0), (batch, n // 2, m)) for y in (p, q))

    def product(y: Value, z: Value) -> Value:
        total = prim.reduce_sum(prim.mul(conjugate(y), z), axes=(2,))
        return prim.reshape(total, shape=(batch, n // 2, 1))  # type: ignore[no-any-return]

    alpha, beta = real_part(product(upper_p, upper_p)), real_part(product(upper_q, upper_q))
    gamma = product(upper_p, upper_q)
    size = prim.abs(gamma)
    least = prim.mul(prim.mul(prim.sqrt(alpha), prim.sqrt(beta)), prim.constant(float(np.finfo(dtype).eps) / 4, dtype))
    going = prim.gt(size, least)
    one, zero = prim.constant(1, dtype), prim.constant(0, dtype)
    divisor = prim.select(going, size, one)
    zeta = prim.div(prim.sub(beta, alpha), prim.mul(divisor, 2.0))
    slope = prim.div(one, prim.add(prim.abs(zeta), prim.sqrt(prim.add(prim.mul(zeta, zeta), one))))
    tangent = prim.select(going, prim.select(prim.lt(zeta, zero), prim.neg(slope), slope), zero)
    cosine = prim.rsqrt(prim.add(prim.mul(tangent, tangent), one))
    c, s = (prim.cast(y, dtype=both.dtype) for y in (cosine, prim.mul(cosine, tangent)))
    phase = prim.div(gamma, prim.cast(divisor, dtype=both.dtype))
    q = prim.select(going, prim.mul(conjugate(phase), q), q)
    turned = [prim.sub(prim.mul(c, p), prim.mul(s, q)), prim.add(prim.mul(s, p), prim.mul(c, q))]
    pairs = [prim.reshape(y, shape=(batch, n // 2, 1, length)) for y in turned]
    return prim.reshape(prim.concat(*pairs, axis=2), shape=both.shape)  # type: ignore[no-any-return]


def _next_round(batch: int, n: int) -> Value:
    """The numbers [batch, n, 1] of those that come to each place so that in ``n - 1`` rounds each meets each other: the
    first stays, those at even places go to the right and those at odd ones to the left, from pair to pair."""
    place = prim.iota(shape=(batch, n, 1), axis=1, dtype="int64")
    even = prim.eq(prim.floor_mod(place, 2), 0)
    source = prim.select(even, prim.sub(place, 2), prim.add(place, 2))
    for to, origin in ((0, 0), (2, 1), (n - 1, n - 2)):
        source = prim.select(prim.eq(place, to), prim.constant(origin, "int64"), source)
    return source  # type: ignore[no-any-return]
