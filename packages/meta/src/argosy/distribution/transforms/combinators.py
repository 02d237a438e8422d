"""Transforms made of others."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.distribution import variable
from argosy.distribution.parameters import event_sum
from argosy.distribution.transforms.base import Transform, require_transforms
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["IndependentTransform", "StackTransform"]


class IndependentTransform(Transform):
    """``base`` with ``reinterpreted_batch_rank`` more axes in each event, over which log-determinants add up."""

    def __init__(self, base: Transform, reinterpreted_batch_rank: int) -> None:
        if not isinstance(base, Transform):
            raise TypeError(f"IndependentTransform: base should be a Transform, got {type(base).__name__}")
        if reinterpreted_batch_rank <= 0:
            raise ValueError(
                f"IndependentTransform: reinterpreted_batch_rank should be positive, got {reinterpreted_batch_rank}"
            )
        self._base, self._reinterpreted_batch_rank = base, reinterpreted_batch_rank

    def _is_injective(self) -> bool:
        return self._base._is_injective()

    def _forward(self, x: Any) -> Any:
        return self._base.forward(x)

    def _inverse(self, y: Any) -> Any:
        return self._base.inverse(y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return event_sum(self._base.forward_log_det_jacobian(x), self._reinterpreted_batch_rank)

    def _forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._base.forward_shape(shape)

    def _inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._base.inverse_shape(shape)

    @property
    def _domain(self) -> variable.Variable:
        return variable.Independent(self._base._domain, self._reinterpreted_batch_rank)

    @property
    def _codomain(self) -> variable.Variable:
        return variable.Independent(self._base._codomain, self._reinterpreted_batch_rank)


class StackTransform(Transform):
    """A transform for each slice along ``axis``, whose size is their number."""

    def __init__(self, transforms: Sequence[Transform], axis: int = 0) -> None:
        require_transforms("StackTransform", transforms)
        if not transforms:
            raise TypeError("StackTransform: transforms should hold one transform at least, got none")
        if not isinstance(axis, int):
            raise TypeError(f"StackTransform: axis should be an integer, got {type(axis).__name__}")
        self._transforms, self._axis = transforms, axis

    def _is_injective(self) -> bool:
        return all(t._is_injective() for t in self._transforms)

    @property
    def transforms(self) -> Sequence[Transform]:
        """The transforms of the slices."""
        return self._transforms

    @property
    def axis(self) -> int:
        """Where the slices lie."""
        return self._axis

    def _forward(self, x: Any) -> Any:
        return self._each(x, lambda t, part: t.forward(part))

    def _inverse(self, y: Any) -> Any:
        return self._each(y, lambda t, part: t.inverse(part))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return self._each(x, lambda t, part: t.forward_log_det_jacobian(part))

    def _each(self, value: Tensor, apply: Callable[[Transform, Tensor], Tensor]) -> Tensor:
        rank = len(value.shape)
        if not -rank <= self._axis < rank:
            raise ValueError(f"StackTransform: axis {self._axis} is none of {list(value.shape)}")
        if value.shape[self._axis] != len(self._transforms):
            raise ValueError(
                f"StackTransform: {len(self._transforms)} slices along axis {self._axis}, got {list(value.shape)}"
            )
        parts = get_operator("unbind")(value, self._axis)
        return get_operator("stack")([apply(t, p) for t, p in zip(self._transforms, parts, strict=True)], self._axis)

    @property
    def _domain(self) -> variable.Variable:
        return variable.Stack([t._domain for t in self._transforms], self._axis)

    @property
    def _codomain(self) -> variable.Variable:
        return variable.Stack([t._codomain for t in self._transforms], self._axis)
