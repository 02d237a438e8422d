"""Counting optimisations, and stopping after so many: to find the one that breaks a program.

Every rewrite, fusion and placement that could be left out asks `allowed` first. The option ``fuel`` (or ``ARGOSY_FUEL``
in the environment, for all programs of a process together, the passes before this package included) lets only the first
so many happen; ``without`` leaves out kinds. The count is the same in every run. ``ARGOSY_FUEL_LOG`` names a file that
is told the count and the last step.

Kinds: ``rewrite.<primitive>``, ``common`` (equal operations), ``control`` (native branches and loops), ``attention``,
``fuse``, ``recompute``, ``in-place``, ``stream``, ``siblings`` (two products from one
read), ``batch-tiling`` (large batches in tiles of rows), ``rematerialise`` (under a memory budget), ``winograd``
(convolutions by minimal filtering).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from argosy_cinn.settings import GUARD, MEMORY_BUDGET, WINOGRAD
from argosy_phi_ops.process_fuel import process_fuel, settle
from argosy_pir.core import Operation
from argosy_pir.values import OpResult

KINDS = (
    "rewrite", "common", "control", "attention", "fuse", "recompute", "in-place", "stream", "siblings", "batch-tiling",
    "rematerialise", "winograd",
)  # fmt: skip
_UNLIMITED = 1 << 62


class Steps:
    """What happens under a limit: ``count`` steps so far, the ``last`` of them by name."""

    __slots__ = ("_fuel", "_without", "count", "last")

    def __init__(self, fuel: int, without: Collection[str]) -> None:
        self._fuel, self._without = fuel, without
        self.count = 0
        self.last = ""

    def take(self, kind: str, where: Any) -> bool:
        """Whether one more step of this kind may happen."""
        if kind in self._without or kind.partition(".")[0] in self._without or self.count >= self._fuel:
            return False
        self.count += 1
        self.last = f"{kind} of {_name(where)}"
        return True


_steps: ContextVar[Steps | None] = ContextVar("argosy_cinn_steps", default=None)


def allowed(kind: str, where: Any) -> bool:
    """Whether an optimisation may happen. ``where``: the operation or values it is about."""
    steps = _steps.get()
    return steps is None or steps.take(kind, where)


def _name(where: Any) -> str:
    if isinstance(where, Operation):
        return f"{where.name} at {where.location}"
    if isinstance(where, OpResult):
        return f"{where.op.name} at {where.op.location}"
    return " with ".join(map(_name, where)) if isinstance(where, (tuple, list)) else str(where)


class Budget:
    """What one compilation may do. It simplifies first, then fuses; either can be done again and does the same.

    ``memory``: the bytes that its intermediate values may need (`argosy_cinn.plan.rematerialisation`); ``guard``: how
    they are guarded (`argosy_cinn.guard`)."""

    def __init__(
        self,
        fuel: int | None = None,
        without: Collection[str] = (),
        process: bool = False,
        memory: int | None = None,
        guard: str = "",
    ) -> None:
        self.memory, self.guard = memory, guard
        self.limited = fuel is not None or bool(without)
        self.process = process
        self._fuel = _UNLIMITED if fuel is None else fuel
        self._without = frozenset(without)
        self._simplified = 0
        self._last = ""
        self.spent = 0

    @staticmethod
    def of(options: Mapping[str, Any]) -> Budget:
        """The budget that the options or the environment set. Raises ValueError for what they do not know."""
        without = tuple(options.get("without", ()))
        unknown = sorted({kind.partition(".")[0] for kind in without} - set(KINDS))
        if unknown:
            raise ValueError(f"option without: there is no kind {unknown}; there are: {', '.join(KINDS)}")
        memory, guard = MEMORY_BUDGET.chosen(options), GUARD.chosen(options)
        left_out = without if WINOGRAD.chosen(options) else (*without, "winograd")
        if without or "fuel" in options:
            return Budget(options.get("fuel"), left_out, memory=memory, guard=guard)
        left = process_fuel()
        return Budget(left, left_out, process=left is not None, memory=memory, guard=guard)

    @contextmanager
    def simplifying(self) -> Iterator[None]:
        """Within the block programs are simplified."""
        with self._counted(self._fuel) as steps:
            yield
        self._simplified = steps.count
        self._note(steps)

    @contextmanager
    def fusing(self) -> Iterator[None]:
        """Within the block a simplified program is fused and placed."""
        with self._counted(self._fuel - self._simplified) as steps:
            yield
        self._note(steps, self._simplified)

    @contextmanager
    def _counted(self, fuel: int) -> Iterator[Steps]:
        steps = Steps(fuel, self._without)
        token = _steps.set(steps if self.limited else None)
        try:
            yield steps
        finally:
            _steps.reset(token)

    def _note(self, steps: Steps, before: int = 0) -> None:
        self.spent = before + steps.count
        self._last = steps.last or self._last

    def settle(self) -> None:
        """Take what was spent from the process's fuel, and write the log."""
        if self.process:
            settle(self.spent, self._last)
