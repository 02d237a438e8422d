"""The class that all transforms derive from."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from argosy.checked import Checked
from argosy.distribution import variable
from argosy.distribution.distribution import Distribution
from argosy_tensorcore.tensor import Tensor

__all__ = ["Transform", "Type", "require_tensor"]


class Type(Enum):
    """How a transform maps."""

    BIJECTION = "bijection"
    INJECTION = "injection"
    SURJECTION = "surjection"
    OTHER = "other"

    @classmethod
    def is_injective(cls, _type: Type) -> bool:
        """Whether different arguments give different values."""
        return _type in (cls.BIJECTION, cls.INJECTION)


def require_tensor(owner: str, name: str, value: Any) -> None:
    """Raise ``TypeError`` where ``value`` is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{owner}: {name} should be a Tensor, got {type(value).__name__}")


class Transform(Checked):
    """A differentiable function of events.

    Subclasses define ``_forward`` and ``_inverse``, one of ``_forward_log_det_jacobian`` and
    ``_inverse_log_det_jacobian``, and where shapes change ``_forward_shape`` and ``_inverse_shape``; ``_domain`` and
    ``_codomain`` say how many axes events have. Called with a tensor it is applied; with a distribution it gives the
    transformed one, with a transform the chain that starts with this one.
    """

    _type = Type.INJECTION

    def _is_injective(self) -> bool:
        return Type.is_injective(self._type)

    def __call__(self, input: Any) -> Any:
        """Apply to a tensor, a distribution or another transform."""
        from argosy.distribution.transformed_distribution import TransformedDistribution  # it is made of transforms
        from argosy.distribution.transforms.composed import ChainTransform

        if isinstance(input, Distribution):
            return TransformedDistribution(input, [self])
        if isinstance(input, Transform):
            return ChainTransform([self, input])
        return self.forward(input)

    def forward(self, x: Tensor) -> Tensor:
        """The value at ``x``. Raises ``TypeError`` for no tensor, ``ValueError`` for fewer axes than an event has."""
        self._check("x", x, self._domain.event_rank)
        return self._forward(x)

    def inverse(self, y: Tensor) -> Any:
        """The argument that gives ``y``; for the absolute value both of them."""
        self._check("y", y, self._codomain.event_rank)
        return self._inverse(y)

    def forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        """``log |det dy/dx|`` at ``x``, without the event's axes. Raises ``NotImplementedError`` where the transform
        has no inverse."""
        self._check("x", x, self._domain.event_rank)
        if not self._is_injective():
            raise NotImplementedError(f"{type(self).__name__} is not injective and has no forward_log_det_jacobian")
        if hasattr(self, "_forward_log_det_jacobian"):
            return self._forward_log_det_jacobian(x)
        return -self._inverse_jacobian_of(self.forward(x))

    def inverse_log_det_jacobian(self, y: Tensor) -> Any:
        """``log |det dx/dy|`` at ``y``, without the event's axes."""
        self._check("y", y, self._codomain.event_rank)
        if hasattr(self, "_inverse_log_det_jacobian") or not hasattr(self, "_forward_log_det_jacobian"):
            return self._inverse_jacobian_of(y)
        return -self._forward_log_det_jacobian(self._inverse(y))

    def _inverse_jacobian_of(self, y: Any) -> Any:
        if not hasattr(self, "_inverse_log_det_jacobian"):
            raise NotImplementedError(f"{type(self).__name__} defines neither of the two log_det_jacobian")
        return self._inverse_log_det_jacobian(y)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of the value for an argument of ``shape``. Raises ``TypeError`` for no sequence."""
        self._check_shape(shape)
        return self._forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of the argument for a value of ``shape``. Raises ``TypeError`` for no sequence."""
        self._check_shape(shape)
        return self._inverse_shape(shape)

    def _check(self, name: str, value: Any, rank: int) -> None:
        require_tensor(type(self).__name__, name, value)
        if len(value.shape) < rank:
            raise ValueError(f"{type(self).__name__}: {name} should have {rank} axes or more, got {list(value.shape)}")

    def _check_shape(self, shape: Any) -> None:
        if not isinstance(shape, Sequence) or isinstance(shape, str):
            raise TypeError(f"{type(self).__name__}: shape should be a sequence of integers, got {shape!r:.80}")

    @property
    def _domain(self) -> variable.Variable:
        return variable.real

    @property
    def _codomain(self) -> variable.Variable:
        return variable.real

    def _forward(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define _forward")

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define _inverse")

    def _forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return shape

    def _inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return shape
