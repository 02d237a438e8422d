"""Exponentials and logarithms, elementwise, and the logistic function made of them."""

from __future__ import annotations

from collections.abc import Iterator
from math import log as natural_log

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.common.arguments import INPUT, pairs, positive_samples, real_samples
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_tensorcore.tensor import Tensor


@operator(axes="..., ... -> ...", promote="widest float", upcast=True, samples=pairs)
def logaddexp(x: Tensor, y: Tensor) -> Tensor:
    """``log(exp(x) + exp(y))`` without overflow."""
    below = prim.lt(x, y)
    larger = prim.select(below, y, x)
    both = prim.logical_and(prim.eq(x, y), prim.is_inf(x))  # equal infinities would give NaN below
    difference = prim.select(both, 0.0, prim.select(below, prim.sub(x, y), prim.sub(y, x)))
    return prim.add(larger, prim.log1p(prim.exp(difference)))


def above_one(rng: np.random.Generator) -> Iterator[Sample]:
    """Numbers above one."""
    yield Sample(rng.uniform(1.1, 3, (2, 3)))


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["exp"], samples=real_samples
)
def exp(x: Tensor) -> Tensor:
    """``e ** x`` elementwise."""
    return prim.exp(x)


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["expm1"], samples=real_samples
)
def expm1(x: Tensor) -> Tensor:
    """``e ** x - 1`` elementwise, accurate near 0."""
    return prim.expm1(x)


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["log"], samples=positive_samples
)
def log(x: Tensor) -> Tensor:
    """The natural logarithm elementwise."""
    return prim.log(x)


@operator(
    axes="... -> ...",
    promote="float",
    inplace=True,
    aliases=INPUT,
    reference=KERNELS["log1p"],
    samples=positive_samples,
)
def log1p(x: Tensor) -> Tensor:
    """``log(1 + x)`` elementwise, accurate near 0."""
    return prim.log1p(x)


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["logistic"], samples=real_samples
)
def sigmoid(x: Tensor) -> Tensor:
    """The logistic function ``1 / (1 + exp(-x))``."""
    return prim.logistic(x)


def _logarithm(x: Tensor, base: int) -> Tensor:
    """Complex numbers by parts: divided as such, an infinite real part would make the other one NaN."""
    found, scale = prim.log(x), natural_log(base)
    if x.dtype not in COMPLEX:
        return prim.div(found, scale)
    return prim.complex(prim.div(prim.real(found), scale), prim.div(prim.imag(found), scale))


@operator(axes="... -> ...", promote="float", inplace=True, aliases=INPUT, upcast=True, samples=positive_samples)
def log2(x: Tensor) -> Tensor:
    """The logarithm to base 2 elementwise."""
    return _logarithm(x, 2)


@operator(axes="... -> ...", promote="float", inplace=True, aliases=INPUT, upcast=True, samples=positive_samples)
def log10(x: Tensor) -> Tensor:
    """The logarithm to base 10 elementwise."""
    return _logarithm(x, 10)


@operator(axes="... -> ...", promote="float", inplace=True, upcast=True)
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``, of `x` moved into [eps, 1 - eps] if given; NaN outside [0, 1] otherwise."""
    if eps is not None:
        x = prim.minimum(prim.maximum(x, eps), 1 - eps)
    outside = prim.sub(prim.log(x), prim.log1p(prim.neg(x)))  # its derivative at 0 and 1 is infinite, not NaN
    middle = prim.lt(prim.abs(prim.sub(x, 0.5)), 0.25)  # where the difference cancels
    inside = prim.select(middle, x, 0.5)
    quotient = prim.div(prim.sub(prim.mul(inside, 2.0), 1.0), prim.sub(1.0, inside))
    return prim.select(middle, prim.log1p(quotient), outside)


@logit.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.uniform(0.1, 0.9, (2, 3)))
    yield Sample(np.array([-1.0, 0.5, 2.0]), eps=0.1)
