"""A quick interpreter of straight-line programs of static shapes: how eager mode runs operators without a kernel.

What depends on constants alone is computed once, when the program is prepared; a run is one loop over kernels whose
attributes are bound already. Checks of types are the general interpreter's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from argosy_phi_ops.reference.constants import constant_array
from argosy_phi_ops.reference.kernels import kernel_for
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value

Array = np.ndarray[Any, Any]

_VIEWS = frozenset({"prim.broadcast", "prim.iota"})  # their results hold few elements, however large they look
_SMALL = 4096  # elements of a result that is worth keeping


def is_straight(program: Program) -> bool:
    """Whether `program` holds only primitives and constants of static shapes."""
    return all(is_plain(op) for op in list(program.block)[:-1])


def is_plain(op: Operation) -> bool:
    """Whether an operation is a primitive or constant of static shapes."""
    if op.dialect != "prim" and op.name != "builtin.constant":
        return False
    return all(isinstance(v.type, TensorType) and v.type.is_static for v in (*op.operands, *op.results))


class StraightLine:
    """A program prepared to run. Values live in numbered slots; the template holds the constant ones, read-only."""

    def __init__(self, program: Program) -> None:
        self.inputs = len(program.inputs)
        self.template: list[Any] = [None] * self.inputs
        self.slots: dict[Value, int] = {value: i for i, value in enumerate(program.inputs)}
        self.steps: list[tuple[Any, tuple[int, ...], int, int]] = []
        for op in list(program.block)[:-1]:
            self._add(op)
        self.returned = [self.slots[value] for value in program.outputs]
        self.final = self._last_uses()

    def _add(self, op: Operation) -> None:
        first = len(self.template)
        self.slots.update((result, first + i) for i, result in enumerate(op.results))
        self.template += [None] * len(op.results)
        if op.name == "builtin.constant":
            self.template[first] = constant_array(op.attributes["value"], {})
            return
        operands = tuple(self.slots[value] for value in op.operands)
        call = kernel_for(op.name)
        call = partial(call, **op.attributes) if op.attributes else call
        if self._is_constant(op, operands):
            value = call(*[self.template[i] for i in operands])
            value.flags.writeable = False
            self.template[first] = value
        else:
            self.steps.append((call, operands, first, len(op.results)))

    def _is_constant(self, op: Operation, operands: Sequence[int]) -> bool:
        if len(op.results) != 1 or any(self.template[i] is None for i in operands):
            return False
        size: Any = op.result.type.size  # type: ignore[attr-defined]
        return op.name in _VIEWS or size <= _SMALL

    def _last_uses(self) -> list[tuple[int, ...]]:
        """For each step the computed slots that nobody reads after it."""
        kept = set(self.returned) | {i for i, value in enumerate(self.template) if value is not None}
        kept |= set(range(self.inputs))
        dead: list[tuple[int, ...]] = []
        for _, operands, first, count in reversed(self.steps):
            used = {*operands, *range(first, first + count)} - kept
            dead.append(tuple(used))
            kept |= used
        return dead[::-1]

    @property
    def single_kernel(self) -> Any:
        """The kernel that is the whole program: of all inputs in order, giving the one output; else None."""
        if len(self.steps) != 1:
            return None
        call, operands, first, count = self.steps[0]
        whole = operands == tuple(range(self.inputs)) and count == 1 and self.returned == [first]
        return call if whole else None

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs for these inputs; outputs may be views of inputs, never of constants."""
        values = self.template.copy()
        values[: self.inputs] = arrays
        for (call, operands, first, count), dead in zip(self.steps, self.final, strict=True):
            result = call(*[values[i] for i in operands])
            if count == 1:
                values[first] = result
            else:
                values[first : first + count] = result
            for i in dead:
                values[i] = None
        return [values[i].copy() if self.template[i] is not None else values[i] for i in self.returned]
