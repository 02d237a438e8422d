"""Which values a random variable can take, as elementwise tests."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from typing import Any

__all__ = ["Constraint", "Positive", "Range", "Real", "Simplex", "positive", "real", "simplex"]


class Constraint:
    """Called with values, says which of them are possible."""

    def __call__(self, value: Any) -> Any:
        """Booleans, one for each event."""
        raise NotImplementedError(f"{type(self).__name__} does not define a test")

    def check(self, value: Any) -> Any:
        """The same as a call."""
        return self(value)


class Real(Constraint):
    """Every number."""

    def __call__(self, value: Any) -> Any:
        """False for NaN."""
        return value == value


class Range(Constraint):
    """Numbers from ``lower`` to ``upper``."""

    def __init__(self, lower: Any, upper: Any) -> None:
        self._lower, self._upper = lower, upper

    def __call__(self, value: Any) -> Any:
        """Whether each element lies within."""
        return (self._lower <= value) & (value <= self._upper)


class Positive(Constraint):
    """Numbers that are not negative."""

    def __call__(self, value: Any) -> Any:
        """Whether each element is."""
        return value >= 0.0


class Simplex(Constraint):
    """Vectors of numbers that are not negative and sum to 1."""

    def __call__(self, value: Any) -> Any:
        """Whether each vector along the last axis is one, to 1e-6."""
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


real = Real()
positive = Positive()
simplex = Simplex()
