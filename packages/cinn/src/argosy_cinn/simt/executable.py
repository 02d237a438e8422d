"""Programs on devices of work-groups: one set of kernels for each combination of sizes that is met."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from argosy_cinn.device_call import Address, DeviceCall
from argosy_cinn.fallback import InterpretedExecutable
from argosy_cinn.forms.index_check import RECORD_BYTES
from argosy_cinn.simt.program import SimtProgram
from argosy_cinn.simt.replay import CapturedRun, captures_graphs
from argosy_cinn.simt.steps import Run, address_of
from argosy_cinn.specialise import bind_sizes
from argosy_hwadapt import Buffer, Device
from argosy_phi_ops.errors import CompileError
from argosy_phi_ops.reference.symbols import bind_symbols
from argosy_phi_ops.user_line import user_location
from argosy_pir.location import Location
from argosy_pir.program import Program
from argosy_tensorcore.storage import StridedArray, host_device

__all__ = ["SimtExecutable"]

Call = Callable[[Sequence[StridedArray]], list[StridedArray]]


class SimtExecutable:
    """``program`` on ``device``. ``reason`` is why it runs on the host instead, counted: a kernel has no schedule of
    work-groups, no text, or the device refuses it. It is empty where all kernels are there, or sizes are not known."""

    def __init__(self, program: Program, device: Device, options: Mapping[str, Any]) -> None:
        self.program, self.device, self._options = program, device, options
        self._made: dict[tuple[int, ...], SimtProgram | InterpretedExecutable] = {}
        self._symbols = program.symbols()
        self.reason = ""
        if not self._symbols:
            made = self._made[()] = self._attempt(program)
            self.reason = made.reason if isinstance(made, InterpretedExecutable) else ""

    def _attempt(self, program: Program) -> SimtProgram | InterpretedExecutable:
        try:
            made = SimtProgram(program, self.device, self._options)
            made.load()
        except CompileError as error:
            return InterpretedExecutable(program, host_device(), {}, str(error))
        return made

    def run(self, inputs: Sequence[StridedArray], states: Sequence[StridedArray] = ()) -> list[StridedArray]:
        """Submit one run."""
        return self.bind(states)(inputs)

    def bind(self, states: Sequence[StridedArray]) -> Call:
        """A callable for repeated execution on the same states."""
        held = list(states)
        if not self._symbols:
            return self._bind(self._made[()], held)
        bound: dict[tuple[int, ...], Call] = {}

        def call(inputs: Sequence[StridedArray]) -> list[StridedArray]:
            arguments = self.program.block.arguments
            labelled = [(f"argument {i}", arguments[i], payload) for i, payload in enumerate((*inputs, *held))]
            symbols = bind_symbols(labelled)
            key = tuple([symbols[name] for name in self._symbols])
            if key not in bound:
                if key not in self._made:
                    self._made[key] = self._attempt(bind_sizes(self.program, symbols))
                bound[key] = self._bind(self._made[key], held)
            return bound[key](inputs)

        return call

    def _bind(self, made: SimtProgram | InterpretedExecutable, states: list[StridedArray]) -> Call:
        if isinstance(made, InterpretedExecutable):
            return made.bind_from(self.device, states)
        return KernelLaunches(made, self.device, states)

    def report(self) -> dict[str, Any]:
        """The figures of the latest sizes."""
        return self._latest.report() if self._made else {"kernels": 0, "host_calls": {}}

    def describe(self) -> str:
        """What `argosy_cinn.explain` shows."""
        return f"on {self.device}:\n{self._latest.describe()}" if self._made else f"on {self.device}"

    @property
    def _latest(self) -> SimtProgram | InterpretedExecutable:
        return list(self._made.values())[-1]


class KernelLaunches(DeviceCall):
    """Launches of a program's kernels; from the third call on a replay of them, where the device captures graphs, and
    there are more of them than values that come and go."""

    def __init__(self, program: SimtProgram, device: Device, states: list[StridedArray]) -> None:
        super().__init__(program, device, states)
        self.kernels = program.load()
        alone = program.record is None and len(program.launches) == len(program.steps)
        self._pays = alone and len(program.steps) > program.inputs + len(program.outputs)
        self._calls = 0
        self._captured: CapturedRun | None = None

    @property
    def arena_bytes(self) -> int:
        """See :class:`DeviceCall`."""
        return int(self.program.arena_bytes)

    def submit(self, arena: Buffer, payloads: list[StridedArray]) -> None:
        """See :class:`DeviceCall`."""
        self._calls += 1
        if not (self._pays and self._calls > 2 and captures_graphs(self.device)):
            self._launch(arena, payloads)
            return
        first, last = self.program.inputs, len(payloads) - len(self.constants)
        last -= len(self.program.outputs)
        inputs, states, outputs = payloads[:first], payloads[first:last], payloads[last:][: len(self.program.outputs)]
        if self._captured is None or not self._captured.is_of(states):
            self._captured = CapturedRun(
                self.device, inputs, states, outputs, lambda own: self._launch(arena, [*own, *self.constants])
            )
        self._captured.run(inputs, outputs)

    def _launch(self, arena: Buffer, payloads: list[StridedArray]) -> None:
        program, device = self.program, self.device
        table: list[Address] = [(arena, 0)]
        table += [(p.storage.buffer, p.offset * p.dtype.itemsize) for p in payloads]
        if program.record is not None:
            device.memset(arena, 0, program.record.offset, RECORD_BYTES)
        Run(device, self.kernels).submit(program.steps, table)
        for source, target, nbytes in program.copies:
            (buffer, start), (to, begin) = address_of(table, source), address_of(table, target)
            device.copy(to, buffer, nbytes, begin, start)
        if program.record is not None:
            record = array("q", [0, 0])
            device.copy(memoryview(record), arena, RECORD_BYTES, 0, program.record.offset)
            device.at_synchronize(record, partial(self._look, record, user_location()))

    def _look(self, record: array[int], caller: Location) -> None:
        """Raise AxisError where a run has refused an index."""
        if record[0]:
            raise self.program.refusal(record.buffer_info()[0], caller)
