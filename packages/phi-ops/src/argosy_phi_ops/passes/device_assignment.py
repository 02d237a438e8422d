"""Where the values of a program are that spans devices: ``prim.place`` says it of its operand and of its result.

What an operation reads and makes is on one device. Some values are anywhere: constants, numbers (and states of random
draws) that are given, and what is computed of these alone and is no larger, or repeats one. Whoever needs them
computes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from argosy_phi_ops.errors import DeviceMismatch
from argosy_phi_ops.primitives.communication import is_communication
from argosy_pir.core import Block, Operation
from argosy_pir.opdef import RETURN
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.place import as_place, place_of

if TYPE_CHECKING:
    from argosy_hwadapt import Device

__all__ = ["PLACE", "DeviceAssignment", "devices_named", "is_number", "spans_devices", "values_read"]

PLACE = "prim.place"
SCAN = "control.scan"
#: Control operations that may span devices.
CONTROL = frozenset({"control.if", "control.while", "control.for", SCAN})


def spans_devices(program: Program) -> bool:
    """Whether the program has a ``prim.place``."""
    return any(op.name == PLACE for op in program.walk())


def devices_named(program: Program) -> list[Device]:
    """The devices that it names."""
    places = [op.attributes[end] for op in program.walk() if op.name == PLACE for end in ("source", "target")]
    return [as_place(name).device() for name in dict.fromkeys(places)]


def is_number(value: Value) -> bool:
    """Whether it goes anywhere by its type (see :mod:`argosy_phi_ops.eager.placement`)."""
    type = value.type
    return isinstance(type, TensorType) and (not type.shape or (type.shape == (2,) and type.dtype == "uint64"))


def _is_tensor(value: Value) -> bool:
    return isinstance(value.type, TensorType)


def values_read(op: Operation) -> list[Value]:
    """The values that an operation and its regions read of those around it, each once."""
    if not op.regions:
        return list(dict.fromkeys(op.operands))
    inside = list(op.walk())
    own: set[Value] = {
        v for each in inside for region in each.regions for block in region.blocks for v in block.arguments
    }
    own.update(v for each in inside for v in each.results)
    return [v for v in dict.fromkeys(v for each in inside for v in each.operands) if v not in own]


class DeviceAssignment:
    """The device of each value of ``program``, a program of primitives; ``default``: of what nothing is said of.

    Raises :class:`DeviceMismatch`, naming both devices and the operation, for operands on two, and
    ``NotImplementedError`` for a branch or loop that communicates. ``placed`` are names of the devices that arguments
    are on.
    """

    def __init__(self, program: Program, default: Device, placed: Mapping[Value, str] | None = None) -> None:
        self._parents: dict[Value, Value] = {}
        self._names: dict[Value, str] = {}
        self._devices: dict[str, Device] = {}
        self._default = place_of(default).name
        self._names.update(placed or {})
        self._anywhere: set[Value] = {v for v in program.block.arguments if is_number(v) and v not in self._names}
        self._constant: set[Value] = set()
        self._cut: set[Operation] = set()
        for op in program.block:
            if op.name != RETURN:
                self._assign(op)
        for state, update in zip(program.states, program.state_updates, strict=True):
            if not self.is_anywhere(state.argument) and not self.is_anywhere(update):
                self._unite([state.argument, update], f"state {state.name!r}")

    def is_anywhere(self, value: Value) -> bool:
        """Whether the value is computed on whatever device reads it."""
        return value in self._anywhere

    def is_copy(self, op: Operation) -> bool:
        """Whether the operation copies from device to device."""
        if op.name != PLACE or op.operand(0) in self._constant:
            return False
        return self.of(op.operand(0)) is not self.of(op.result)

    def is_step(self, op: Operation) -> bool:
        """Whether the operation is none of a segment's: a copy, communication, or a branch or loop that spans
        devices."""
        return self.is_copy(op) or is_communication(op) or (op in self._cut and len(self._places_within(op)) > 1)

    def _places_within(self, op: Operation) -> set[str]:
        """The names of the devices that a branch or loop computes on, and leaves its results on."""
        made = [v for each in op.walk() for v in each.results]
        ends = [end for region in op.regions for end in [region.blocks[0].last] if end is not None]
        read = [v for v in (*values_read(op), *(v for end in ends for v in end.operands)) if not is_number(v)]
        return {self.name_of(v) for v in (*made, *read) if v not in self._anywhere}

    def name_of(self, value: Value) -> str:
        """The name of its device."""
        return self._names.get(self._root(value), self._default)

    def of(self, value: Value) -> Device:
        """The device of a value."""
        name = self.name_of(value)
        if name not in self._devices:
            self._devices[name] = as_place(name).device()
        return self._devices[name]

    def _assign(self, op: Operation) -> None:
        where = f"{op.name}{op.location.suffix}"
        if op.name == PLACE:
            if op.operand(0) not in self._constant:
                self._name(op.operand(0), op.attributes["source"], where)
            self._name(op.result, op.attributes["target"], where)
            return
        if op.regions and any(map(is_communication, op.walk())):
            raise NotImplementedError(f"{PLACE} in a program whose {op.name} communicates: {where}")
        if op.regions and any(each.name == PLACE for each in op.walk()):
            self._cut.add(op)
            self._assign_regions(op, where)
            return
        read = [v for v in values_read(op) if _is_tensor(v)]
        if is_communication(op):
            self._unite([v for v in (*op.operands, *op.results) if _is_tensor(v) and v not in self._anywhere], where)
        elif all(v in self._constant for v in read):
            self._constant.update(op.results)
            self._anywhere.update(op.results)
        elif all(v in self._anywhere for v in read) and (op.kind == "broadcast" or all(map(is_number, op.results))):
            self._anywhere.update(op.results)
        else:
            held = [v for v in read if v not in self._anywhere]
            large = [v for v in held if not is_number(v)]
            self._unite([*op.results, *(large or held)], where)

    def _assign_regions(self, op: Operation, where: str) -> None:
        """What a loop carries is on one device in every round, what a branch yields where the other one does, and the
        rows of a scan where their operands and results are."""
        if op.name not in CONTROL:
            raise NotImplementedError(f"{PLACE} within {op.name}: {where}")
        groups: list[list[Value]] = [[result] for result in op.results]
        for number, region in enumerate(op.regions):
            (block,) = region.blocks
            if op.name != "control.if":
                self._join_arguments(op, block, groups, where)
            *inner, last = block
            for each in inner:
                self._assign(each)
            if op.name != "control.while" or number:
                for group, value in zip(groups, last.operands, strict=True):
                    group.append(value)
        for group in groups:
            self._unite([v for v in group if v not in self._anywhere], where)

    def _join_arguments(self, op: Operation, block: Block, groups: list[list[Value]], where: str) -> None:
        """Those that a loop carries belong to their results; before them come the rows of a scan, or a counter."""
        first: int = op.attributes["inputs"] if op.name == SCAN else 3 if op.name == "control.for" else 0
        count = len(op.operands) - first
        leading = block.arguments[: len(block.arguments) - count]
        if op.name == SCAN:
            for row, rows in zip(leading, op.operands[:first], strict=True):
                self._unite([row, *([] if rows in self._anywhere else [rows])], where)
        else:
            self._anywhere.update(leading)
        carried = zip(block.arguments[len(leading) :], op.operands[first:], strict=True)
        for group, pair in zip(groups[len(groups) - count :], carried, strict=True):
            group += pair

    def _root(self, value: Value) -> Value:
        while value in self._parents:
            value = self._parents[value]
        return value

    def _unite(self, values: Sequence[Value], where: str) -> None:
        for other in map(self._root, values[1:]):
            first = self._root(values[0])
            if other is not first:
                name = self._names.pop(other, None)
                self._parents[other] = first
                if name is not None:
                    self._name(first, name, where)

    def _name(self, value: Value, name: str, where: str) -> None:
        before = self._names.setdefault(self._root(value), name)
        if before != name:
            raise DeviceMismatch(f"{where}: operands are on {before} and on {name}; bring them to one device")
