"""The class that all transforms derive from, and what calling one makes of another and of a distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from argosy.argument_checks import CheckedConstructor
from argosy.distribution import variable
from argosy.distribution.distribution import Distribution
from argosy.distribution.parameters import event_sum
from argosy_tensorcore.tensor import Tensor

__all__ = ["ChainTransform", "Transform", "TransformedDistribution", "Type", "require_tensor", "require_transforms"]


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


class Transform(CheckedConstructor):
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


def require_transforms(owner: str, transforms: Any) -> None:
    """Raise ``TypeError`` where ``transforms`` is no sequence of them."""
    if not isinstance(transforms, Sequence) or not all(isinstance(t, Transform) for t in transforms):
        raise TypeError(f"{owner}: transforms should be a sequence of transforms, got {transforms!r:.80}")


class ChainTransform(Transform):
    """``transforms`` one after another, the first one first."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        require_transforms("ChainTransform", transforms)
        self.transforms = transforms

    def _is_injective(self) -> bool:
        return all(t._is_injective() for t in self.transforms)

    def _forward(self, x: Any) -> Any:
        for t in self.transforms:
            x = t.forward(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for t in reversed(self.transforms):
            y = t.inverse(y)
        return y

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        found: Any = 0.0
        rank = self._domain.event_rank
        for t in self.transforms:
            found = found + event_sum(t.forward_log_det_jacobian(x), rank - t._domain.event_rank)
            x = t.forward(x)
            rank += t._codomain.event_rank - t._domain.event_rank
        return found

    def _forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for t in self.transforms:
            shape = t.forward_shape(shape)
        return shape

    def _inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        return shape

    @property
    def _domain(self) -> variable.Variable:
        rank = self.transforms[-1]._codomain.event_rank
        for t in reversed(self.transforms):
            rank = max(rank - t._codomain.event_rank + t._domain.event_rank, t._domain.event_rank)
        first = self.transforms[0]._domain
        return variable.Independent(first, rank - first.event_rank)

    @property
    def _codomain(self) -> variable.Variable:
        rank = self.transforms[0]._domain.event_rank
        for t in self.transforms:
            rank = max(rank + t._codomain.event_rank - t._domain.event_rank, t._codomain.event_rank)
        last = self.transforms[-1]._codomain
        return variable.Independent(last, rank - last.event_rank)


class TransformedDistribution(Distribution):
    """The distribution of ``transforms[-1](... transforms[0](x))`` for x from ``base``.

    Raises ``TypeError`` for other arguments, ``ValueError`` where events of ``base`` have fewer axes than the
    transforms work on.
    """

    def __init__(self, base: Distribution, transforms: Sequence[Transform]) -> None:
        if not isinstance(base, Distribution):
            raise TypeError(f"TransformedDistribution: base should be a Distribution, got {type(base).__name__}")
        if not isinstance(transforms, Sequence) or not all(isinstance(t, Transform) for t in transforms):
            raise TypeError(f"TransformedDistribution: transforms should be a sequence of them, got {transforms!r:.80}")
        self._base, self._transforms = base, transforms
        if not transforms:
            super().__init__(base.batch_shape, base.event_shape)
            return
        chain, shape = ChainTransform(transforms), base.batch_shape + base.event_shape
        needed = chain._domain.event_rank
        if len(shape) < needed:
            raise ValueError(f"TransformedDistribution: base needs {needed} axes or more, got shape {list(shape)}")
        made = tuple(chain.forward_shape(shape))
        cut = len(made) - chain._codomain.event_rank - max(len(base.event_shape) - needed, 0)
        super().__init__(made[:cut], made[cut:])

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Draws of ``base``, transformed."""
        return self._forward(self._base.sample(shape))

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Differentiable draws of ``base``, transformed."""
        return self._forward(self._base.rsample(shape))

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self._transforms:
            x = transform.forward(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        """That of the preimage under ``base``, minus the logarithm of the Jacobian's determinant there."""
        found: Any = 0.0
        y, rank = value, len(self.event_shape)
        for t in reversed(self._transforms):
            x = t.inverse(y)
            rank += t._domain.event_rank - t._codomain.event_rank
            found = found - event_sum(t.forward_log_det_jacobian(x), rank - t._domain.event_rank)
            y = x
        return found + event_sum(self._base.log_prob(y), rank - len(self._base.event_shape))
