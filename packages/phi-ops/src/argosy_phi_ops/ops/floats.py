"""What floating and complex numbers are made of: rounding, special values, real and imaginary parts."""

from __future__ import annotations

from collections.abc import Iterator
from math import pi

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import DTypeError
from argosy_phi_ops.ops.arguments import complex_too
from argosy_phi_ops.primitives.checks import COMPLEX, FLOATING
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_tensorcore.dtype import finfo
from argosy_tensorcore.tensor import Tensor


def gapped(rng: np.random.Generator) -> Iterator[Sample]:
    """Floats with infinities and NaN, and integers."""
    yield Sample(np.array([[1.5, np.nan, -np.inf], [np.inf, -0.0, -2.5]]))
    yield Sample(np.array([1, -2]))


def halves(rng: np.random.Generator) -> Iterator[Sample]:
    """Halves, which round in different ways, and integers, which are whole already."""
    yield Sample(np.array([[-2.5, -1.5, -0.5], [0.5, 1.5, 2.25]]))
    yield Sample(np.array([3, -4], np.int32))


def _whole(name: str, x: Tensor) -> Tensor:
    """`x`, which holds whole numbers. Raises :class:`DTypeError` for complex ones, which have no order."""
    if x.dtype in COMPLEX:
        raise DTypeError(f"{name}(): argument 'x' should be a tensor of real numbers, got {x.type}")
    return x


@operator(axes="... -> ...", inplace=True, aliases={"input": "x"})
def floor(x: Tensor) -> Tensor:
    """The largest whole number not above each element."""
    return prim.floor(x) if x.dtype in FLOATING else _whole("floor", x)


floor.samples(halves)


@operator(axes="... -> ...", inplace=True, aliases={"input": "x"})
def ceil(x: Tensor) -> Tensor:
    """The smallest whole number not below each element."""
    return prim.ceil(x) if x.dtype in FLOATING else _whole("ceil", x)


ceil.samples(halves)


@operator(axes="... -> ...", inplace=True, aliases={"input": "x"})
def trunc(input: Tensor) -> Tensor:
    """Each element without its fraction."""
    return prim.trunc(input) if input.dtype in FLOATING else _whole("trunc", input)


trunc.samples(halves)


@operator(axes="... -> ...", inplace=True, aliases={"input": "x"})
def frac(x: Tensor) -> Tensor:
    """The fraction of each element, with its sign: ``x - trunc(x)``."""
    return prim.sub(x, prim.trunc(x)) if x.dtype in FLOATING else prim.constant(0, _whole("frac", x).dtype, x.shape)


frac.samples(halves)


@operator(axes="... -> ...", inplace=True, aliases={"input": "x"})
def round_(x: Tensor, decimals: int = 0) -> Tensor:
    """The nearest number with that many decimals, halves to the even one (negative: tens, hundreds...).

    Of complex numbers both parts; integers are what they are.
    """
    if x.dtype in COMPLEX:
        return prim.complex(*[_rounded(part, decimals) for part in (prim.real(x), prim.imag(x))])
    return _rounded(x, decimals) if x.dtype in FLOATING else x


def _rounded(x: Tensor, decimals: int) -> Tensor:
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


@operator(axes="... -> ...")
def isfinite(x: Tensor) -> Tensor:
    """Whether each element is neither infinite nor NaN."""
    return prim.is_finite(x)


isfinite.reference(KERNELS["is_finite"])


isfinite.samples(gapped)


@operator(axes="... -> ...")
def isnan(x: Tensor) -> Tensor:
    """Whether each element is NaN."""
    return prim.is_nan(x)


isnan.reference(KERNELS["is_nan"])


isnan.samples(gapped)


@operator(axes="... -> ...")
def isinf(x: Tensor) -> Tensor:
    """Whether each element is infinite."""
    return prim.is_inf(x)


isinf.reference(KERNELS["is_inf"])


isinf.samples(gapped)


@operator(axes="... -> ...")
def isposinf(x: Tensor) -> Tensor:
    """Whether each element is plus infinity."""
    return prim.logical_and(prim.is_inf(x), prim.gt(x, 0))


isposinf.samples(gapped)


@operator(axes="... -> ...")
def isneginf(x: Tensor) -> Tensor:
    """Whether each element is minus infinity."""
    return prim.logical_and(prim.is_inf(x), prim.lt(x, 0))


isneginf.samples(gapped)


@operator(axes="... -> ...", inplace=True, aliases={"input": "x"})
def nan_to_num(x: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """NaN and infinities replaced by numbers; by default the infinities become the largest finite ones."""
    if x.dtype not in FLOATING:
        return x
    largest = finfo(x.dtype).max
    bounded = prim.select(prim.is_nan(x), nan, x)
    bounded = prim.select(prim.eq(bounded, float("inf")), largest if posinf is None else posinf, bounded)
    return prim.select(prim.eq(bounded, float("-inf")), -largest if neginf is None else neginf, bounded)


nan_to_num.samples(gapped)


@operator(axes="... -> ...")
def real_(x: Tensor) -> Tensor:
    """The real part; a real `x` itself."""
    return prim.real(x) if x.dtype in COMPLEX else x


real_.samples(complex_too)


@operator(axes="... -> ...")
def imag(x: Tensor) -> Tensor:
    """The imaginary part; zeros of a real `x`."""
    return prim.imag(x) if x.dtype in COMPLEX else prim.constant(0, x.dtype, x.shape)


imag.samples(complex_too)


@operator(axes="... -> ...")
def conj(x: Tensor) -> Tensor:
    """The complex conjugate; a real `x` itself."""
    return prim.conj(x) if x.dtype in COMPLEX else x


conj.samples(complex_too)


@operator(axes="... -> ...", promote="float")
def angle(x: Tensor) -> Tensor:
    """The angle of each number in the complex plane; 0 or pi for real ones."""
    if x.dtype in COMPLEX:
        return prim.atan2(prim.imag(x), prim.real(x))
    return prim.select(prim.is_nan(x), x, prim.select(prim.lt(x, 0.0), pi, prim.constant(0, x.dtype, x.shape)))


@angle.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield from complex_too(rng)
    yield Sample(np.array([-1.0, 0.0, 2.0, np.nan]))


@operator(axes="..., ... -> ...", promote="float")
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    """``real + i imag`` with broadcasting."""
    return prim.complex(real, imag)


@complex_.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)), rng.standard_normal(3))
