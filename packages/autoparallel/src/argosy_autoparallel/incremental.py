"""Layouts of the values of a program that is being captured, as the partitioner would find them so far.

Each operation is partitioned once, when somebody first asks for a layout behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from argosy_autoparallel.open_sizes import multiples_of, parts_of_sizes
from argosy_autoparallel.operator_rules import ruled_operators
from argosy_autoparallel.partition import Partitioner
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.passes.decompose import decompose_operation
from argosy_pir import Operation, Program, Value
from argosy_pir.dims import Dim
from argosy_pir.substitution import substitute_in_operation, substitute_in_type

__all__ = ["IncrementalLayouts"]

Layouts = Callable[[], Sequence[Layout | None]]


class IncrementalLayouts:
    """The layouts of ``program``'s values, for ``rank``. What is appended to the program is followed; what was there
    before an earlier question must stay.

    ``inputs`` and ``states`` give the layouts of those that the program has by now; further inputs are ordinary.
    """

    def __init__(self, program: Program, inputs: Layouts, states: Layouts, rank: int) -> None:
        self._program, self._inputs, self._states = program, inputs, states
        self._copy = Program(program.name)  # in primitives
        self._copies: dict[Value, Value] = {}
        self._last: Operation | None = None
        self._sizes: dict[str, Dim] = {}
        self._partitioner = Partitioner(self._copy, (), (), rank)

    def find(self, value: Value) -> tuple[Layout | None] | None:
        """The layout of a value, in a tuple; None where it is not known: behind a gradient request, in a region.

        Raises as :func:`argosy_autoparallel.partition.partition` does.
        """
        if value not in self._copies:
            self._follow()
        found = self._copies.get(value)
        return None if found is None else (self._partitioner.layout(found),)

    def _follow(self) -> None:
        self._enter(self._program.inputs, self._inputs())
        self._enter([state.argument for state in self._program.states], self._states())
        with self._partitioner.emitter.emit_here():
            for op in self._new_operations():
                self._partitioner.walk(self._copy_operation(op))
                self._last = op

    def _enter(self, values: Sequence[Value], layouts: Sequence[Layout | None]) -> None:
        laid = [*layouts, *[None] * (len(values) - len(layouts))]
        self._sizes |= multiples_of(parts_of_sizes(values, laid))
        for value, layout in zip(values, laid, strict=True):
            if value not in self._copies:
                made = self._copies[value] = self._copy.add_input(substitute_in_type(value.type, self._sizes))
                self._partitioner.enter(made, layout)

    def _new_operations(self) -> Iterator[Operation]:
        """Those since the last question, up to the first gradient request."""
        op = self._program.block.first if self._last is None else self._last.next
        while op is not None and not any(inner.dialect == "ad" for inner in op.walk()):
            yield op
            op = op.next

    def _copy_operation(self, op: Operation) -> list[Operation]:
        """An operation in primitives, at the end of the copy of the program."""
        block = self._copy.block
        before = block.last
        made = op.clone(self._copies)
        if self._sizes:
            substitute_in_operation(made, self._sizes)
        block.append(made)
        for inner in [inner for inner in made.walk() if inner.dialect == "phi" and inner.kind not in ruled_operators()]:
            values = decompose_operation(inner)
            if inner is made:
                self._copies.update(zip(op.results, values, strict=True))
        first = block.first if before is None else before.next
        return list(_operations_from(first))


def _operations_from(op: Operation | None) -> Iterator[Operation]:
    while op is not None:
        yield op
        op = op.next
