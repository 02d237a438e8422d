"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Any

from argosy_phi_ops.declare.axes import AxisNotation
from argosy_phi_ops.primitives.checks import COMPLEX, REAL_OF, check_axes, check_dtype, require
from argosy_phi_ops.primitives.cost import Cost, cost_of_moving, elements
from argosy_phi_ops.primitives.declaration import Shape, primitive
from argosy_pir.types import TensorType

FFT_KINDS = ("c2c", "r2c", "c2r")
_COMPLEX_OF = {real: cplx for cplx, real in REAL_OF.items()}


@primitive("transform")
def fft(x: TensorType, *, axes: Shape, kind: str = "c2c", inverse: bool = False, length: Any = 0) -> TensorType:
    """Unscaled discrete Fourier transform over ``axes``, the last of them halved (r2c) or restored (c2r).

    ``length`` is the size of the last axis of a c2r result; ``inverse`` is the sign of the exponent.
    """
    require(kind in FFT_KINDS, f"prim.fft: kind {kind!r}, expected one of {', '.join(FFT_KINDS)}")
    check_dtype("fft", x, ("float32", "float64") if kind == "r2c" else COMPLEX)
    check_axes("fft", axes, len(x.shape))
    shape = list(x.shape)
    if kind == "r2c":
        shape[axes[-1]] = shape[axes[-1]] // 2 + 1
        return TensorType(tuple(shape), _COMPLEX_OF[x.dtype])
    if kind == "c2r":
        shape[axes[-1]] = length
        return TensorType(tuple(shape), REAL_OF[x.dtype])
    return x


@fft.axes
def _(x: TensorType, *, axes: Shape, **_: object) -> AxisNotation:
    term = [(f"d{i}",) for i in range(len(x.shape))]
    return AxisNotation([term], [term], frozenset(f"d{i}" for i in axes))


@fft.costs
def _(made: Sequence[TensorType], x: TensorType, *, axes: Shape, **_: Any) -> Cost:
    cells = max(elements(x.shape), elements(made[0].shape))
    length = max(elements(x.shape[i] for i in axes), elements(made[0].shape[i] for i in axes))
    return cost_of_moving((x,), made, 5 * cells * log2(max(2.0, length)))
