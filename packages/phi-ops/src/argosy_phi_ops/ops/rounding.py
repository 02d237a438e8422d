"""Rounding, elementwise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import DTypeError
from argosy_phi_ops.ops.common.arguments import INPUT
from argosy_phi_ops.primitives.checks import COMPLEX, FLOATING
from argosy_tensorcore.tensor import Tensor


def rounding_samples(rng: np.random.Generator) -> Iterator[Sample]:
    """Floats with infinities and NaN, and integers."""
    yield Sample(np.array([[1.5, np.nan, -np.inf], [np.inf, -0.0, -2.5]]))
    yield Sample(np.array([1, -2]))


def halves(rng: np.random.Generator) -> Iterator[Sample]:
    """Halves, which round in different ways, and integers, which are whole already."""
    yield Sample(np.array([[-2.5, -1.5, -0.5], [0.5, 1.5, 2.25]]))
    yield Sample(np.array([3, -4], np.int32))


def _check_real(name: str, x: Tensor) -> Tensor:
    """`x`, which holds whole numbers. Raises :class:`DTypeError` for complex ones, which have no order."""
    if x.dtype in COMPLEX:
        raise DTypeError(f"{name}(): argument 'x' should be a tensor of real numbers, got {x.type}")
    return x


@operator(axes="... -> ...", inplace=True, aliases=INPUT, samples=halves)
def floor(x: Tensor) -> Tensor:
    """The largest whole number not above each element."""
    return prim.floor(x) if x.dtype in FLOATING else _check_real("floor", x)


@operator(axes="... -> ...", inplace=True, aliases=INPUT, samples=halves)
def ceil(x: Tensor) -> Tensor:
    """The smallest whole number not below each element."""
    return prim.ceil(x) if x.dtype in FLOATING else _check_real("ceil", x)


@operator(axes="... -> ...", inplace=True, aliases=INPUT, samples=halves)
def trunc(input: Tensor) -> Tensor:
    """Each element without its fraction."""
    return prim.trunc(input) if input.dtype in FLOATING else _check_real("trunc", input)


@operator(axes="... -> ...", inplace=True, aliases=INPUT, samples=halves)
def frac(x: Tensor) -> Tensor:
    """The fraction of each element, with its sign: ``x - trunc(x)``."""
    return (
        prim.sub(x, prim.trunc(x)) if x.dtype in FLOATING else prim.constant(0, _check_real("frac", x).dtype, x.shape)
    )


@operator(axes="... -> ...", inplace=True, aliases=INPUT)
def round_(x: Tensor, decimals: int = 0) -> Tensor:
    """The nearest number with that many decimals, halves to the even one (negative: tens, hundreds...).

    Of complex numbers both parts; integers are what they are.
    """
    if x.dtype in COMPLEX:
        return prim.complex(*[_round(part, decimals) for part in (prim.real(x), prim.imag(x))])
    return _round(x, decimals) if x.dtype in FLOATING else x


def _round(x: Tensor, decimals: int) -> Tensor:
    if not decimals:
        return prim.round(x)
    factor = 10.0 ** abs(decimals)
    if decimals > 0:
        return prim.div(prim.round(prim.mul(x, factor)), factor)
    return prim.mul(prim.round(prim.div(x, factor)), factor)


@round_.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield from halves(rng)
    yield Sample(np.array([1.234, -5.678]), decimals=2)
    yield Sample(np.array([1234.0, -5678.0]), decimals=-2)
    yield Sample(np.array([0.4 + 1.6j, 2.5 - 3.5j]))
