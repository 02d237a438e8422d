"""Transforms of each number by itself."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

from argosy.distribution import constraint, variable
from argosy.distribution.transforms.base import Transform, Type, require_tensor
from argosy.nn import functional as F
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.shape import broadcast_shapes
from argosy_tensorcore.tensor import Tensor

__all__ = ["AbsTransform", "AffineTransform", "ExpTransform", "PowerTransform", "SigmoidTransform", "TanhTransform"]


class AbsTransform(Transform):
    """``|x|``. It has two inverses, -y and y, which :meth:`inverse` both gives."""

    _type = Type.SURJECTION
    _codomain = variable.positive

    def _forward(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> tuple[Tensor, Tensor]:
        return -y, y

    def _inverse_log_det_jacobian(self, y: Any) -> tuple[Tensor, Tensor]:
        zero = get_operator("zeros")([], y.dtype.name)
        return zero, zero


class AffineTransform(Transform):
    """``loc + scale * x``, of tensors that broadcast. Raises ``TypeError`` for other parameters than tensors."""

    _type = Type.BIJECTION

    def __init__(self, loc: Tensor, scale: Tensor) -> None:
        require_tensor("AffineTransform", "loc", loc)
        require_tensor("AffineTransform", "scale", scale)
        self._loc, self._scale = loc, scale

    @property
    def loc(self) -> Tensor:
        """What is added."""
        return self._loc

    @property
    def scale(self) -> Tensor:
        """The factor."""
        return self._scale

    def _forward(self, x: Any) -> Any:
        return self._loc + self._scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self._loc) / self._scale

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return self._scale.abs().log()

    def _forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(broadcast_shapes(tuple(shape), tuple(self._loc.shape), tuple(self._scale.shape)))

    def _inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._forward_shape(shape)


class ExpTransform(Transform):
    """``exp(x)``."""

    _type = Type.BIJECTION
    _codomain = variable.positive

    def _forward(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return x


class PowerTransform(Transform):
    """``x**power`` of numbers that are not negative. Raises ``TypeError`` where ``power`` is no tensor."""

    _type = Type.BIJECTION
    _codomain = variable.positive

    def __init__(self, power: Tensor) -> None:
        require_tensor("PowerTransform", "power", power)
        self._power = power

    @property
    def power(self) -> Tensor:
        """The exponent."""
        return self._power

    def _forward(self, x: Any) -> Any:
        return x.pow(self._power)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self._power)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return (self._power * x.pow(self._power - 1)).abs().log()

    def _forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(broadcast_shapes(tuple(shape), tuple(self._power.shape)))

    def _inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self._forward_shape(shape)


class SigmoidTransform(Transform):
    """``1 / (1 + exp(-x))``."""

    _codomain = variable.Variable(False, 0, constraint.Range(0.0, 1.0))

    def _forward(self, x: Any) -> Any:
        return F.sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        return y.log() - (-y).log1p()

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -F.softplus(-x) - F.softplus(x)


class TanhTransform(Transform):
    """``tanh(x)``."""

    _type = Type.BIJECTION
    _codomain = variable.Variable(False, 0, constraint.Range(-1.0, 1.0))

    def _forward(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return 2.0 * (log(2.0) - x - F.softplus(-2.0 * x))
