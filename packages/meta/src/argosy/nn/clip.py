"""Gradient clipping: callables from pairs (parameter, gradient) to pairs, for ``grad_clip`` of an optimizer.

Parameters whose ``need_clip`` is False keep their gradient and count for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.argument_checks import validate_call
from argosy.nn.meshes import first_mesh, mesh_of, on_mesh
from argosy_tensorcore.tensor import Tensor

__all__ = ["ClipGradBase", "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "Pairs"]

Pairs = Sequence[tuple[Tensor, "Tensor | None"]]


class ClipGradBase:
    """A way to clip gradients: ``_clip`` of each, where the parameter is one of those to be clipped."""

    @validate_call
    def __call__(self, params_grads: Pairs) -> list[tuple[Tensor, Tensor | None]]:
        """The pairs with clipped gradients."""
        return [(p, self._clip(g) if _is_clipped(p, g) else g) for p, g in params_grads]

    def _clip(self, grad: Any) -> Tensor:
        raise NotImplementedError


def _is_clipped(parameter: Tensor, grad: Tensor | None) -> bool:
    return grad is not None and bool(getattr(parameter, "need_clip", True))


class ClipGradByValue(ClipGradBase):
    """Every element into [min, max]; ``min`` is ``-max`` by default."""

    @validate_call
    def __init__(self, max: float, min: float | None = None) -> None:
        self.max = float(max)
        self.min = -self.max if min is None else float(min)
        if self.min > self.max:
            raise ValueError(f"ClipGradByValue: min {self.min} is greater than max {self.max}")

    def _clip(self, grad: Any) -> Tensor:
        return grad.clip(self.min, self.max)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"ClipGradByValue(max={self.max}, min={self.min})"


class ClipGradByNorm(ClipGradBase):
    """Each gradient scaled so that its 2-norm is at most ``clip_norm``."""

    @validate_call
    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = _check_positive(clip_norm, "ClipGradByNorm")

    def _clip(self, grad: Any) -> Tensor:
        norm = (grad * grad).sum().sqrt()
        return grad * (self.clip_norm / norm.clip(min=self.clip_norm))  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"ClipGradByNorm(clip_norm={self.clip_norm})"


class ClipGradByGlobalNorm(ClipGradBase):
    """All gradients scaled by one factor so that the 2-norm of all together is at most ``clip_norm``.

    They may lie on several meshes: the squares meet on the first one, and the factor goes back to each.
    """

    @validate_call
    def __init__(self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False) -> None:
        self.clip_norm = _check_positive(clip_norm, "ClipGradByGlobalNorm")
        self.group_name = group_name
        self.auto_skip_clip = auto_skip_clip

    @validate_call
    def __call__(self, params_grads: Pairs) -> list[tuple[Tensor, Tensor | None]]:
        """The pairs with clipped gradients."""
        clipped: list[Any] = [g for p, g in params_grads if _is_clipped(p, g)]
        if not clipped:
            return list(params_grads)
        total = self._square_total([(p, g) for p, g in params_grads if _is_clipped(p, g)])
        scale = self.clip_norm / total.sqrt().clip(min=self.clip_norm)
        scales = {mesh: on_mesh(mesh, scale) for mesh in {mesh_of(g): None for g in clipped}}
        return [(p, _scale(g, scales[mesh_of(g)]) if _is_clipped(p, g) else g) for p, g in params_grads]

    def _square_total(self, pairs: Pairs, beside: Any = None) -> Any:
        """The sum of the gradients' squares, on the mesh of ``beside`` where that is given."""
        total = _sum_over_meshes([_squared_l2_norm(g) for _, g in pairs])
        return total if beside is None else on_mesh(mesh_of(beside), total)

    def __repr__(self) -> str:
        return f"ClipGradByGlobalNorm(clip_norm={self.clip_norm})"


def _squared_l2_norm(grad: Any) -> Any:
    wide = grad.cast("float32") if grad.dtype.itemsize < 4 else grad
    return (wide * wide).sum()


def _sum_over_meshes(squares: Sequence[Any]) -> Any:
    """The sum of numbers, each on a mesh of its own or on none: those of a mesh first."""
    sums: dict[Any, Any] = {}
    for square in squares:
        mesh = mesh_of(square)
        sums[mesh] = sums[mesh] + square if mesh in sums else square
    home = first_mesh(sums.values())
    total, *others = (on_mesh(home, part) for part in sums.values())
    for part in others:
        total = total + part
    return total


def _scale(grad: Any, scale: Any) -> Tensor:
    return grad * (scale if scale.dtype is grad.dtype else scale.cast(grad.dtype))  # type: ignore[no-any-return]


def _check_positive(clip_norm: float, name: str) -> float:
    value = float(clip_norm)
    if not value > 0:
        raise ValueError(f"{name}: clip_norm must be positive, got {clip_norm}")
    return value
