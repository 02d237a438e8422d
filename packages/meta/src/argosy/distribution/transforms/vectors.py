"""Transforms of events that have axes."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from argosy.distribution import constraint, variable
from argosy.distribution.transforms.base import Transform, Type
from argosy.nn import functional as F
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["ReshapeTransform", "SoftmaxTransform", "StickBreakingTransform"]


class ReshapeTransform(Transform):
    """Events of ``in_event_shape`` as events of ``out_event_shape``. Raises ``TypeError`` for no sequences,
    ``ValueError`` for different numbers of elements."""

    _type = Type.BIJECTION

    def __init__(self, in_event_shape: Sequence[int], out_event_shape: Sequence[int]) -> None:
        self._check_shape(in_event_shape)
        self._check_shape(out_event_shape)
        if prod(in_event_shape) != prod(out_event_shape):
            raise ValueError(f"ReshapeTransform: {list(in_event_shape)} and {list(out_event_shape)} differ in size")
        self._in_event_shape, self._out_event_shape = tuple(in_event_shape), tuple(out_event_shape)

    @property
    def in_event_shape(self) -> tuple[int, ...]:
        """The shape of an argument's events."""
        return self._in_event_shape

    @property
    def out_event_shape(self) -> tuple[int, ...]:
        """The shape of a value's events."""
        return self._out_event_shape

    @property
    def _domain(self) -> variable.Variable:
        return variable.Independent(variable.real, len(self._in_event_shape))

    @property
    def _codomain(self) -> variable.Variable:
        return variable.Independent(variable.real, len(self._out_event_shape))

    def _forward(self, x: Any) -> Any:
        return x.reshape(list(self._forward_shape(x.shape)))

    def _inverse(self, y: Any) -> Any:
        return y.reshape(list(self._inverse_shape(y.shape)))

    def _forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return _replace(tuple(shape), self._in_event_shape, self._out_event_shape)

    def _inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return _replace(tuple(shape), self._out_event_shape, self._in_event_shape)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        batch = x.shape[: len(x.shape) - len(self._in_event_shape)]
        return get_operator("zeros")(list(batch), x.dtype.name)


def _replace(shape: tuple[int, ...], old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    cut = len(shape) - len(old)
    if cut < 0 or shape[cut:] != old:
        raise ValueError(f"ReshapeTransform: a shape that ends in {list(old)} was expected, got {list(shape)}")
    return shape[:cut] + new


class SoftmaxTransform(Transform):
    """Vectors as points of a simplex: not injective, for a constant added to all elements changes nothing."""

    _type = Type.OTHER
    _domain = variable.Independent(variable.real, 1)
    _codomain = variable.Variable(False, 1, constraint.simplex)

    def _forward(self, x: Any) -> Any:
        return F.softmax(x, -1)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def _forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _with_an_axis("SoftmaxTransform", shape)

    def _inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _with_an_axis("SoftmaxTransform", shape)


def _with_an_axis(owner: str, shape: Sequence[int]) -> Sequence[int]:
    if not shape:
        raise ValueError(f"{owner}: events have one axis, got the shape {list(shape)}")
    return shape


class StickBreakingTransform(Transform):
    """Vectors of n numbers as points of a simplex of n + 1: each breaks its share off what the ones before left."""

    _type = Type.BIJECTION
    _domain = variable.Independent(variable.real, 1)
    _codomain = variable.Variable(False, 1, constraint.simplex)

    def _forward(self, x: Any) -> Any:
        share: Any = F.sigmoid(x - _offset(x, x.shape[-1]))
        one = get_operator("ones_like")(share[..., :1])
        join = get_operator("concat")
        return join([share, one], -1) * join([one, (1 - share).cumprod(-1)], -1)

    def _inverse(self, y: Any) -> Any:
        parts = y[..., :-1]
        left = 1 - parts.cumsum(-1)
        return parts.log() - left.log() + _offset(y, parts.shape[-1])

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        y = self._forward(x)
        x = x - _offset(x, x.shape[-1])
        return (F.log_sigmoid(x) - x + y[..., :-1].log()).sum(-1)

    def _forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*_with_an_axis("StickBreakingTransform", shape)[:-1], shape[-1] + 1)

    def _inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*_with_an_axis("StickBreakingTransform", shape)[:-1], shape[-1] - 1)


def _offset(like: Tensor, n: int) -> Any:
    """``log(n), ..., log(1)``: with it the vector 0 gives equal parts."""
    return Tensor(np.log(np.arange(n, 0, -1, dtype=np.float64)), like.dtype)
