"""Penalties on parameters, for an optimizer's ``weight_decay`` or a parameter's ``regularizer``."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import CheckedConstructor, validate_call
from argosy_tensorcore.tensor import Tensor

__all__ = ["L1Decay", "L2Decay", "WeightDecayRegularizer"]


class WeightDecayRegularizer(CheckedConstructor):
    """Called with a parameter and its gradient, gives the gradient of the loss with the penalty."""

    def __init__(self, coeff: float = 0.0) -> None:
        if isinstance(coeff, str) or not hasattr(type(coeff), "__float__"):
            raise TypeError(f"{type(self).__name__}(): argument 'coeff' must be a number, got {coeff!r:.60}")
        self._coeff = float(coeff)

    @validate_call
    def __call__(self, param: Tensor, grad: Tensor) -> Tensor:
        """The gradient with that of the penalty added."""
        raise NotImplementedError(f"{type(self).__name__} does not define a penalty")

    def __str__(self) -> str:
        return f"{type(self).__name__}, coeff={self._coeff:f}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(coeff={self._coeff})"


class L1Decay(WeightDecayRegularizer):
    """``coeff * sum(|w|)`` is added to the loss."""

    @validate_call
    def __call__(self, param: Any, grad: Any) -> Tensor:
        """``grad + coeff * sign(param)``."""
        return grad + param.sign() * self._coeff  # type: ignore[no-any-return]


class L2Decay(WeightDecayRegularizer):
    """``coeff / 2 * sum(w * w)`` is added to the loss."""

    @validate_call
    def __call__(self, param: Any, grad: Any) -> Tensor:
        """``grad + coeff * param``."""
        return grad + param * self._coeff  # type: ignore[no-any-return]
