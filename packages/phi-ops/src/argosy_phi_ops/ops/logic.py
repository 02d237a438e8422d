"""Logic, elementwise with broadcasting: comparisons, tests of numbers, operators on truth values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.ops.common.arguments import INPUT_OTHER, boolean_pairs, integer_pairs, pairs
from argosy_phi_ops.ops.rounding import rounding_samples
from argosy_phi_ops.primitives.checks import INEXACT
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_tensorcore.tensor import Tensor


def comparison_samples(rng: np.random.Generator) -> Iterator[Sample]:
    """Floats that differ, integers that may be equal."""
    yield from pairs(rng)
    yield from integer_pairs(rng)


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases=INPUT_OTHER,
    reference=KERNELS["eq"],
    samples=comparison_samples,
)
def equal(x: Tensor, y: Tensor) -> Tensor:
    """Whether ``x == y``, elementwise with broadcasting."""
    return prim.eq(x, y)


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases=INPUT_OTHER,
    reference=KERNELS["ne"],
    samples=comparison_samples,
)
def not_equal(x: Tensor, y: Tensor) -> Tensor:
    """Whether ``x != y``, elementwise with broadcasting."""
    return prim.ne(x, y)


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases=INPUT_OTHER,
    reference=KERNELS["lt"],
    samples=comparison_samples,
)
def less_than(x: Tensor, y: Tensor) -> Tensor:
    """Whether ``x < y``, elementwise with broadcasting."""
    return prim.lt(x, y)


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases=INPUT_OTHER,
    reference=KERNELS["le"],
    samples=comparison_samples,
)
def less_equal(x: Tensor, y: Tensor) -> Tensor:
    """Whether ``x <= y``, elementwise with broadcasting."""
    return prim.le(x, y)


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases=INPUT_OTHER,
    reference=KERNELS["gt"],
    samples=comparison_samples,
)
def greater_than(x: Tensor, y: Tensor) -> Tensor:
    """Whether ``x > y``, elementwise with broadcasting."""
    return prim.gt(x, y)


@operator(
    axes="..., ... -> ...",
    promote="binary",
    inplace=True,
    aliases=INPUT_OTHER,
    reference=KERNELS["ge"],
    samples=comparison_samples,
)
def greater_equal(x: Tensor, y: Tensor) -> Tensor:
    """Whether ``x >= y``, elementwise with broadcasting."""
    return prim.ge(x, y)


def _truth(x: Tensor) -> Tensor:
    return x if x.dtype == "bool" else prim.cast(x, dtype="bool")


@operator(axes="..., ... -> ...", inplace=True, reference=KERNELS["logical_and"], samples=boolean_pairs)
def logical_and(x: Tensor, y: Tensor) -> Tensor:
    """Whether both hold; numbers count as true unless they are zero."""
    return prim.logical_and(_truth(x), _truth(y))


@operator(axes="..., ... -> ...", inplace=True, reference=KERNELS["logical_or"], samples=boolean_pairs)
def logical_or(x: Tensor, y: Tensor) -> Tensor:
    """Whether one holds; numbers count as true unless they are zero."""
    return prim.logical_or(_truth(x), _truth(y))


@operator(axes="..., ... -> ...", inplace=True, reference=KERNELS["logical_xor"], samples=boolean_pairs)
def logical_xor(x: Tensor, y: Tensor) -> Tensor:
    """Whether exactly one holds; numbers count as true unless they are zero."""
    return prim.logical_xor(_truth(x), _truth(y))


@operator(axes="... -> ...", inplace=True, reference=KERNELS["logical_not"])
def logical_not(x: Tensor) -> Tensor:
    """Whether each element is false (zero)."""
    return prim.logical_not(_truth(x))


@logical_not.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.random((2, 3)) < 0.5)
    yield Sample(np.array([0.0, 2.0]))


@operator(axes="..., ... -> ...", promote="binary")
def isclose(x: Tensor, y: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether ``|x - y| <= atol + rtol * |y|``; infinities are close to themselves, NaN to NaN if `equal_nan`."""
    if x.dtype not in INEXACT:
        x, y = prim.cast(x, dtype="float64"), prim.cast(y, dtype="float64")
    within = prim.le(prim.abs(prim.sub(x, y)), prim.add(prim.mul(prim.abs(y), rtol), atol))
    close = prim.logical_or(prim.eq(x, y), prim.logical_and(within, prim.is_finite(y)))
    if equal_nan:
        close = prim.logical_or(close, prim.logical_and(prim.is_nan(x), prim.is_nan(y)))
    return close


@isclose.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = np.array([1.0, np.nan, np.inf, 5.0])
    yield Sample(x, x + np.array([1e-9, 0, 0, 1]))
    yield Sample(x, x, equal_nan=True)


@operator(promote="binary")
def allclose(x: Tensor, y: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether all elements are close; see :func:`isclose`."""
    close = isclose(x, y, rtol, atol, equal_nan)
    return prim.reduce_and(close, axes=tuple(range(close.ndim)))


@allclose.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3))
    yield Sample(x, x + 1e-12)
    yield Sample(x, x + 1)


@operator()
def equal_all(x: Tensor, y: Tensor) -> Tensor:
    """Whether `x` and `y` have the same shape and elements."""
    if x.shape != y.shape:
        return prim.constant(False, "bool")
    return prim.reduce_and(prim.eq(x, y), axes=tuple(range(x.ndim)))


@equal_all.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3))
    yield Sample(x, x)
    yield Sample(x, x[:1])


@operator(axes="... -> ...", reference=KERNELS["is_finite"], samples=rounding_samples)
def isfinite(x: Tensor) -> Tensor:
    """Whether each element is neither infinite nor NaN."""
    return prim.is_finite(x)


@operator(axes="... -> ...", reference=KERNELS["is_nan"], samples=rounding_samples)
def isnan(x: Tensor) -> Tensor:
    """Whether each element is NaN."""
    return prim.is_nan(x)


@operator(axes="... -> ...", reference=KERNELS["is_inf"], samples=rounding_samples)
def isinf(x: Tensor) -> Tensor:
    """Whether each element is infinite."""
    return prim.is_inf(x)


@operator(axes="... -> ...", samples=rounding_samples)
def isposinf(x: Tensor) -> Tensor:
    """Whether each element is plus infinity."""
    return prim.logical_and(prim.is_inf(x), prim.gt(x, 0))


@operator(axes="... -> ...", samples=rounding_samples)
def isneginf(x: Tensor) -> Tensor:
    """Whether each element is minus infinity."""
    return prim.logical_and(prim.is_inf(x), prim.lt(x, 0))


@operator(axes="... -> ...")
def isreal(x: Tensor) -> Tensor:
    """Whether the imaginary part is zero."""
    if not x.dtype.startswith("complex"):
        return prim.constant(True, "bool", x.shape)
    return prim.eq(prim.imag(x), 0.0)


@isreal.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(np.array([1 + 0j, 2 - 1j]))
    yield Sample(rng.standard_normal(3))
