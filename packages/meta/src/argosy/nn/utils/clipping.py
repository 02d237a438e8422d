"""Gradients of parameters clipped in place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argosy.argument_checks import validate_call
from argosy.nn import functional as F
from argosy.nn.meshes import first_mesh, mesh_of, on_mesh
from argosy_autograd.modes import no_grad
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_value_"]


def _gradients(parameters: Iterable[Tensor] | Tensor) -> list[Any]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in given if p.grad is not None]


@validate_call
def clip_grad_norm_(
    parameters: Iterable[Tensor] | Tensor, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scale all gradients by one factor so that their norm together is at most ``max_norm``; returns that norm.

    norm_type: inf, 0, 1 or 2. Raises RuntimeError for a norm that is not finite with ``error_if_nonfinite``.
    """
    if not isinstance(max_norm, (int, float)) and not hasattr(max_norm, "__float__"):
        raise TypeError(f"clip_grad_norm_(): argument 'max_norm' must be a number, got {max_norm!r:.60}")
    order = float(norm_type)
    if order not in (float("inf"), 0.0, 1.0, 2.0):
        raise ValueError(f"clip_grad_norm_: norm_type is inf, 0, 1 or 2, got {norm_type}")
    if not hasattr(type(parameters), "__iter__"):
        raise TypeError(f"clip_grad_norm_(): argument 'parameters' must hold tensors, got {parameters!r:.60}")
    grads = _gradients(parameters)
    if not grads:
        return F.zeros([])
    with no_grad():
        norms = [_norm(g.detach(), order) for g in grads]
        home = first_mesh(norms)
        total = _norm(F.stack([on_mesh(home, norm) for norm in norms]), order)
        if error_if_nonfinite and not bool(F.isfinite(total)):
            raise RuntimeError(f"clip_grad_norm_: the norm of the gradients is {float(total)}, so nothing is clipped")
        factor = (float(max_norm) / (total + 1e-6)).clip(max=1.0)
        factors = {mesh: on_mesh(mesh, factor) for mesh in {mesh_of(grad): None for grad in grads}}
        for grad in grads:
            write(grad, grad * factors[mesh_of(grad)].astype(grad.dtype))
    return total  # type: ignore[no-any-return]


def _norm(x: Any, order: float) -> Any:
    if order == float("inf"):
        return x.abs().max()
    if order == 0.0:
        return (x != 0).astype(x.dtype).sum()
    return x.abs().sum() if order == 1.0 else (x * x).sum().sqrt()


@validate_call
def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: float) -> None:
    """Every element of every gradient into [-clip_value, clip_value]."""
    bound = float(clip_value)
    with no_grad():
        for grad in _gradients(parameters):
            write(grad, grad.clip(-bound, bound))
