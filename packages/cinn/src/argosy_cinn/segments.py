"""Programs cut by device: a list of segments, each a program for one device, and of copies between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from argosy_hwadapt import Device
from argosy_phi_ops.passes.device_assignment import PLACE, DeviceAssignment, values_read
from argosy_pir.core import Operation
from argosy_pir.opdef import RETURN
from argosy_pir.program import Program
from argosy_pir.values import OpResult, Value

__all__ = ["DeviceSegment", "cut_by_device"]


@dataclass(slots=True)
class DeviceSegment:
    """A program for ``device``, which reads and makes these values of the whole program: its inputs and outputs. Its
    states are those of the whole program with the numbers ``states``; ``writes``: whether it writes any."""

    device: Device
    program: Program
    operations: list[Operation]
    reads: list[Value] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    makes: list[Value] = field(default_factory=list)
    writes: bool = False

    def reaches(self) -> set[Operation]:
        """Its operations, those in regions, too."""
        return {inner for op in self.operations for inner in op.walk()}


def cut_by_device(program: Program, assignment: DeviceAssignment) -> tuple[list[DeviceSegment | Operation], set[int]]:
    """The steps of a program of primitives, copies as their operations; and the numbers of the states that a segment
    writes where they are: nobody reads afterwards what they were."""
    steps = _order(program, assignment)
    for step in steps:
        if isinstance(step, DeviceSegment):
            _fill(step, program, assignment)
    written: set[int] = set()
    for i, update in enumerate(program.state_updates):
        place = next((k for k, s in enumerate(steps) if isinstance(s, DeviceSegment) and update in s.makes), None)
        if place is not None and not _is_read(program, i, steps[place + 1 :]):
            segment = steps[place]
            assert isinstance(segment, DeviceSegment)
            _write_in_place(segment, program, i)
            written.add(i)
    return steps, written


def _order(program: Program, assignment: DeviceAssignment) -> list[DeviceSegment | Operation]:
    """Each copy as early as it can be; between them what can run on a device, as much as possible at once."""
    returned = {*program.outputs, *program.state_updates}
    named = {v for op in program.block if assignment.is_step(op) for v in values_read(op)} | returned
    left = [
        op
        for op in program.block
        if op.name != RETURN and not (all(map(assignment.is_anywhere, op.results)) and named.isdisjoint(op.results))
    ]
    done: set[Value] = set(program.block.arguments)

    def is_ready(op: Operation) -> bool:
        alone = assignment.is_step(op)
        return all(v in done or (assignment.is_anywhere(v) and not alone) for v in values_read(op))

    steps: list[DeviceSegment | Operation] = []
    while left:
        taken = [op for op in left if assignment.is_step(op) and is_ready(op)]
        steps += taken
        if not taken:
            device = next(assignment.of(op.results[0]) for op in left if is_ready(op))
            for op in left:
                if assignment.of(op.results[0]) is device and not assignment.is_step(op) and is_ready(op):
                    taken.append(op)
                    done.update(op.results)
            name = f"{program.name}_{len(steps)}"
            steps.append(DeviceSegment(device, Program(name), taken))
        done.update(r for op in taken for r in op.results)
        gone = set(taken)
        left = [op for op in left if op not in gone]
    return steps


def _fill(segment: DeviceSegment, program: Program, assignment: DeviceAssignment) -> None:
    """Make the segment's program; what is anywhere is computed in it."""
    made, mapping = segment.program, dict[Value, Value]()
    numbers = {state.argument: i for i, state in enumerate(program.states)}
    pending = segment.operations[::-1]
    own = {r for op in pending for r in op.results}
    while pending:
        op = pending[-1]
        missing = [v for v in values_read(op) if v not in mapping]
        computed = [v.op for v in missing if isinstance(v, OpResult) and (v in own or assignment.is_anywhere(v))]
        if computed:
            pending += dict.fromkeys(computed)
            continue
        for value in missing:
            if value in numbers:
                state = program.states[numbers[value]]
                mapping[value] = made.add_state(state.name, state.type, state.attributes).argument
                segment.states.append(numbers[value])
            else:
                mapping[value] = made.add_input(value.type)
                segment.reads.append(value)
        pending.pop()
        if op.name == PLACE:
            mapping[op.result] = mapping[op.operand(0)]
        elif op.results[0] not in mapping:
            made.block.append(op.clone(mapping))
            _drop_places(made.block.last)
    taken = segment.reaches()
    segment.makes = [r for op in segment.operations for r in op.results if not taken.issuperset(r.users)]
    made.set_outputs([mapping[v] for v in segment.makes])


def _drop_places(op: Operation | None) -> None:
    """Without what a branch or loop on one device says of where its values are."""
    for inner in list(op.walk()) if op is not None else ():
        if inner.name == PLACE:
            inner.replace_with([inner.operand(0)])


def _is_read(program: Program, number: int, steps: list[DeviceSegment | Operation]) -> bool:
    """Whether the value of a state at entry is returned, or read in one of the steps."""
    argument = program.states[number].argument
    if argument in program.outputs or program.state_updates.count(argument):
        return True
    return any(argument in values_read(s) if isinstance(s, Operation) else number in s.states for s in steps)


def _write_in_place(segment: DeviceSegment, program: Program, number: int) -> None:
    """Let the segment write a state; its new value is a result only where somebody else reads it."""
    update, state, made = program.state_updates[number], program.states[number], segment.program
    if number not in segment.states:
        made.add_state(state.name, state.type, state.attributes)
        segment.states.append(number)
    outputs, updates = list(made.outputs), list(made.state_updates)
    updates[segment.states.index(number)] = outputs[segment.makes.index(update)]
    alone = update not in program.outputs and program.state_updates.count(update) == 1
    if alone and segment.reaches().issuperset(set(update.users) - {program.block.last}):
        del outputs[segment.makes.index(update)]
        segment.makes.remove(update)
    made.set_outputs(outputs, updates)
    segment.writes = True
