"""The captured step of one microbatch cut into the pieces of stages.

A piece is a program: the forward pass of a stage, its backward pass, or that in two. What one piece makes and another
reads is a value with a name: a residual within a stage, a message between stages. Of the values that a backward pass
needs, those of least bytes are residuals, from which it makes the others again (`residuals`); so it does what a region
marked ``recompute`` computes, of whose values it then has those from outside alone. Gradients of weights leave a piece
as terms that are added up over microbatches; of a weight that several stages share, each has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from argosy_autoparallel.pipeline.residuals import choose_residuals, is_made_anew, is_repeatable
from argosy_autoparallel.pipeline.stages import BACKWARD, FORWARD, INPUT, WEIGHT, piece_name
from argosy_autoparallel.value_layouts import captured_values
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import NO_ANNOTATIONS, Builder, Operation, Program, Value
from argosy_pir.values import OpResult

__all__ = ["Cut", "Piece", "cut", "extract"]

Key = tuple[str, int]


@dataclass(frozen=True)
class Piece:
    """A piece of a stage. ``inputs`` and ``outputs`` are values of the whole program; the outputs of ``program`` are
    followed by one term for each of ``gradients``, positions among the whole program's outputs. ``states`` are
    positions among its states.
    """

    program: Program
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    gradients: tuple[int, ...]
    states: tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """All pieces by name and stage, and the names of the values that go from one to another."""

    program: Program
    stages: int
    pieces: Mapping[Key, Piece]
    names: Mapping[Value, str] = field(repr=False)

    def readers(self, value: Value) -> list[Key]:
        """The pieces that read a value."""
        return [key for key, piece in self.pieces.items() if value in piece.inputs]

    def order(self) -> list[Key]:
        """Pieces in the order of dependence: forward stages up, backward ones down, gradients of weights last."""

        def place(key: Key) -> tuple[int, int, int]:
            name, stage = key
            return (0, stage, 0) if name == FORWARD else (1, -stage, int(name == WEIGHT))

        return sorted(self.pieces, key=place)

    def stages_of_state(self, number: int) -> list[int]:
        """The stages whose pieces read or write a state."""
        return sorted({stage for (_, stage), piece in self.pieces.items() if number in piece.states})


def cut(
    program: Program, stage_of: Mapping[Operation, int], stages: int, split: bool, gradients: Sequence[int],
    counters: Sequence[int] = (), backward: bool = True,
) -> Cut:  # fmt: skip
    """Cut a program of primitives; it is left as it is.

    ``split``: the backward pass is two pieces, so that gradients of weights may wait. ``gradients`` are the positions
    of outputs that are gradients of states; ``counters`` those of states that are another value for each microbatch,
    made beforehand, such as the counter of random draws: inputs of the pieces. Without ``backward`` there are forward
    passes only.
    """
    return _Cutter(program, stage_of, split, frozenset(counters)).run(stages, gradients, backward)


def extract(program: Program, results: Sequence[Value], inputs: Sequence[Value]) -> Program:
    """The program that computes ``results`` from ``inputs``, all values of ``program``. Raises KeyError where it takes
    more."""
    needed: set[Operation] = set()
    pending = list(results)
    while pending:
        value = pending.pop()
        if value in inputs:
            continue
        if not isinstance(value, OpResult):
            raise KeyError(value)
        if value.op not in needed:
            needed.add(value.op)
            pending += [*value.op.operands, *captured_values(value.op)]
    made = Program(f"{program.name}_part")
    mapping: dict[Value, Value] = {value: made.add_input(value.type) for value in inputs}
    _copy((op for op in program.block if op in needed), made, mapping)
    made.set_outputs([mapping[value] for value in results])
    return made


class _Draft:
    """What is known of a piece while the program is walked over."""

    def __init__(self) -> None:
        self.ops: set[Operation] = set()
        self.inputs: dict[Value, None] = {}
        self.outputs: dict[Value, None] = {}
        self.terms: dict[int, list[Value]] = {}  # by gradient
        self.states: set[int] = set()
        self.updates: dict[int, Value] = {}


class _Cutter:
    def __init__(
        self, program: Program, stage_of: Mapping[Operation, int], split: bool, counters: frozenset[int]
    ) -> None:
        self.program, self.stage_of, self.split, self.counters = program, stage_of, split, counters
        self.drafts: dict[Key, _Draft] = {}
        self.number = {op: i for i, op in enumerate(program.block)}
        arguments = program.block.arguments
        self.first_state = len(arguments) - len(program.states)
        self.place: dict[Value, int] = {value: i for i, value in enumerate(arguments)}
        self.writers: dict[int, Key] = {}
        self.residuals: set[Value] = set()

    def run(self, stages: int, gradients: Sequence[int], backward: bool) -> Cut:
        names = (FORWARD, *((INPUT, WEIGHT) if self.split else (BACKWARD,))) if backward else (FORWARD,)
        self.drafts = {(name, stage): _Draft() for stage in range(stages) for name in names}
        self._find_writers()
        for stage in range(stages if backward else 0):
            self.residuals |= self._choose_residuals(stage)
        for op in self.program.block:
            if op is not self.program.block.last and not op.results:
                self._need(op, self._key(op))  # a check, say
        for position, value in enumerate(self.program.outputs):
            if position in gradients:
                self._terms(position, value)
            else:
                self._output(value, stages)
        for number, key in self.writers.items():
            update = self.program.state_updates[number]
            self.drafts[key].updates[number] = update
            self.drafts[key].states.add(number)
            self._read(update, key)
        order = {key: i for i, key in enumerate(self.drafts)}
        pieces = {key: self._piece(key, self.drafts[key]) for key in sorted(self.drafts, key=order.__getitem__)}
        crossing = {value for piece in pieces.values() for value in (*piece.inputs, *piece.outputs)}
        return Cut(self.program, stages, pieces, self._names(crossing))

    # ---- what a piece needs

    def _key(self, op: Operation) -> Key:
        return piece_name(op, self.split), self.stage_of[op]

    def _find_writers(self) -> None:
        """The piece that writes each state: the one that computes its new value."""
        for number, (state, update) in enumerate(zip(self.program.states, self.program.state_updates, strict=True)):
            if update is not state.argument and number not in self.counters:
                self.writers[number] = self._key(update.op) if isinstance(update, OpResult) else (FORWARD, 0)

    def _output(self, value: Value, stages: int) -> None:
        key = self._key(value.op) if isinstance(value, OpResult) else (FORWARD, stages - 1)
        self._read(value, key)
        self.drafts[key].outputs[value] = None

    def _terms(self, position: int, value: Value) -> None:
        """The terms of a gradient, each to the stage that computes it."""
        for term in self._summands(value):
            op = term.op if isinstance(term, OpResult) else None
            stage = self.stage_of[op] if op is not None else 0
            key = WEIGHT if self.split else BACKWARD, stage
            self.drafts[key].terms.setdefault(position, []).append(term)
            self._read(term, key)

    def _summands(self, value: Value) -> list[Value]:
        """The values that add up to a gradient, where stages share a weight; else the gradient itself."""
        found, pending = [], [value]
        while pending:
            term = pending.pop()
            owner = term.op if isinstance(term, OpResult) else None
            is_sum = owner is not None and owner.name == "prim.add" and len(list(term.uses)) == 1
            operands = owner.operands if owner is not None and is_sum else ()
            if len({self._stages_below(x) for x in operands}) > 1:
                pending += reversed(operands)
            else:
                found.append(term)
        return found

    def _stages_below(self, value: Value) -> frozenset[int]:
        """The stages of the terms of a sum."""
        if not isinstance(value, OpResult):
            return frozenset()
        if value.op.name == "prim.add" and "phase" in value.op.annotations and len(list(value.uses)) == 1:
            below = [self.stage_of[x.op] for x in value.op.operands if isinstance(x, OpResult)]
            if len(set(below)) > 1:
                return frozenset(below)
        return frozenset([self.stage_of[value.op]])

    def _need(self, op: Operation, key: Key) -> None:
        pending = [(op, key)]
        while pending:
            needed, piece = pending.pop()
            draft = self.drafts[piece]
            if needed in draft.ops:
                continue
            draft.ops.add(needed)
            for value in (*needed.operands, *captured_values(needed)):
                pending += self._operand(value, piece, needed)

    def _read(self, value: Value, key: Key) -> None:
        """Let a piece have a value."""
        for op, piece in self._operand(value, key):
            self._need(op, piece)

    def _operand(self, value: Value, key: Key, reader: Operation | None = None) -> list[tuple[Operation, Key]]:
        """What it takes that a piece has a value, which ``reader`` reads: operations, each in a piece."""
        draft = self.drafts[key]
        if not isinstance(value, OpResult):
            self._argument(value, key, draft)
            return []
        owner = self._key(value.op)
        if owner == key or is_made_anew(value.op) or self._is_recomputed(value.op, key, reader):
            return [(value.op, key)]
        if owner == (FORWARD, key[1]) and value not in self.residuals and is_repeatable(value.op):
            return [(value.op, key)]
        draft.inputs[value] = None
        self.drafts[owner].outputs[value] = None
        return [(value.op, owner)]

    def _choose_residuals(self, stage: int) -> frozenset[Value]:
        """The values that the stage's backward pass has of its forward pass."""
        ops = [op for op in self.program.block if self.stage_of.get(op) == stage]
        read: list[Value] = []
        for op in ops:
            if "phase" in op.annotations:
                read += [*op.operands, *captured_values(op)]
            elif "recompute" in op.annotations and "kept" not in op.annotations:
                region = op.annotations["recompute"]
                read += [
                    x for x in op.operands if isinstance(x, OpResult) and x.op.annotations.get("recompute") != region
                ]
        return choose_residuals([op for op in ops if "phase" not in op.annotations], read)

    def _is_recomputed(self, op: Operation, key: Key, reader: Operation | None) -> bool:
        """Whether the backward pass of a region, or what it computes again, reads what the region computes."""
        region = op.annotations.get("recompute")
        if region is None or key[0] == FORWARD or self.stage_of[op] != key[1]:
            return False
        if not op.annotations.keys().isdisjoint(("kept", "phase")):
            return False
        return reader is not None and reader.annotations.get("recompute") == region

    def _argument(self, value: Value, key: Key, draft: _Draft) -> None:
        number = self.place[value] - self.first_state
        if number < 0 or number in self.counters:
            draft.inputs[value] = None
        elif self.writers.get(number, key) == key:
            draft.states.add(number)
        else:  # as it was before it is written
            draft.inputs[value] = None
            writer = self.drafts[self.writers[number]]
            writer.outputs[value] = None
            writer.states.add(number)

    # ---- the programs

    def _piece(self, key: Key, draft: _Draft) -> Piece:
        made = Program(f"{self.program.name}_{key[0]}{key[1]}")
        inputs, outputs = self._sort_values(draft.inputs), self._sort_values(draft.outputs)
        states = tuple(sorted(draft.states))
        mapping: dict[Value, Value] = {value: made.add_input(value.type) for value in inputs}
        for number in states:
            state = self.program.states[number]
            mapping[state.argument] = made.add_state(state.name, state.type, dict(state.attributes)).argument
        _copy(sorted(draft.ops, key=self.number.__getitem__), made, mapping)
        _take_functions(made, self.program)
        gradients = tuple(sorted(draft.terms))
        terms = [_sum([mapping[term] for term in draft.terms[position]], made) for position in gradients]
        updates = [mapping[draft.updates.get(n, self.program.states[n].argument)] for n in states]
        made.set_outputs([*(mapping[value] for value in outputs), *terms], updates)
        return Piece(made, inputs, outputs, gradients, states)

    def _sort_values(self, values: Iterable[Value]) -> tuple[Value, ...]:
        def order(value: Value) -> tuple[int, int]:
            return (self.number[value.op], value.index) if isinstance(value, OpResult) else (-1, self.place[value])

        return tuple(sorted(values, key=order))

    def _names(self, crossing: Iterable[Value]) -> dict[Value, str]:
        """Results are numbered among those that cross, so that ranks which compute other things in between agree."""
        made = [value for value in crossing if isinstance(value, OpResult)]
        made.sort(key=lambda value: (self.number[value.op], value.index))
        return {v: f"v{i}" for i, v in enumerate(made)} | {
            value: self._argument_name(value) for value in crossing if not isinstance(value, OpResult)
        }

    def _argument_name(self, value: Value) -> str:
        number = self.place[value] - self.first_state
        return (
            f"input{self.place[value]}"
            if number < 0
            else f"{'counter' if number in self.counters else 'state'}{number}"
        )


def _copy(ops: Iterable[Operation], made: Program, mapping: dict[Value, Value]) -> None:
    for op in ops:
        copied = op.clone(mapping)
        for inner in copied.walk():
            inner.annotations = NO_ANNOTATIONS
        made.block.append(copied)


def _take_functions(made: Program, source: Program) -> None:
    if any(op.name == "builtin.call" for op in made.walk()):
        for function in source.functions.values():
            made.add_function(function.clone())


def _sum(terms: Sequence[Value], made: Program) -> Value:
    total = terms[0]
    with emit_at(Builder.at_end(made.block)):
        for term in terms[1:]:
            total = prim.add(total, term)
    return total
