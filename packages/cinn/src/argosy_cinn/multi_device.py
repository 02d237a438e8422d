"""Programs that span devices: cut into segments by device, with copies between them on a stream of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from argosy_cinn.collectives import communicate
from argosy_cinn.control import Region, region_program, run_control
from argosy_cinn.host import HostCall
from argosy_cinn.segments import DeviceSegment, cut_by_device
from argosy_cinn.shapes import sizes
from argosy_cinn.staged_call import Address
from argosy_cinn.strided_copies import copy_contiguous
from argosy_hwadapt import Device
from argosy_phi_ops.eager.placement import copy_elements, send
from argosy_phi_ops.passes.device_assignment import DeviceAssignment, values_read
from argosy_phi_ops.primitives.communication import is_communication
from argosy_pir.core import Block, Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import BlockArgument, Value
from argosy_tensorcore.storage import StridedArray, host_device

__all__ = ["MultiDeviceExecutable"]

Call = Callable[[Sequence[StridedArray]], list[StridedArray]]


class MultiDeviceExecutable:
    """``program``, whose primitives are ``primitives``, on the devices that it names; what it says nothing of is on
    ``device``. ``compile`` makes the executable of a segment; ``placed`` are the names of the devices of arguments.
    Branches and loops with copies in them are run by the host, and their regions are such programs themselves.
    ``communicators`` by group run what communicates, between segments."""

    reason = ""

    def __init__(
        self, program: Program, primitives: Program, device: Device, compile: Callable[[Program, Device], Any],
        placed: Mapping[Value, str] | None = None, communicators: Mapping[tuple[int, ...], Any] | None = None,
    ) -> None:  # fmt: skip
        self.program, self.primitives = program, primitives
        self.assignment = DeviceAssignment(primitives, device, placed)
        self.steps, self.in_place = cut_by_device(primitives, self.assignment)
        self.made: list[Any] = [
            compile(s.program, s.device) if isinstance(s, DeviceSegment) else None for s in self.steps
        ]
        self.controls = {
            s: [self._region(region.blocks[0], f"{s.name}.{i}", device, compile) for i, region in enumerate(s.regions)]
            for s in self.steps
            if isinstance(s, Operation) and s.regions
        }
        self.communicators = communicators or {}
        self.collectives = {
            s: HostCall(s, primitives, {}, _compile_no_region)
            for s in self.steps
            if isinstance(s, Operation) and is_communication(s)
        }
        self.last_steps = _last_steps(self.steps, primitives)

    def _region(self, block: Block, name: str, device: Device, compile: Callable[[Program, Device], Any]) -> Region:
        around = [*block.arguments, *region_program(block, name)[1]]

        def executable(program: Program) -> Call:
            pairs = zip(program.block.arguments, around, strict=True)
            held = {v: outer for v, outer in pairs if not self.assignment.is_anywhere(outer)}
            placed: dict[Value, str] = {v: self.assignment.name_of(outer) for v, outer in held.items()}
            run = MultiDeviceExecutable(program, program, device, compile, placed).bind(())
            devices = [self.assignment.of(held[v]) if v in held else None for v in program.block.arguments]
            return lambda given: run([x if d is None else _bring(x, d) for x, d in zip(given, devices, strict=True)])

        return Region(block, name, executable)

    def run(self, inputs: Sequence[StridedArray], states: Sequence[StridedArray] = ()) -> list[StridedArray]:
        """Submit one run."""
        return self.bind(states)(inputs)

    def bind(self, states: Sequence[StridedArray]) -> Call:
        """A callable for repeated execution on the same states."""
        return _Call(self, list(states))

    def report(self) -> dict[str, Any]:
        """The sums of the segments' figures; ``segments`` is how many there are by device."""
        reports = [made.report() for made in self.made if made is not None]
        names = Counter(str(step.device) for step in self.steps if isinstance(step, DeviceSegment))
        calls: Counter[str] = Counter()
        for report in reports:
            calls.update(report["host_calls"])
        sums = {name: sum(r.get(name, 0) for r in reports) for name in ("kernels", "kernel_calls", "arena_bytes")}
        seconds = sum(r.get("compile_seconds", 0.0) for r in reports)
        hit = all(r.get("cache_hit", False) for r in reports)
        return {
            **sums,
            "host_calls": dict(calls),
            "compile_seconds": seconds,
            "cache_hit": hit,
            "segments": dict(names),
        }

    def describe(self) -> str:
        """What `argosy_cinn.explain` shows."""
        lines = []
        for step, made in zip(self.steps, self.made, strict=True):
            if isinstance(step, Operation) and step in self.controls:
                lines.append(f"{step.name}, run by the host")
            elif isinstance(step, Operation) and step in self.collectives:
                lines.append(f"{step.name} of a communicator")
            elif isinstance(step, Operation):
                lines.append(f"a copy from {step.attributes['source']} to {step.attributes['target']}")
            else:
                lines += [f"a segment on {step.device}:", made.describe()]
        return "\n".join(lines)


