"""The tracer of a static program: it stays open, and open sizes turn out to be one size where operators need that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from argosy_phi_ops.capture.live_tensors import live_tensors
from argosy_phi_ops.capture.tracer import TracedPayload, Tracer, _StateEntry
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.errors import GraphBreak, ShapeError
from argosy_pir import Builder, Value
from argosy_pir.dims import Dim, SymExpr
from argosy_pir.passes import PassManager
from argosy_pir.program import Program
from argosy_pir.substitution import substitute_in_attribute, substitute_sizes
from argosy_tensorcore.tensor import Tensor

__all__ = ["ProgramTracer"]


class ProgramTracer(Tracer):
    """Records operators as long as its program lives; programs to run are copies of what there is."""

    stays_open = True

    def __init__(self, name: str = "main") -> None:
        super().__init__(name)
        self.sizes = 0
        """How many open sizes were given out."""
        self._renamed: dict[str, Dim] = {}

    def need(self, payload: TracedPayload, why: str) -> Any:
        """Raises GraphBreak: there are no values before the program runs."""
        raise GraphBreak(f"{why}; a variable of a static program has its value when Executor.run fetches it")

    def open_size(self) -> SymExpr:
        """A size that is told when the program runs."""
        self.sizes += 1
        return SymExpr.symbol(f"s{self.sizes - 1}")

    def process(
        self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]
    ) -> Any:
        """Record. Where shapes do not fit because two open sizes differ, these are one size from then on, and an open
        one beside a number is that number: a call that gives others is an error of the call."""
        if self._renamed:
            attributes = {name: substitute_in_attribute(value, self._renamed) for name, value in attributes.items()}
        for x in operands:
            if type(x) is Tensor and x.payload.is_traced and not x.stop_gradient:
                x.payload.active = True  # the user may have said so after the variable was made
        try:
            return super().process(op, operands, attributes, below)
        except ShapeError:
            pair = next(_differing_sizes(operands), None)
            if pair is None:
                raise
        self._make_one(*pair)
        return self.process(op, operands, attributes, below)

    def _make_one(self, kept: Dim, other: SymExpr) -> None:
        names: dict[str, Dim] = {str(other): kept}
        self._renamed = {name: substitute_in_attribute(size, names) for name, size in self._renamed.items()} | names
        substitute_sizes(self.program, names)
        for x in live_tensors(self):
            x.payload.shape = x.payload.value.shape

    # What an executor runs

    def close_program(self, outputs: Sequence[Value], frozen: bool) -> Program:
        """A copy of the program so far that gives ``outputs`` and the states' new values, which do not change where
        it is ``frozen`` (but for the random state). What that does not need is left out, inputs and states too; those
        that stay keep their names."""
        recorded = self.program.block.last
        with emit_at(self.builder):
            updates = [self._end(entry, frozen) for entry in self._states.values()]
        self.program.set_outputs(outputs, updates)
        copy = self.program.clone()
        while (last := self.program.block.last) is not recorded:
            assert last is not None
            last.erase()
        PassManager("cse,dce").run(copy)
        _leave_out_unused(copy)
        return copy

    def _end(self, entry: Any, frozen: bool) -> Value:
        if entry is self.random_state:
            return self.moved_on(entry.current, self._draws) if self._draws else entry.current
        value: Value = entry.state.argument if frozen else entry.current
        return value

    def adopt(self, ended: Program, tensors: Mapping[str, Tensor]) -> list[Tensor]:
        """Go on from a program that is ended, with ``tensors`` by name as its states; gives its results."""
        results, last = ended.outputs, ended.block.last
        assert last is not None
        last.erase()
        self.program, self.builder = ended, Builder.at_end(ended.block)
        self.sizes = 1 + max((int(name[1:]) for name in ended.symbols() if name[1:].isdecimal()), default=-1)
        for state in ended.states:
            tensor = tensors[state.name]
            self._states[id(tensor.payload.storage)] = _StateEntry(tensor, state)
            self._names[state.name] = 1
        self.inputs = [self.wrap(value) for value in ended.inputs]
        for x in self.inputs:
            x.name = x.payload.value.name_hint or x.name
        return [self.wrap(value) for value in results]

    def evaluate(self) -> dict[Value, Value]:
        """Let operators be those of evaluation. Dropout goes, and with it the random state where nothing else draws;
        gives what stands for its results."""
        gone: dict[Value, Value] = {}
        for op in list(self.program.walk()):
            if op.attributes.get("training") is True:
                op.attributes["training"] = False
                if op.name == "phi.dropout" and op.attributes["mode"] == "upscale_in_train":
                    gone[op.result] = op.operand(0)
                    op.replace_with([op.operand(0)])
        place = self.random_state
        if place is not None and not any(value.has_uses for value in place.versions):
            self._draws = 0
        return gone

    def tensors(self) -> dict[str, Tensor]:
        """The tensors behind the states, by the states' names."""
        return {entry.state.name: entry.tensor for entry in self._states.values()}

    def new_values(self) -> tuple[Value, ...]:
        """The value of each state when the program ends."""
        return tuple([entry.current for entry in self._states.values()])

    def copy_onto(self, mapping: dict[Value, Value]) -> ProgramTracer:
        """A tracer that goes on from a copy of the program; ``mapping`` receives old value to new value."""
        made = ProgramTracer(self.program.name)
        made.program = self.program.clone(mapping)
        made.builder = Builder.at_end(made.program.block)
        made.sizes, made._renamed = self.sizes, dict(self._renamed)
        for entry, state in zip(list(self._states.values()), made.program.states, strict=True):
            copy = made._states[id(entry.tensor.payload.storage)] = _StateEntry(entry.tensor, state)
            copy.current, copy.written = mapping[entry.current], entry.written
            copy.versions = [mapping[value] for value in entry.versions]
        made._names, made._draws, made._generator = dict(self._names), self._draws, self._generator
        made.inputs = [made.wrap(mapping[x.payload.value], x.stop_gradient) for x in self.inputs]
        for x, original in zip(made.inputs, self.inputs, strict=True):
            x.name = original.name
        return made


