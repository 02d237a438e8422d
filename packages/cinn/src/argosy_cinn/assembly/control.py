"""Branches and loops as native code: a function of kernel form that calls the functions of its regions.

A region is a function ``void (ptr addresses, ptr dims)`` like a segment of a program. Carried values pass between two
buffers, the place of the result and a spare one, so that a step reads one and writes the other; rows of scanned and
stacked tensors are read and written where they lie. Nothing is allocated while a loop runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argosy_cinn.checks.emit import is_clear
from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.index_check import RECORD
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.plan.control import ControlForm, RegionPlan, scan_length, spare
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import I8, I64, LLVM_TYPES, PTR, VOID, Index, constant
from argosy_cinn.printers.types import Value as MachineValue
from argosy_cinn.runtime.interrupts import Poll
from argosy_cinn.shapes import count
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

#: The bytes that an index or a condition of any dtype fits in.
_SCALAR = 8


def row_bytes(value: Value, rows: int) -> int:
    """The bytes of one of ``rows`` equal parts of a value."""
    return count(value) * ITEM_SIZES[value.dtype] // rows


def emit_control(module: Module, name: str, flow: ControlForm, slots: Mapping[Any, int]) -> None:
    """Define the function ``name``."""
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        b.sizes_from(b.arguments[0], len(slots))
        pointers = Pointers(b, b.arguments[0], slots)
        arena = pointers(flow.workspace) if flow.workspace in slots else MachineValue(PTR, "null")
        calls = [_RegionCall(b, region, f"{name}.region{i}", pointers, arena) for i, region in enumerate(flow.regions)]
        _EMIT[flow.op.name](b, flow, pointers, calls)


class _RegionCall:
    """Calls of a region: its table of addresses, of which arguments and results change from call to call."""

    def __init__(self, b: Function, region: RegionPlan, function: str, pointers: Pointers, arena: MachineValue) -> None:
        self.b, self.region, self.function = b, region, function
        outputs, constants = region.program.outputs, region.plan.constants
        self.first_output = 1 + len(region.program.inputs)
        last = self.first_output + len(outputs) + len(constants)
        self.table = b.alloca(PTR, last + 1)
        fixed = {0: arena}
        fixed |= {1 + region.arguments + i: pointers(v) for i, v in enumerate(region.captured)}
        fixed |= {self.first_output + len(outputs) + i: pointers(v) for i, v in enumerate(constants)}
        if RECORD in region.plan.places:
            fixed[last] = pointers(RECORD)
        for entry, address in fixed.items():
            b.store(address, b.gep(self.table, entry, PTR))

    def __call__(self, arguments: Sequence[MachineValue], results: Sequence[MachineValue]) -> None:
        b = self.b
        for i, address in enumerate(arguments):
            b.store(address, b.gep(self.table, 1 + i, PTR))
        for i, address in enumerate(results):
            b.store(address, b.gep(self.table, self.first_output + i, PTR))
        b.call(self.function, VOID, self.table, b.dims)


class _CarriedBuffers:
    """The buffers of carried values: a triple of where a value is, where it goes next, and the other buffer."""

    def __init__(self, b: Function, flow: ControlForm, pointers: Pointers) -> None:
        self.b, self.values, self.pointers = b, flow.carried_results, pointers
        first = len(flow.op.operands) - len(self.values)
        self.start: list[MachineValue] = []
        for value, operand in zip(self.values, flow.op.operands[first:], strict=True):
            self.start += [pointers(operand), pointers(value), pointers(spare(value))]

    def step(self, state: Sequence[MachineValue]) -> tuple[list[MachineValue], list[MachineValue], list[MachineValue]]:
        """Where values are and go, and the state of the next step."""
        now, after, other = state[::3], state[1::3], state[2::3]
        following = [p for a, o in zip(after, other, strict=True) for p in (a, o, a)]
        return list(now), list(after), following

    def finish(self, state: Sequence[MachineValue]) -> None:
        """Bring the last values to their results."""
        b = self.b
        for value, place in zip(self.values, state[::3], strict=True):
            operands = (self.pointers(value), place, b.index(row_bytes(value, 1)), constant("i1", 0))
            b.intrinsic("llvm.memmove", VOID, *operands, overloads=(PTR, PTR, I64))


def _if(b: Function, flow: ControlForm, pointers: Pointers, regions: list[_RegionCall]) -> None:
    results = [pointers(v) for v in flow.op.results]
    condition = b.icmp("ne", b.load(I8, pointers(flow.op.operand(0))), 0)

    def way(region: _RegionCall) -> list[MachineValue]:
        region([], results)
        return []

    b.either(condition, lambda: way(regions[0]), lambda: way(regions[1]))


def _emit_while(b: Function, flow: ControlForm, pointers: Pointers, regions: list[_RegionCall]) -> None:
    condition, body = regions
    carried = _CarriedBuffers(b, flow, pointers)
    flag, poll = b.alloca(I8, _SCALAR), Poll(b)

    def holds(state: list[MachineValue]) -> MachineValue:
        condition(carried.step(state)[0], [flag])
        again = b.binary("and", b.icmp("ne", b.load(I8, flag), 0), poll.goes_on())
        return b.binary("and", again, is_clear(b, pointers(RECORD))) if flow.checks_indices else again

    def step(state: list[MachineValue]) -> list[MachineValue]:
        now, after, following = carried.step(state)
        body(now, after)
        return following

    carried.finish(b.repeat(carried.start, holds, step))


def _emit_for(b: Function, flow: ControlForm, pointers: Pointers, regions: list[_RegionCall]) -> None:
    start, stop, _ = flow.op.operands[:3]
    carried, memory = _CarriedBuffers(b, flow, pointers), LLVM_TYPES[start.dtype]
    position = b.alloca(memory, _SCALAR)
    extend = "zext" if start.dtype.startswith("u") else "sext"
    low, high = (b.convert(extend, b.load(memory, pointers(v)), I64) for v in (start, stop))
    ahead = b.sub(high, low) if flow.step > 0 else b.sub(low, high)
    steps = b.div(b.add(b.maximum(ahead, 0), abs(flow.step) - 1), abs(flow.step))

    def step(i: MachineValue, state: Sequence[MachineValue]) -> list[MachineValue]:
        index = b.index(b.add(low, b.mul(i, flow.step)))
        b.store(b.convert("trunc", index, memory), position)
        now, after, following = carried.step(state)
        regions[0]([position, *now], after)
        return following

    carried.finish(_count(b, steps, carried.start, step))


def _count(
    b: Function,
    steps: Index,
    start: Sequence[MachineValue],
    body: Callable[[MachineValue, Sequence[MachineValue]], list[MachineValue]],
) -> list[MachineValue]:
    """``for i in range(steps): state = body(i, state)``, unless a signal ends it: what is carried when it ends."""
    poll = Poll(b)

    def holds(state: list[MachineValue]) -> MachineValue:
        return b.binary("and", b.icmp("slt", state[0], steps), poll.goes_on())

    def step(state: list[MachineValue]) -> list[MachineValue]:
        return [b.index(b.add(state[0], 1)), *body(state[0], state[1:])]

    return b.repeat([b.index(0), *start], holds, step)[1:]


def _scan(b: Function, flow: ControlForm, pointers: Pointers, regions: list[_RegionCall]) -> None:
    op, length, carried = flow.op, scan_length(flow.op), _CarriedBuffers(b, flow, pointers)
    scanned = op.operands[: op.attributes["inputs"]]
    stacked = op.results[: len(op.results) - len(carried.values)]

    def step(position: MachineValue, state: Sequence[MachineValue]) -> list[MachineValue]:
        i: Index = b.sub(length - 1, position) if op.attributes.get("reverse") else position

        def row(value: Value) -> MachineValue:
            return b.gep(pointers(value), b.mul(i, row_bytes(value, length)), I8)

        now, after, following = carried.step(state)
        regions[0]([*map(row, scanned), *now], [*map(row, stacked), *after])
        return following

    carried.finish(_count(b, length, carried.start, step))


_EMIT = {"control.if": _if, "control.while": _emit_while, "control.for": _emit_for, "control.scan": _scan}
EMITTER = Emitter(emit_control, lambda flow, target: 1)
"""For `argosy_cinn.kinds`."""
