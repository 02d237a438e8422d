"""Complex numbers, elementwise: parts, angles, conjugates."""

from __future__ import annotations

from collections.abc import Iterator
from math import pi

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import complex_too
from argosy_phi_ops.primitives.checks import COMPLEX
from argosy_tensorcore.tensor import Tensor


@operator(axes="... -> ...", samples=complex_too)
def real_(x: Tensor) -> Tensor:
    """The real part; a real `x` itself."""
    return prim.real(x) if x.dtype in COMPLEX else x


@operator(axes="... -> ...", samples=complex_too)
def imag(x: Tensor) -> Tensor:
    """The imaginary part; zeros of a real `x`."""
    return prim.imag(x) if x.dtype in COMPLEX else prim.constant(0, x.dtype, x.shape)


@operator(axes="... -> ...", samples=complex_too)
def conj(x: Tensor) -> Tensor:
    """The complex conjugate; a real `x` itself."""
    return prim.conj(x) if x.dtype in COMPLEX else x


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


@operator()
def as_complex(x: Tensor) -> Tensor:
    """Pairs along the last axis as complex numbers."""
    if x.ndim == 0 or x.shape[-1] != 2:
        raise ShapeError(f"as_complex needs a last axis of size 2, got {x.type}")
    parts = []
    for i in (0, 1):
        start, limit = [0] * x.ndim, list(x.shape)
        start[-1], limit[-1] = i, i + 1
        part = prim.slice(x, start=tuple(start), limit=tuple(limit), stride=(1,) * x.ndim)
        parts.append(prim.reshape(part, shape=x.shape[:-1]))
    return prim.complex(*parts)


@as_complex.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4, 2)))


@operator()
def as_real(x: Tensor) -> Tensor:
    """Complex numbers as pairs along a new last axis."""
    shape = (*x.shape, 1)
    parts = [prim.reshape(part, shape=shape) for part in (prim.real(x), prim.imag(x))]
    return prim.concat(*parts, axis=x.ndim)


@as_real.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4)))


@operator(axes="..., ... -> ...", promote="float")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of those sizes and angles."""
    shape = prim.broadcast_shapes([abs.shape, angle.shape])
    abs, angle = prim.broadcast_to(abs, shape), prim.broadcast_to(angle, shape)
    return prim.complex(prim.mul(abs, prim.cos(angle)), prim.mul(abs, prim.sin(angle)))


@polar.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.uniform(0.1, 2, (2, 3)), rng.standard_normal(3))
