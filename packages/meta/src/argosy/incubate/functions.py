"""Functions that Paddle has as kernels of their own; here they are compositions, which the compiler fuses."""

from __future__ import annotations

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy.argument_checks import validate_call
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = ["identity_loss", "softmax_mask_fuse", "softmax_mask_fuse_upper_triangle"]

_REDUCTIONS = ("sum", "mean", "none")


@validate_call
def softmax_mask_fuse(x: Tensor, mask: Tensor, name: str | None = None) -> Tensor:
    """``softmax(x + mask)`` along the last axis, of x [batch, heads, queries, keys]; mask broadcasts."""
    result: Tensor = op("softmax")(op("add")(x, mask), -1)
    return result


@validate_call
def softmax_mask_fuse_upper_triangle(x: Tensor) -> Tensor:
    """Softmax along the last axis of x [..., queries, keys], where each query sees keys up to its own place only."""
    seen = op("tril")(op("ones")(list(x.shape[-2:]), "bool"))
    result: Tensor = op("softmax")(op("where")(seen, x, float("-inf")), -1)
    return result


@validate_call
def identity_loss(x: Tensor, reduction: str | int = "none") -> Tensor:
    """``x`` as the loss: as it is ("none" or 2), its mean ("mean" or 1) or its sum ("sum" or 0)."""
    chosen = _REDUCTIONS[reduction] if isinstance(reduction, int) and 0 <= reduction < 3 else reduction
    if chosen not in _REDUCTIONS:
        raise ValueError(f"identity_loss(): reduction should be sum, mean or none, or 0 to 2, got {reduction!r}")
    result: Tensor = op("assign")(x) if chosen == "none" else op(str(chosen))(x)
    return result