def _differing_sizes(operands: Sequence[Any]) -> Iterator[tuple[Dim, SymExpr]]:
    """Sizes at one place of two operands, counted from the first or last axis, of which the second is open: first pairs
    of open ones that are not one yet, then those with numbers other than 1."""
    shapes = [x.payload.shape for x in operands if type(x) is Tensor]
    pairs = [
        pair
        for i, a in enumerate(shapes)
        for b in shapes[i + 1 :]
        for pair in (*zip(a, b, strict=False), *zip(reversed(a), reversed(b), strict=False))
    ]
    yield from ((m, n) for m, n in pairs if _is_symbol(m) and _is_symbol(n) and m != n)
    for m, n in pairs:
        if isinstance(m, int) and m != 1 and _is_symbol(n):
            yield m, n
        elif isinstance(n, int) and n != 1 and _is_symbol(m):
            yield n, m


def _is_symbol(n: Dim) -> bool:
    return isinstance(n, SymExpr) and n.symbols == {str(n)}


def _leave_out_unused(program: Program) -> None:
    """Remove inputs that nothing reads, and states that nothing reads and that stay what they are."""
    block, last = program.block, program.block.last
    assert last is not None
    inputs, outputs = len(program.inputs), list(program.outputs)
    kept = [
        (state, new)
        for state, new in zip(program.states, program.state_updates, strict=True)
        if new is not state.argument or len(list(state.argument.uses)) > 1
    ]
    last.set_operands([*outputs, *(new for _, new in kept)])
    states = {state.argument for state, _ in kept}
    arguments = list(enumerate(block.arguments))
    program.states = [state for state, _ in kept]
    for i, argument in reversed(arguments):
        if (i < inputs and not argument.has_uses) or (i >= inputs and argument not in states):
            block.erase_argument(i)
