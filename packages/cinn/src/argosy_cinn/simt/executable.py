"""Programs on devices of work-groups: one set of kernels for all sizes, which are arguments of the kernels."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import partial
from typing import Any

from argosy_cinn.device_call import DeviceCall
from argosy_cinn.fallback import InterpretedExecutable
from argosy_cinn.forms.index_check import RECORD_BYTES
from argosy_cinn.launches import Call, LaunchedExecutable
from argosy_cinn.shapes import NotSymbolic
from argosy_cinn.simt.program import SimtProgram, SizedProgram, launches
from argosy_cinn.simt.replay import CapturedRun, captures_graphs
from argosy_cinn.simt.steps import Run, address_of
from argosy_cinn.specialise import CodeForSizes, SpecialisingExecutable
from argosy_cinn.staged_call import Address
from argosy_hwadapt import Buffer, Device
from argosy_phi_ops.errors import CompileError
from argosy_phi_ops.user_line import user_location
from argosy_pir.location import Location
from argosy_pir.program import Program
from argosy_tensorcore.storage import StridedArray, host_device

__all__ = ["SimtExecutable"]


class SimtExecutable(LaunchedExecutable):
    """``program`` on ``device``: kernels for all its sizes, or, where these cannot be, for each combination that is
    met. ``reason`` is why it runs on the host instead, counted: a kernel has no schedule of work-groups, no text, or
    the device refuses it. It is empty where all kernels are there, or sizes are not known."""

    def __init__(
        self, program: Program, device: Device, communicators: Mapping[tuple[int, ...], Any], options: Mapping[str, Any]
    ) -> None:
        self.device, self.communicators, self._options, self.reason = device, communicators, options, ""
        if program.symbols():
            made: Any = self._for_all_sizes(program)
        else:
            made = self._attempt(program)
            self.reason = made.reason if isinstance(made, InterpretedExecutable) else ""
        super().__init__(made, device)

    def _for_all_sizes(self, program: Program) -> SpecialisingExecutable:
        shared, reason = None, ""
        try:
            made = SimtProgram(program, self.device, self._options, self.communicators)
            made.load()
            shared = CodeForSizes(made.at)
        except (NotSymbolic, CompileError, TypeError) as error:  # formulas have no order: a choice may compare them
            reason = str(error)
        return SpecialisingExecutable(program, shared, reason, self._attempt)

    def _attempt(self, program: Program) -> Any:
        try:
            made = SimtProgram(program, self.device, self._options, self.communicators)
            made.load()
        except CompileError as error:
            return InterpretedExecutable(program, host_device(), self.communicators, str(error))
        return made.at({})

    def _bind_states(self, made: Any, states: list[StridedArray]) -> Call:
        if isinstance(made, InterpretedExecutable):
            return made.bind_from(self.device, states)
        return KernelLaunches(made, self.device, states)


class KernelLaunches(DeviceCall):
    """Launches of a program's kernels; from the third call on a replay of them, where the device captures graphs, and
    there are more of them than values that come and go."""

    def __init__(self, sized: SizedProgram, device: Device, states: list[StridedArray]) -> None:
        super().__init__(sized, device, states)
        self.kernels = sized.made.load()
        alone = sized.record is None and len(launches(sized.steps)) == len(sized.steps)
        self._pays = alone and len(sized.steps) > sized.inputs + len(sized.outputs)
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
        Run(device, self.kernels, program.communicators).submit(program.steps, table)
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
            raise self.program.made.refusal(record.buffer_info()[0], caller)
