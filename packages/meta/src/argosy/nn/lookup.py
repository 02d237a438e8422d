"""Embedding with its option that changes the table: rows that grew too long are shortened where they stand."""

from __future__ import annotations

from argosy.argument_checks import validate_call
from argosy.framework.aliases import parameter_aliases
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["embedding"]


@parameter_aliases(input="x")
@validate_call
def embedding(
    x: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    sparse: bool = False,
    scale_grad_by_freq: bool = False,
    name: str | None = None,
) -> Tensor:
    """Rows of ``weight`` [classes, features] at the indices ``x``; those of ``padding_idx`` are zeros without gradient.

    max_norm: rows that are taken and whose norm (of order ``norm_type``) is above it are first scaled to it in
    ``weight`` itself, in place. scale_grad_by_freq: a row's gradient is the mean over the places that take it, not the
    sum. Gradients are dense, also with ``sparse``. Raises ValueError for a ``max_norm`` that is not positive.
    """
    if max_norm is not None and weight.size:
        _shorten(weight, x, max_norm, norm_type)
    lookup = get_operator("embedding")
    return lookup(x, weight, padding_idx, sparse, scale_grad_by_freq)  # type: ignore[no-any-return]


def _shorten(weight: Tensor, x: Tensor, limit: float, order: float) -> None:
    if not limit > 0:
        raise ValueError(f"embedding: max_norm should be positive, got {limit!r}")
    with no_grad():
        taken = x.flatten()
        rows = weight.index_select(taken)
        norms = rows.norm(p=order, axis=-1, keepdim=True)
        scale = get_operator("where")(norms > limit, limit / (norms + 1e-7), 1.0)
        write(weight, weight.scatter(taken, rows * scale))
