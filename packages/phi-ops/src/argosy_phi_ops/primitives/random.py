"""Randomness as a pure function of (seed, counter, index)."""

from __future__ import annotations

from argosy_phi_ops.axes import AxisNotation
from argosy_phi_ops.errors import DTypeError
from argosy_phi_ops.primitives.checks import require
from argosy_phi_ops.primitives.declaration import Shape, primitive
from argosy_pir.types import TensorType


@primitive("random")
def rng_bits(state: TensorType, *, shape: Shape, counter: int = 0) -> TensorType:
    """uint32 words of ``shape``: Philox4x32-10 of seed ``state[0]``, draw ``state[1] + counter``, by logical index.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """
    require(
        state.shape == (2,) and state.dtype == "uint64", f"prim.rng_bits: state {state} must be uint64 [2]", DTypeError
    )
    return TensorType(tuple(shape), "uint32")


@rng_bits.axes
def _(state: TensorType, *, shape: Shape, counter: int = 0) -> AxisNotation:
    return AxisNotation([[("!state",)]], [[(f"d{i}",) for i in range(len(shape))]])
