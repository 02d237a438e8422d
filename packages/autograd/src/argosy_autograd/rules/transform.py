"""Derivatives of Fourier transforms: linear maps, whose adjoint is the transform of the other sign."""

from __future__ import annotations

from typing import Any

from argosy_autograd.algebra import Value, where
from argosy_autograd.registry import jvp, vjp
from argosy_phi_ops import prim

Axes = tuple[int, ...]


@jvp("fft")
def _(y: Value, x: Value, dx: Value, **attributes: Any) -> Value:
    return prim.fft(dx, **attributes)


@vjp("fft")
def _(g: Value, y: Value, x: Value, *, axes: Axes, kind: str, inverse: bool, length: Any) -> Value:
    if kind == "c2c":
        return prim.fft(g, axes=axes, kind="c2c", inverse=not inverse)
    last = axes[-1]
    if kind == "r2c":  # the half spectrum, with zeros for the other half, transformed back
        missing = tuple(x.shape[last] - g.shape[last] if i == last else 0 for i in range(g.ndim))
        none = (0,) * g.ndim
        full = prim.pad(g, prim.constant(0, g.dtype), low=none, high=missing, interior=none)
        return prim.real(prim.fft(full, axes=axes, kind="c2c", inverse=not inverse))
    half = prim.fft(g, axes=axes, kind="r2c", inverse=not inverse)
    # A frequency that stands for itself and its mirror image counts twice; 0 and length / 2 are their own image.
    index = prim.iota(shape=half.shape, axis=last, dtype="int64")
    mirrored = prim.logical_and(prim.ge(index, 1), prim.le(index, prim.dim_size(dim=length - half.shape[last])))
    return where(mirrored, half * 2, half)
