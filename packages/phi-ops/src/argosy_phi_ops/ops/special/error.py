"""The error function and its inverse."""

from __future__ import annotations

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import operator
from argosy_phi_ops.ops.common.arguments import INPUT, real_samples, unit
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_tensorcore.tensor import Tensor


@operator(
    axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["erf"], samples=real_samples
)
def erf(x: Tensor) -> Tensor:
    """The error function."""
    return prim.erf(x)


@operator(axes="... -> ...", promote="float", inplace=True, aliases=INPUT, reference=KERNELS["erfinv"], samples=unit)
def erfinv(x: Tensor) -> Tensor:
    """The inverse of the error function on (-1, 1)."""
    return prim.erfinv(x)
