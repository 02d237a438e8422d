"""Branches and loops on work-groups: the host submits the steps of their regions again and again.

What is carried goes from one of two buffers to the other, rows of scanned and stacked tensors are read and written
where they lie, and positions of counted loops are brought to the device at once. A condition or a bound is read back
before what depends on it is submitted; scans wait for nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_cinn.forms.index_check import RECORD, RECORD_BYTES
from argosy_cinn.plan.control import ControlForm, RegionPlan, scan_length, spare
from argosy_cinn.plan.memory import Place
from argosy_cinn.shapes import NotSymbolic, count, nbytes
from argosy_cinn.simt.steps import Run, Step, Table, address_of
from argosy_cinn.staged_call import Address
from argosy_cinn.target import Target
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

#: Bytes of memory for a condition.
_FLAG = 256


class ControlEmitter:
    """Nothing is printed for a branch or loop: it becomes a step."""

    def schedule(self, form: ControlForm, target: Target) -> None:
        """Choose nothing: the plans of its regions are made."""


EMITTER = ControlEmitter()
"""For `argosy_cinn.kinds`."""


@dataclass(frozen=True, slots=True)
class ControlStep:
    """A branch or loop: the steps of its regions, and the places of its buffers."""

    form: ControlForm
    regions: Sequence[Sequence[Step]]
    places: Mapping[Any, Place]

    def submit(self, run: Run, table: Table) -> None:
        """See :class:`argosy_cinn.simt.steps.Step`."""
        _RUNS[self.form.op.name](_Control(self, run, table))

    def at(self, sizes: Mapping[str, int]) -> ControlStep:
        """See :class:`argosy_cinn.simt.steps.Step`."""
        raise NotSymbolic(f"'{self.form.op.name}' is driven by the host, for known sizes")


class _Control:
    """A run of a branch or loop."""

    def __init__(self, step: ControlStep, run: Run, table: Table) -> None:
        self.form, self.op, self.step, self.run, self.table = step.form, step.form.op, step, run, table
        self.values = self.form.carried_results
        self.carried: list[Address] = []

    def address(self, buffer: Any) -> Address:
        """Where a buffer is."""
        return address_of(self.table, self.step.places[buffer])

    def call(self, number: int, arguments: Sequence[Address], results: Sequence[Address]) -> None:
        """Submit the steps of a region."""
        region: RegionPlan = self.form.regions[number]
        arena = self.form.workspace
        table = [self.address(arena) if arena in self.step.places else self.table[0], *arguments]
        table += [self.address(value) for value in region.captured]
        table += [*results, *map(self.address, region.plan.constants)]
        table += [self.address(RECORD)] if RECORD in region.plan.places else []
        self.run.submit(self.step.regions[number], table)

    def read(self, address: Address, dtype: str) -> Any:
        """A number in the device's memory."""
        found = np.empty(1, numpy_dtype(dtype))
        self.run.device.copy(found.view(np.uint8), address[0], found.nbytes, 0, address[1])
        self.run.device.synchronize()
        return found[0]

    def has_refused(self) -> bool:
        """Whether a region has noted an index out of range."""
        if not self.form.checks_indices:
            return False
        record, (buffer, offset) = array("q", [0, 0]), self.address(RECORD)
        self.run.device.copy(memoryview(record), buffer, RECORD_BYTES, 0, offset)
        self.run.device.synchronize()
        return bool(record[0])

    def iterate(self, steps: Iterable[Any], body: Callable[[Any, list[Address], list[Address]], None]) -> None:
        """``body(step, where carried values are, where they go)`` for each step; the last values to their results."""
        first = len(self.op.operands) - len(self.values)
        self.carried = now = [self.address(operand) for operand in self.op.operands[first:]]
        after, other = [self.address(v) for v in self.values], [self.address(spare(v)) for v in self.values]
        for step in steps:
            body(step, now, after)
            now, after, other = after, other, after
            self.carried = now
        for value, (buffer, offset) in zip(self.values, now, strict=True):
            target, start = self.address(value)
            if (target, start) != (buffer, offset):
                self.run.device.copy(target, buffer, nbytes(value), start, offset)


def _branch(control: _Control) -> None:
    taken = control.read(control.address(control.op.operand(0)), "bool")
    control.call(0 if taken else 1, [], [control.address(v) for v in control.op.results])


def _repeat(control: _Control) -> None:
    flag = (control.run.device.allocate(_FLAG), 0)

    def conditions() -> Iterable[None]:
        while True:
            control.call(0, control.carried, [flag])
            if not control.read(flag, "bool") or control.has_refused():
                return
            yield

    control.iterate(conditions(), lambda _, now, after: control.call(1, now, after))


def _count(control: _Control) -> None:
    op, device = control.op, control.run.device
    start, stop = op.operands[:2]
    low, high = (int(control.read(control.address(v), v.dtype)) for v in (start, stop))
    positions = np.array(range(low, high, control.form.step), numpy_dtype(start.dtype))
    if not positions.size:
        control.iterate((), lambda *_: None)
        return
    memory = device.allocate(positions.nbytes)
    device.copy(memory, positions.view(np.uint8))
    size = positions.itemsize
    control.iterate(range(len(positions)), lambda i, now, after: control.call(0, [(memory, i * size), *now], after))


def _scan(control: _Control) -> None:
    op, length = control.op, scan_length(control.op)
    scanned = op.operands[: op.attributes["inputs"]]
    stacked = op.results[: len(op.results) - len(control.values)]

    def row(value: Value, i: int) -> Address:
        buffer, offset = control.address(value)
        return buffer, offset + i * (count(value) * ITEM_SIZES[value.dtype] // length)

    def body(i: int, now: list[Address], after: list[Address]) -> None:
        control.call(0, [*(row(v, i) for v in scanned), *now], [*(row(v, i) for v in stacked), *after])

    steps = range(length)
    control.iterate(reversed(steps) if op.attributes.get("reverse") else steps, body)


_RUNS: Mapping[str, Callable[[_Control], None]] = {
    "control.if": _branch, "control.while": _repeat, "control.for": _count, "control.scan": _scan,
}  # fmt: skip
