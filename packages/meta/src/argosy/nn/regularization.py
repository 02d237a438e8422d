"""Dropout that draws random numbers only when it uses them."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.argument_checks import validate_call
from argosy.framework.aliases import parameter_aliases
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["dropout", "overwritten"]


def overwritten(x: Tensor, result: Tensor) -> Tensor:
    """``x`` with the elements of ``result``, as in-place operators leave it. Raises ValueError for a leaf."""
    write(x, result)
    return x


@parameter_aliases(input="x")
@validate_call
def dropout(
    x: Tensor,
    p: float = 0.5,
    axis: int | Sequence[int] | None = None,
    training: bool = True,
    inplace: bool = False,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """Zero each element (or each slice along ``axis``) with probability ``p`` while training.

    mode: ``"upscale_in_train"`` divides the rest by 1 - p and copies in evaluation, where no random number is drawn
    (training with p = 0 gives the input itself); ``"downscale_in_infer"`` multiplies by 1 - p in evaluation instead.
    inplace: write the result over ``x``.
    """
    if type(p) in (int, float) and not 0 <= p <= 1:  # the operator says so, too; an evaluation never gets there
        raise ValueError(f"dropout: p is a probability, from 0 to 1, got {p}")
    if mode == "upscale_in_train" and type(x) is Tensor and (not training or p == 0):
        return x if inplace or training else get_operator("clone")(x)
    result: Tensor = get_operator("dropout")(x, p=p, axis=axis, training=training, mode=mode)
    return overwritten(x, result) if inplace else result
