"""Random numbers of the gamma, Poisson and binomial distributions, by rejection with a fixed number of attempts.

A rejection method draws until a candidate is accepted. Programs of fixed shape make all attempts at once and take the
first accepted one; after the attempts below, the chance that none was is under 1e-10 for each element.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.common.arguments import section
from argosy_phi_ops.ops.random.values import uniform_values
from argosy_tensorcore.tensor import Tensor

_GAMMA_ATTEMPTS = 8

_COUNT_ATTEMPTS = 16

_STEPS = 64
"""Enough terms of a distribution function whose mean is below 10."""


def _planes(rng: Tensor, counter: int, count: int, shape: tuple[Any, ...], dtype: str) -> list[Tensor]:
    """Independent uniform numbers strictly between 0 and 1: `count` tensors of `shape`, out of one draw."""
    draw = uniform_values(rng, counter, (count, *shape), dtype)
    inner = prim.add(draw, 2.0**-54 if dtype == "float64" else 2.0**-25)
    return [prim.reshape(section(inner, 0, i, i + 1), shape=shape) for i in range(count)]


def _first_accepted(attempts: list[tuple[Tensor, Tensor]]) -> Tensor:
    """The first accepted of (candidate, accepted); the last candidate where none was."""
    result = attempts[-1][0]
    for candidate, accepted in reversed(attempts[:-1]):
        result = prim.select(accepted, candidate, result)
    return result


@operator(random=True)
def standard_gamma(x: Tensor, rng: Tensor | None = None, counter: int = 0) -> Tensor:
    """Gamma distributed numbers of shape `x` and scale 1 (Marsaglia and Tsang, 2000); `x` is taken as a constant."""
    wide = "float64" if x.dtype == "float64" else "float32"
    alpha = prim.stop_gradient(prim.cast(x, dtype=wide) if x.dtype != wide else x)
    planes = _planes(rng, counter, 2 * _GAMMA_ATTEMPTS + 1, tuple(x.shape), wide)
    small = prim.lt(alpha, 1.0)
    d = prim.sub(prim.select(small, prim.add(alpha, 1.0), alpha), 1 / 3)
    c = prim.div(1 / 3, prim.sqrt(d))
    attempts = []
    for u, v in zip(planes[:_GAMMA_ATTEMPTS], planes[_GAMMA_ATTEMPTS:-1], strict=True):
        normal = prim.mul(prim.erfinv(prim.sub(prim.mul(u, 2.0), 1.0)), float(np.sqrt(2)))
        root = prim.add(prim.mul(c, normal), 1.0)
        cube = prim.mul(prim.mul(root, root), root)
        positive = prim.gt(root, 0.0)
        logarithm = prim.log(prim.select(positive, cube, 1.0))
        bound = prim.add(prim.mul(prim.mul(normal, normal), 0.5), prim.mul(d, prim.add(prim.sub(1.0, cube), logarithm)))
        attempts.append((prim.mul(d, cube), prim.logical_and(positive, prim.lt(prim.log(v), bound))))
    boost = prim.exp(prim.div(prim.log(planes[-1]), alpha))
    result = prim.mul(_first_accepted(attempts), prim.select(small, boost, 1.0))
    return result if x.dtype == wide else prim.cast(result, dtype=x.dtype)


@standard_gamma.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.uniform(0.3, 5, (2, 3)))
    yield Sample(np.array([0.5, 40.0], np.float32))


def _invert(u: Tensor, first: Tensor, ratio: Any) -> Tensor:
    """How many values of the distribution function lie at or below `u`: its terms are ``term * ratio(k)``."""
    term = total = first
    count = prim.constant(0.0, u.dtype, u.shape)
    for k in range(_STEPS):
        count = prim.add(count, prim.cast(prim.ge(u, total), dtype=u.dtype))
        term = prim.mul(term, ratio(k))
        total = prim.add(total, term)
    return count


@operator(random=True)
def poisson(x: Tensor, rng: Tensor | None = None, counter: int = 0) -> Tensor:
    """Poisson distributed numbers of mean `x`, in its dtype.

    Below 10 by inversion, above by transformed rejection (Hörmann, 1993, PTRS).
    """
    mean = prim.stop_gradient(x if x.dtype == "float64" else prim.cast(x, dtype="float64"))
    planes = _planes(rng, counter, 2 * _COUNT_ATTEMPTS, tuple(x.shape), "float64")
    few = prim.lt(mean, 10.0)
    low = prim.select(few, mean, 1.0)
    by_inversion = _invert(planes[0], prim.exp(prim.neg(low)), lambda k: prim.div(low, k + 1.0))
    many = prim.select(few, 10.0, mean)
    attempts = [_poisson_attempt(many, u, v) for u, v in zip(planes[::2], planes[1::2], strict=True)]
    result = prim.select(few, by_inversion, _first_accepted(attempts))
    return result if x.dtype == "float64" else prim.cast(result, dtype=x.dtype)


def _poisson_attempt(mean: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    b = prim.add(prim.mul(prim.sqrt(mean), 2.53), 0.931)
    a = prim.sub(prim.mul(b, 0.02483), 0.059)
    inverse_alpha = prim.add(prim.div(1.1328, prim.sub(b, 3.4)), 1.1239)
    limit = prim.sub(0.9277, prim.div(3.6224, prim.sub(b, 2.0)))
    centred = prim.sub(u, 0.5)
    us = prim.sub(0.5, prim.abs(centred))
    k = prim.floor(prim.add(prim.add(prim.mul(_slope(a, b, us), centred), mean), 0.43))
    valid = prim.ge(k, 0.0)
    count = prim.select(valid, k, 0.0)
    height = prim.log(prim.div(prim.mul(v, inverse_alpha), prim.add(prim.div(a, prim.mul(us, us)), b)))
    density = prim.sub(prim.sub(prim.mul(count, prim.log(mean)), mean), prim.lgamma(prim.add(count, 1.0)))
    return count, _accept(us, v, limit, valid, prim.le(height, density))


def _slope(a: Tensor, b: Tensor, us: Tensor) -> Tensor:
    return prim.add(prim.div(prim.mul(a, 2.0), us), b)


def _accept(us: Tensor, v: Tensor, limit: Tensor, valid: Tensor, below: Tensor) -> Tensor:
    """At once within the squeeze, else where the candidate is valid and lies below the density."""
    squeeze = prim.logical_and(prim.ge(us, 0.07), prim.le(v, limit))
    outside = prim.logical_and(prim.lt(us, 0.013), prim.gt(v, us))
    slow = prim.logical_and(prim.logical_and(valid, prim.logical_not(outside)), below)
    return prim.logical_and(valid, prim.logical_or(squeeze, slow))


@poisson.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.uniform(0.1, 30, (2, 3)))
    yield Sample(np.array([0.0, 100.0], np.float32))


@operator(random=True)
def binomial(count: Tensor, prob: Tensor, rng: Tensor | None = None, counter: int = 0) -> Tensor:
    """How many of `count` trials of probability `prob` succeed, as int64; the two broadcast.

    Below a mean of 10 by inversion, above by transformed rejection (Hörmann, 1993, BTRS); of the rarer outcome.
    """
    shape = prim.broadcast_shapes([count.shape, prob.shape])
    n, given = (prim.broadcast_to(prim.stop_gradient(prim.cast(v, dtype="float64")), shape) for v in (count, prob))
    flipped = prim.gt(given, 0.5)
    p = prim.select(flipped, prim.sub(1.0, given), given)
    planes = _planes(rng, counter, 2 * _COUNT_ATTEMPTS, tuple(shape), "float64")
    few = prim.lt(prim.mul(n, p), 10.0)
    small_n, small_p = prim.select(few, n, 1.0), prim.select(few, p, 0.5)
    odds = prim.div(small_p, prim.sub(1.0, small_p))
    none = prim.exp(prim.mul(small_n, prim.log1p(prim.neg(small_p))))
    steps = _invert(planes[0], none, lambda k: prim.mul(odds, prim.div(prim.sub(small_n, float(k)), k + 1.0)))
    large_n, large_p = prim.select(few, 40.0, n), prim.select(few, 0.5, p)
    attempts = [_binomial_attempt(large_n, large_p, u, v) for u, v in zip(planes[::2], planes[1::2], strict=True)]
    found = prim.select(few, prim.minimum(steps, small_n), _first_accepted(attempts))
    return prim.cast(prim.select(flipped, prim.sub(n, found), found), dtype="int64")


def _binomial_attempt(n: Tensor, p: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    q = prim.sub(1.0, p)
    spread = prim.sqrt(prim.mul(prim.mul(n, p), q))
    b = prim.add(prim.mul(spread, 2.53), 1.15)
    a = prim.add(prim.sub(prim.mul(b, 0.0248), 0.0873), prim.mul(p, 0.01))
    limit = prim.sub(0.92, prim.div(4.2, b))
    alpha = prim.mul(prim.add(prim.div(5.1, b), 2.83), spread)
    mode = prim.floor(prim.mul(prim.add(n, 1.0), p))
    centred = prim.sub(u, 0.5)
    us = prim.sub(0.5, prim.abs(centred))
    k = prim.floor(prim.add(prim.add(prim.mul(_slope(a, b, us), centred), prim.mul(n, p)), 0.5))
    valid = prim.logical_and(prim.ge(k, 0.0), prim.le(k, n))
    hits = prim.select(valid, k, mode)
    height = prim.log(prim.div(prim.mul(v, alpha), prim.add(prim.div(a, prim.mul(us, us)), b)))
    density = prim.add(
        prim.sub(_log_ways(n, hits), _log_ways(n, mode)),
        prim.mul(prim.sub(hits, mode), prim.log(prim.div(p, q))),
    )
    return hits, _accept(us, v, limit, valid, prim.le(height, density))


def _log_ways(n: Tensor, k: Tensor) -> Tensor:
    """The logarithm of 1 / (k! (n - k)!)."""
    return prim.neg(prim.add(prim.lgamma(prim.add(k, 1.0)), prim.lgamma(prim.add(prim.sub(n, k), 1.0))))


@binomial.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([[10.0], [100.0]]), np.array([0.15, 0.5, 0.9]))
