"""Control flow: branches and loops whose bodies are compiled programs, driven from Python.

A region becomes a program of its own: its inputs are the region's arguments and what it reads from around, its outputs
what it yields. Constants from around are copied in, so that they are numbers there, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from argosy_cinn.shapes import sizes
from argosy_pir.core import Block, Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import OpResult, Value
from argosy_tensorcore.storage import StridedArray

Array = np.ndarray[Any, Any]
#: Compiles a region's program into a function of payloads.
CompileRegion = Callable[[Program], Callable[[Sequence[StridedArray]], list[StridedArray]]]


class Region:
    """A compiled region: ``captured_values`` are the values from around that it takes after its own arguments."""

    def __init__(self, block: Block, name: str, compile: CompileRegion) -> None:
        program, self.captured = region_program(block, name)
        self._run = compile(program)

    def run(self, arguments: Sequence[StridedArray], around: Mapping[Value, StridedArray]) -> list[StridedArray]:
        """What the region yields."""
        return self._run([*arguments, *(around[value] for value in self.captured)])


def is_compiled(op: Operation) -> bool:
    """Whether the regions of a control operation can be programs: all they take and give are tensors."""
    if op.name not in _RUNS:
        return False
    values = [*op.operands, *op.results]
    for region in op.regions:
        for inner in region.walk():
            values += [*inner.operands, *inner.results]
    return all(isinstance(v.type, TensorType) for v in values)


def region_program(block: Block, name: str) -> tuple[Program, list[Value]]:
    """The program of a region's block, and the values from around that follow its arguments as inputs."""
    program = Program(name)
    mapping: dict[Value, Value] = {a: program.add_input(a.type, a.name_hint) for a in block.arguments}
    captured_values = _capture(block)
    kept = [value for value in captured_values if not _is_constant(value)]
    mapping.update((value, program.add_input(value.type, value.name_hint)) for value in kept)
    for value in captured_values:
        if isinstance(value, OpResult) and _is_constant(value):
            program.block.append(value.op.clone(mapping))
    program.set_outputs(block.inline_into(program.block, None, mapping))
    return program, kept


def captured_values(op: Operation) -> list[Value]:
    """The values from around that the regions of an operation read."""
    return list(dict.fromkeys(v for region in op.regions for block in region.blocks for v in _capture(block)))


def _is_constant(value: Value) -> bool:
    return isinstance(value, OpResult) and value.op.name == "builtin.constant"


def _capture(block: Block) -> list[Value]:
    """Values that the block reads and does not define, in order of first use."""
    own: set[Value] = set(block.arguments)
    read: dict[Value, None] = {}
    for op in block.walk():
        own.update(op.results)
        own.update(a for region in op.regions for inner in region.blocks for a in inner.arguments)
        read.update(dict.fromkeys(op.operands))
    return [value for value in read if value not in own]


class ControlCall:
    """A control operation with compiled regions."""

    def __init__(self, op: Operation, compile: CompileRegion) -> None:
        self.op = op
        self._regions = [Region(r.blocks[0], f"{op.name}.{i}", compile) for i, r in enumerate(op.regions)]
        around = [value for region in self._regions for value in region.captured]
        self.reads = list(dict.fromkeys([*op.operands, *around]))

    def run(self, values: Mapping[Value, Array]) -> list[Array]:
        """The results, from the arrays of everything that `reads` names."""
        payloads = {value: StridedArray.from_array(array) for value, array in values.items()}
        return [p.array() for p in run_control(self.op, self._regions, payloads)]


Payloads = Mapping[Value, StridedArray]


def run_control(op: Operation, regions: list[Region], values: Payloads) -> list[StridedArray]:
    """The results of a control operation, from the payloads of what it and its regions read."""
    return _RUNS[op.name](op, regions, [values[value] for value in op.operands], values)


def _if(op: Operation, regions: list[Region], operands: list[StridedArray], around: Payloads) -> list[StridedArray]:
    return regions[0 if operands[0].to_host() else 1].run((), around)


def _run_while(
    op: Operation, regions: list[Region], carried: list[StridedArray], around: Payloads
) -> list[StridedArray]:
    condition, body = regions
    while condition.run(carried, around)[0].to_host():
        carried = body.run(carried, around)
    return carried


def _run_for(
    op: Operation, regions: list[Region], operands: list[StridedArray], around: Payloads
) -> list[StridedArray]:
    start, stop, step, *carried = operands
    bounds = [int(p.to_host()) for p in (start, stop, step)]
    if not bounds[2]:
        raise ValueError(f"'control.for' at {op.location} has a step of zero")
    for index in range(*bounds):
        position = StridedArray(np.asarray(index, start.dtype.numpy))
        carried = regions[0].run([position, *carried], around)
    return carried


def _scan(op: Operation, regions: list[Region], operands: list[StridedArray], around: Payloads) -> list[StridedArray]:
    """Rows are views, and results are made where the first round leaves its own."""
    count, backwards = op.attributes["inputs"], op.attributes.get("reverse") or False
    xs, carried = operands[:count], operands[count:]
    stacked = op.results[: len(op.results) - len(carried)]
    length = xs[0].shape[0] if xs else int(op.attributes["length"])
    outputs: list[StridedArray] = [] if length else [_results_of(result, None) for result in stacked]
    for i in reversed(range(length)) if backwards else range(length):
        yielded = regions[0].run([*(_row(x, i) for x in xs), *carried], around)
        rows, carried = yielded[: len(stacked)], yielded[len(stacked) :]
        outputs = outputs or [_results_of(result, row) for result, row in zip(stacked, rows, strict=True)]
        for output, row in zip(outputs, rows, strict=True):
            _row(output, i).copy_from(row)
    return [*outputs, *carried]


def _row(x: StridedArray, i: int) -> StridedArray:
    return x.view(x.shape[1:], x.strides[1:], i * x.strides[0])


def _results_of(result: Value, row: StridedArray | None) -> StridedArray:
    """Memory for the rows of a result, where one is."""
    return StridedArray.empty(sizes(result), result.dtype, None if row is None else row.array_type.device)


_RUNS: dict[str, Callable[[Operation, list[Region], list[StridedArray], Payloads], list[StridedArray]]] = {
    "control.if": _if,
    "control.while": _run_while,
    "control.for": _run_for,
    "control.scan": _scan,
}
