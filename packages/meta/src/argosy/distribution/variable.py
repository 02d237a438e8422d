"""What a transform takes and gives: how many axes one event has, and which values are possible."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence

from argosy.distribution import constraint as constraints
from argosy.distribution.constraint import Constraint
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Independent", "Positive", "Real", "Stack", "Variable", "positive", "real"]


class Variable:
    """A random variable whose events have ``event_rank`` axes and obey ``constraint``."""

    def __init__(self, is_discrete: bool = False, event_rank: int = 0, constraint: Constraint | None = None) -> None:
        self._is_discrete, self._event_rank, self._constraint = is_discrete, event_rank, constraint

    @property
    def is_discrete(self) -> bool:
        """Whether the values can be counted."""
        return self._is_discrete

    @property
    def event_rank(self) -> int:
        """How many axes one event has."""
        return self._event_rank

    def constraint(self, value: Tensor) -> Tensor:
        """Which events of ``value`` are possible."""
        if self._constraint is None:
            raise ValueError(f"{type(self).__name__} has no constraint")
        return self._constraint(value)


class Real(Variable):
    """Any numbers."""

    def __init__(self, event_rank: int = 0) -> None:
        super().__init__(False, event_rank, constraints.real)


class Positive(Variable):
    """Numbers that are not negative."""

    def __init__(self, event_rank: int = 0) -> None:
        super().__init__(False, event_rank, constraints.positive)


class Independent(Variable):
    """``base`` with ``reinterpreted_batch_rank`` more axes in each event."""

    def __init__(self, base: Variable, reinterpreted_batch_rank: int) -> None:
        super().__init__(base.is_discrete, base.event_rank + reinterpreted_batch_rank)
        self._base, self._rank = base, reinterpreted_batch_rank

    def constraint(self, value: Tensor) -> Tensor:
        """Which events have only possible parts."""
        found = self._base.constraint(value)
        if len(found.shape) < self._rank:
            raise ValueError(f"an event has {self._rank} more axes than one of its parts, got {list(value.shape)}")
        return found.all(list(range(-self._rank, 0))) if self._rank else found


class Stack(Variable):
    """Different variables along ``axis``."""

    def __init__(self, vars: Sequence[Variable], axis: int = 0) -> None:
        super().__init__(any(v.is_discrete for v in vars))
        self._vars, self._axis = vars, axis

    @property
    def event_rank(self) -> int:
        """The largest of the parts, and one more where the axis lies within the event."""
        rank = max(v.event_rank for v in self._vars)
        return rank + 1 if self._axis + rank < 0 else rank

    def constraint(self, value: Tensor) -> Tensor:
        """Which events of each part are possible."""
        parts = get_operator("unbind")(value, self._axis)
        found = [v.constraint(part) for v, part in zip(self._vars, parts, strict=True)]
        return get_operator("stack")(found, self._axis)


real = Real()
positive = Positive()
