"""The simplified form of a program, which kernels are made from, for whoever looks at it later."""

from __future__ import annotations

from collections.abc import Callable

from argosy_cinn.fuel import Budget
from argosy_cinn.target import Target
from argosy_phi_ops.context import own_context
from argosy_pir.program import Program


class NormalForm:
    """The simplified form of a program, made when it is asked for and not kept after `forget`."""

    def __init__(self, program: Callable[[], Program], budget: Budget) -> None:
        self._program, self._budget = program, budget
        self._made: Program | None = None
        self._keep = True

    def __call__(self) -> Program:
        """The program; equal each time."""
        if self._made is not None:
            return self._made
        from argosy_cinn.pipeline import lower_program

        with own_context(), self._budget.simplification():
            made = lower_program(self._program(), Target.host())
        if self._keep:
            self._made = made
        return made

    def come_from(self, program: Callable[[], Program]) -> None:
        """Make it of what ``program`` gives from now on: an equal one, which need not be kept meanwhile."""
        self._program = program

    def forget(self) -> None:
        """Make it again from now on: it is large, and needed to look at things only."""
        self._made, self._keep = None, False


__all__ = ["NormalForm"]