def _last_steps(steps: Sequence[DeviceSegment | Operation], program: Program) -> list[list[Value]]:
    """For each step the values that nobody reads after it."""
    kept = {*program.block.arguments, *program.outputs, *program.state_updates}
    found: list[list[Value]] = []
    for step in reversed(steps):
        read = step.reads if isinstance(step, DeviceSegment) else values_read(step)
        found.append([v for v in dict.fromkeys(read) if v not in kept])
        kept.update(read)
    return found[::-1]


class _Call:
    """Runs of a program that spans devices, on the same states."""

    def __init__(self, executable: MultiDeviceExecutable, states: list[StridedArray]) -> None:
        self.executable, self.states = executable, states
        self.bound: list[Call | None] = [
            made.bind([states[i] for i in step.states]) if isinstance(step, DeviceSegment) else None
            for step, made in zip(executable.steps, executable.made, strict=True)
        ]

    def __call__(self, inputs: Sequence[StridedArray]) -> list[StridedArray]:
        """Submit a run; the results."""
        made, program = self.executable, self.executable.primitives
        if len(inputs) != len(program.inputs):
            raise ValueError(f"program '{program.name}' takes {len(program.inputs)} inputs, got {len(inputs)}")
        values: dict[Value, Any] = dict(zip(program.block.arguments, [*inputs, *self.states], strict=True))
        copied: set[Device] = set()
        for step, bound, last in zip(made.steps, self.bound, made.last_steps, strict=True):
            if isinstance(step, Operation) and step in made.controls:
                payloads = {v: _payload_of(values, v) for v in values_read(step)}
                results = run_control(step, made.controls[step], payloads)
                devices = map(made.assignment.of, step.results)
                values.update(zip(step.results, map(_bring, results, devices), strict=True))
            elif isinstance(step, Operation) and step in made.collectives:
                values.update(self._communicate(step, values))
            elif isinstance(step, Operation):
                copy = values[step.result] = _Transfer(
                    _payload_of(values, step.operand(0)), made.assignment.of(step.result)
                )
                copied.add(copy.source)
            else:
                assert bound is not None
                if step.writes and step.device in copied:  # what is written may be on its way
                    _let_wait(step.device)
                results = bound([_payload_of(values, v) for v in step.reads])
                values.update(zip(step.makes, results, strict=True))
            for value in last:
                values.pop(value, None)
        outputs = [_payload_of(values, v) for v in program.outputs]
        self._write(values)
        return [_copy_argument(v, x) for v, x in zip(program.outputs, outputs, strict=True)]

    def _communicate(self, op: Operation, values: Mapping[Value, Any]) -> dict[Value, Any]:
        """The results of a communication where its operands are; what is no tensor is carried as it is."""
        made = self.executable
        call, tensors = made.collectives[op], [v for v in (*op.results, *op.operands) if isinstance(v.type, TensorType)]
        tokens = {v: values.get(v) for v in op.operands if v not in tensors}
        device = made.assignment.of(tensors[0]) if tensors else host_device()
        found: dict[Value, StridedArray] = {}
        for value in tensors:
            if value in op.results:
                found[value] = StridedArray.empty(sizes(value), value.dtype, None if device.is_host else device)
            else:
                payload = _bring(_payload_of(values, value), device)
                found[value] = payload if payload.contiguous or device.is_host else copy_contiguous(payload)
        if device.is_host:
            call.run(lambda value: found[value].array(), tokens, made.communicators)
        else:
            communicate(device, call, lambda value: _address(found[value]), tokens, made.communicators)
        return {v: found[v] if v in found else tokens.get(v) for v in op.results}

    def _write(self, values: dict[Value, Any]) -> None:
        """States that no segment has written where they are."""
        made, program = self.executable, self.executable.primitives
        new = []
        for i, (state, update) in enumerate(zip(program.states, program.state_updates, strict=True)):
            if update is not state.argument and i not in made.in_place:
                new.append((self.states[i], _copy_argument(update, _payload_of(values, update))))
        for target, source in new:
            copy_elements(target, source)
            target.bump_version()


