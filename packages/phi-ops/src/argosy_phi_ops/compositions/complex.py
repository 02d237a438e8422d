"""Complex tensors as pairs of real ones, and back."""

# mypy: disable-error-code="no-any-return,index,operator"

from __future__ import annotations

from argosy_phi_ops.declare.composition import compose
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor


@compose()
def view_as_complex(input: Tensor) -> Tensor:
    """Complex numbers from pairs along the last axis."""
    return op("as_complex")(input)


@compose()
def view_as_real(input: Tensor) -> Tensor:
    """Real and imaginary part along a new last axis."""
    return op("as_real")(input)
