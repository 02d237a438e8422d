"""Branches and loops with native regions: forms whose regions are plans of their own."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from argosy_cinn.forms.form import Form, Scratch
from argosy_cinn.forms.index_check import RECORD
from argosy_cinn.lowering.elements import splat_constant
from argosy_cinn.plan.steps import ExecutionPlan
from argosy_cinn.shapes import estimate, nbytes, sizes
from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.scalars import decode_scalar
from argosy_pir.values import Value


@dataclass(slots=True)
class RegionPlan:
    """A region as a planned program: its inputs are the region's arguments, then the ``captured`` values."""

    program: Program
    captured: list[Value]
    plan: ExecutionPlan

    def run_time_buffers(self) -> list[tuple[str, int]]:
        """(name of the offset, bytes) of what lies in the arena of the whole program, where sizes are not known."""
        lifetimes = self.plan.lifetimes
        names = self.plan.symbols[len(self.plan.symbols) - len(lifetimes) :]
        return [(name, x.nbytes) for name, x in zip(names, lifetimes, strict=False)]

    @property
    def arguments(self) -> int:
        """How many arguments the region itself has."""
        return len(self.program.inputs) - len(self.captured)


@dataclass(slots=True)
class ControlForm(Form):
    """A branch or loop with native regions; ``step`` is that of a counted loop. Where sizes are
    not known (``symbolic``) its regions use the arena of the whole program."""

    kind: ClassVar[str] = "control"

    op: Operation
    regions: list[RegionPlan]
    step: int
    symbolic: bool = False

    @property
    def carried_results(self) -> tuple[Value, ...]:
        """The results that are carried from step to step."""
        op = self.op
        first = {"control.while": 0, "control.for": 3}.get(op.name)
        if op.name == "control.scan":
            first = op.attributes["inputs"]
        return () if first is None else tuple(op.results[len(op.results) - (len(op.operands) - first) :])

    def reads(self) -> set[Any]:
        """What it reads from around, and its constants."""
        return {*self.inputs(), *self.constants()}

    def inputs(self) -> list[Value]:
        """Everything it reads from around."""
        captured = [v for region in self.regions for v in region.captured]
        return list(dict.fromkeys([*self.op.operands, *captured]))

    def inner_plans(self) -> list[ExecutionPlan]:
        """Those of all regions."""
        return [region.plan for region in self.regions]

    def constants(self) -> list[Value]:
        """The tables of numbers in its regions."""
        return [v for plan in self.inner_plans() for v in plan.constants]

    def buffers(self) -> dict[Any, int]:
        """Bytes of the memory that it needs beside its operands and results."""
        found: dict[Hashable, int] = {spare(v): nbytes(v) for v in self.carried_results}
        found |= self._arena()
        return found | dict(buffer for region in self.regions for buffer in region.run_time_buffers())

    def _arena(self) -> dict[Hashable, int]:
        """The arena of its regions, where that has a size."""
        arena = max(plan.arena_bytes for plan in self.inner_plans())
        return {self.workspace: arena} if arena else {}

    @property
    def checks_indices(self) -> bool:
        """Whether a region may record an index that is out of range."""
        return any(RECORD in plan.places for plan in self.inner_plans())

    def arenas(self) -> list[Scratch]:
        """That of its regions."""
        return [self.workspace] if self.symbolic else []

    @property
    def workspace(self) -> Scratch:
        """The arena of its regions."""
        return Scratch(self.op.results[0], "arena of regions")

    def key(self, slots: dict[Any, int]) -> str:
        """None: no two are alike."""
        everything: list[Any] = [*self.inputs(), *self.constants(), *self.op.results]
        everything += [*map(spare, self.carried_results), *self._arena()]
        everything += self.arenas()
        everything += [RECORD] if self.checks_indices else []
        for buffer in everything:
            slots.setdefault(buffer, len(slots))
        return ""

    def name(self) -> str:
        """The operation."""
        return f"{self.op.kind}_"

    @property
    def steps(self) -> int | None:
        """How often the body of a loop runs; None where that is found out while it does."""
        if self.op.name == "control.scan":
            return scan_length(self.op)
        bounds = [splat_constant(v) for v in self.op.operands[:2]] if self.op.name == "control.for" else []
        if not bounds or None in bounds:
            return None
        start, stop = (int(decode_scalar(b, v.dtype)) for b, v in zip(bounds, self.op.operands, strict=False))  # type: ignore[arg-type]
        return len(range(start, stop, self.step))

    def summary(self) -> str:
        """How many steps there are, and of how many kernels."""
        kernels = " and ".join(str(len(plan.steps)) for plan in self.inner_plans())
        times = "" if self.steps is None else f" of {self.steps} steps"
        return f"{self.op.kind}{times}: regions of {kernels} kernels"

    def cost(self) -> Cost:
        """That of the larger way of a branch; all steps of a loop, or one where it is not known how many there are."""
        ways = [_total_cost(form.cost() for step in plan.steps for form in step.forms) for plan in self.inner_plans()]
        if self.op.name == "control.if":
            return max(ways, key=lambda way: estimate(way.operations) + estimate(way.read) + estimate(way.written))  # type: ignore[arg-type]
        total, times = _total_cost(ways), self.steps or 1
        return Cost(times * total.read, times * total.written, times * total.operations)


def _total_cost(costs: Iterable[Cost]) -> Cost:
    """The sum of some costs."""
    found = list(costs)
    return Cost(sum(c.read for c in found), sum(c.written for c in found), sum(c.operations for c in found))


def spare(value: Value) -> Scratch:
    """The second buffer of a carried value."""
    return Scratch(value, "other buffer of a carried value")


def scan_length(op: Operation) -> int:
    """Steps of a scan."""
    return sizes(op.operand(0))[0] if op.attributes["inputs"] else op.attributes["length"]