def _compile_no_region(region: Program) -> Any:
    raise NotImplementedError(f"communication within {region.name}")


def _address(payload: StridedArray) -> Address:
    return payload.storage.buffer, payload.offset * payload.dtype.itemsize


def _copy_argument(value: Value, payload: StridedArray) -> StridedArray:
    """The payload; of an argument of the program a copy."""
    if not isinstance(value, BlockArgument):
        return payload
    copy = StridedArray.empty(payload.shape, payload.dtype, payload.device)
    copy.copy_from(payload)
    return copy


def _bring(payload: StridedArray, device: Device) -> StridedArray:
    """The payload on a device: a constant that a branch yields, or a loop begins with, may be elsewhere."""
    return payload if payload.device is device else send(StridedArray(payload.to_host()), device)


def _payload_of(values: Mapping[Value, Any], value: Value) -> StridedArray:
    found = values[value]
    payload: StridedArray = found.receive() if isinstance(found, _Transfer) else found
    return payload


_streams: WeakKeyDictionary[Device, Any] = WeakKeyDictionary()
"""Those that copies go on, by device, where it offers streams."""


def _stream_of(device: Device) -> Any:
    if device not in _streams:
        _streams[device] = device.call("stream_create") if device.offers("stream_create") else None
    return _streams[device]


def _let_wait(device: Device) -> None:
    """Let later work of the device wait for its copies."""
    stream = _stream_of(device)
    if stream is not None:
        device.order_streams(device.current_stream, [stream])


class _Transfer:
    """A copy to another device, which has begun; from a device to the host, or through it.

    What others do meanwhile goes on: the host waits when somebody needs the copy there, the target's work when it comes
    to read it.
    """

    def __init__(self, payload: StridedArray, target: Device) -> None:
        self.source, self.target = payload.device, target
        self._there: StridedArray | None = None
        self._ordered = target.is_host
        if self.source.is_host:
            self._array = np.array(payload.to_host(), order="C")  # its owner may change it meanwhile
            self._push()
            return
        payload = payload if payload.contiguous else copy_contiguous(payload)
        self._array = np.empty(payload.shape, payload.dtype.numpy)
        if self._array.nbytes:
            stream, device = _stream_of(self.source), self.source
            if stream is not None:
                device.order_streams(stream, [device.current_stream])
            start, memory = payload.offset * payload.dtype.itemsize, self._array.reshape(-1).view(np.uint8)
            device.copy(memory, payload.storage.buffer, memory.nbytes, 0, start, stream)

    def _push(self) -> None:
        """Copy what is on the host to the target, in memory of the stream of copies."""
        if self.target.is_host:
            self._there = StridedArray(self._array)
            return
        before, stream = self.target.current_stream, _stream_of(self.target)
        self.target.current_stream = before if stream is None else stream
        try:
            self._there = send(StridedArray(self._array), self.target)
        finally:
            self.target.current_stream = before

    def receive(self) -> StridedArray:
        """The copy, for work that is submitted from now on."""
        if self._there is None:
            self.source.synchronize(_stream_of(self.source))
            self._push()
        if not self._ordered:
            self._ordered = True
            _let_wait(self.target)
        assert self._there is not None
        return self._there
