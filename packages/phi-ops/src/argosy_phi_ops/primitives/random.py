"""Randomness as a pure function of (seed, counter, index)."""

from __future__ import annotations

from argosy_phi_ops.declare.axes import AxisNotation
from argosy_phi_ops.errors import DTypeError
from argosy_phi_ops.primitives.checks import require
from argosy_phi_ops.primitives.declaration import Shape, primitive
from argosy_pir.types import TensorType


@primitive("random", work=100)
def rng_bits(state: TensorType, *, shape: Shape, counter: int = 0, start: Shape = (), whole: Shape = ()) -> TensorType:
    """uint32 words of ``shape``: Philox4x32-10 of seed ``state[0]``, draw ``state[1] + counter``, by logical index.

    With ``whole`` and ``start`` the result is the block at ``start`` of the draw of shape ``whole``: a rank's part.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """
    require(
        state.shape == (2,) and state.dtype == "uint64", f"prim.rng_bits: state {state} must be uint64 [2]", DTypeError
    )
    require(
        len(start) == len(whole) and len(whole) in (0, len(shape)),
        f"prim.rng_bits: start {start} and whole {whole} must have the rank of shape {shape}, or be empty",
    )
    return TensorType(tuple(shape), "uint32")


@rng_bits.axes
def _(state: TensorType, *, shape: Shape, counter: int = 0, start: Shape = (), whole: Shape = ()) -> AxisNotation:
    return AxisNotation([[("state",)]], [[(f"d{i}",) for i in range(len(shape))]], frozenset({"state"}))
