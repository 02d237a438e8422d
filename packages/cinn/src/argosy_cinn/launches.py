"""Programs on devices that are not the host: a list of launches, with host calls between them.

A device of kernel form ``address`` runs machine code of this process, so that its launches are the segments that the
CPU enters: one kernel, `launch_segment`, takes the address of a segment and those of the buffers in its table. Nothing
waits for a launch; an index out of range is found at the next synchronisation.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from argosy_cinn.call_once import call_once
from argosy_cinn.checks.refusal import may_refuse
from argosy_cinn.device_call import DeviceCall, call_host
from argosy_cinn.executable import Executable
from argosy_cinn.fallback import InterpretedExecutable
from argosy_cinn.runtime.linking import Library, link
from argosy_cinn.runtime.trampolines import cached_object
from argosy_cinn.specialise import SpecialisingExecutable
from argosy_cinn.staged_call import Address
from argosy_hwadapt import Buffer, Device, Scalar
from argosy_phi_ops.user_line import user_location
from argosy_pir.location import Location
from argosy_pir.program import Program
from argosy_pir.values import Value
from argosy_tensorcore.storage import StridedArray

Array = np.ndarray[Any, Any]
Made = Executable | SpecialisingExecutable | InterpretedExecutable
Call = Callable[[Sequence[StridedArray]], list[StridedArray]]


class LaunchedExecutable:
    """``made``, compiled for the host, on ``device``."""

    def __init__(self, made: Made, device: Device) -> None:
        self.made, self.device = made, device

    @property
    def program(self) -> Program:
        """The program as it was given to the compiler."""
        return self.made.program

    def run(self, inputs: Sequence[StridedArray], states: Sequence[StridedArray] = ()) -> list[StridedArray]:
        """Submit one run. Raises ``ShapeError`` or ``DTypeError`` naming the argument that does not fit."""
        return self.bind(states)(inputs)

    def bind(self, states: Sequence[StridedArray]) -> Call:
        """A callable for repeated execution on the same states."""
        made, held = self.made, list(states)
        if not isinstance(made, SpecialisingExecutable):
            return self._bind_states(made, held)
        bound: dict[Any, Call] = {}

        def call(inputs: Sequence[StridedArray]) -> list[StridedArray]:
            shapes = tuple([payload.shape for payload in inputs])
            found = bound.get(shapes)
            if found is None:
                while len(bound) >= _KEPT:
                    bound.pop(next(iter(bound)))
                found = self._bind_states(made.for_sizes(inputs, held, known=bool(bound)), held)
                bound[shapes] = found
            return found(inputs)

        return call

    def _bind_states(self, made: Executable | InterpretedExecutable, states: list[StridedArray]) -> Call:
        if isinstance(made, InterpretedExecutable):
            return made.bind_from(self.device, states)
        return Launches(made, self.device, states)

    def report(self) -> dict[str, Any]:
        """The figures of the code, as :meth:`Executable.report` gives them."""
        return self.made.report()

    def describe(self) -> str:
        """What `argosy_cinn.explain` shows."""
        return f"on {self.device}:\n{self.made.describe()}"


_KEPT = 256


class Launches(DeviceCall):
    """Launches of an executable's segments."""

    def __init__(self, executable: Executable, device: Device, states: list[StridedArray]) -> None:
        super().__init__(executable, device, states)
        self.executable = executable
        self.kernel = device.load(device.build("address", _launcher().address(_NAME).to_bytes(8, "little")), _NAME)
        self.record = None if may_refuse(executable.primitive_program) else new_record()

    @property
    def arena_bytes(self) -> int:
        """See :class:`DeviceCall`."""
        return self.executable.sizes.arena_bytes

    def submit(self, arena: Buffer, payloads: list[StridedArray]) -> None:
        """Launch the segments, with host calls between them."""
        e = self.executable
        places = [Scalar("q", 0) if arena.handle is None else arena, *map(_place, payloads)]
        record = self.record or new_record()
        head = Scalar("q", e.dims_address), Scalar("q", record.buffer_info()[0]), Scalar("q", len(places))
        tokens: dict[Value, Any] = {}

        def address_of(value: Value) -> Address:
            place = e.places[value]
            if not place.entry:
                return arena, place.offset
            payload = payloads[place.entry - 1]
            return payload.storage.buffer, payload.offset * payload.dtype.itemsize

        for number, host in zip_longest(range(len(e.hosts) + 1), e.hosts):
            function = Scalar("q", e.library.address(f"segment{number}"))
            self.device.launch(self.kernel, (1,), args=(function, *head, *places))
            if host is not None:
                call_host(self.device, host, address_of, tokens, e.communicators)
        if self.record is None:
            self.device.at_synchronize(record, partial(self._look, record, user_location()))
        else:
            self.device.at_synchronize(self, _do_nothing)

    def _look(self, record: array[int], caller: Location) -> None:
        """Raise AxisError where the run of ``record`` has refused an index."""
        if record[0]:
            raise self.executable.refusal(record.buffer_info()[0], caller)


def new_record() -> array[int]:
    """Where a run records an index out of range: which check found it, and the index."""
    return array("q", [0, 0])


def _do_nothing() -> None:
    pass


def _place(payload: StridedArray) -> Any:
    """A payload as an argument of a launch."""
    if not payload.nbytes:
        return Scalar("q", 0)
    return payload.storage.buffer, payload.offset * payload.dtype.itemsize


@call_once
def _launcher() -> Library:
    return link(cached_object(_TEXT), (_NAME,))


_NAME = "launch_segment"
#: Arguments point at cells: a segment's address, its sizes, the record of indices out of range, how many entries its
#: table has, and these. What a segment notes is copied, where nothing was noted before.
_TEXT = r"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal ptr @argument(ptr %arguments, i64 %i) alwaysinline nounwind {
  %cell.p = getelementptr ptr, ptr %arguments, i64 %i
  %cell = load ptr, ptr %cell.p
  %value = load ptr, ptr %cell
  ret ptr %value
}

define void @launch_segment(ptr %arguments, ptr %extents) {
entry:
  %segment = call ptr @argument(ptr %arguments, i64 0)
  %dims = call ptr @argument(ptr %arguments, i64 1)
  %record = call ptr @argument(ptr %arguments, i64 2)
  %count.p = call ptr @argument(ptr %arguments, i64 3)
  %count = ptrtoint ptr %count.p to i64
  %table = alloca ptr, i64 %count, align 64
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %fill]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %fill, label %run
fill:
  %at = add i64 %i, 4
  %value = call ptr @argument(ptr %arguments, i64 %at)
  %slot = getelementptr ptr, ptr %table, i64 %i
  store ptr %value, ptr %slot
  %i1 = add i64 %i, 1
  br label %next
run:
  %answer = call ptr %segment(ptr %table, ptr %dims)
  %fine = icmp eq ptr %answer, null
  br i1 %fine, label %end, label %refused
refused:
  %noted = load i64, ptr %record
  %first = icmp eq i64 %noted, 0
  br i1 %first, label %note, label %end
note:
  call void @llvm.memcpy.p0.p0.i64(ptr %record, ptr %answer, i64 16, i1 0)
  br label %end
end:
  ret void
}
"""

__all__ = ["LaunchedExecutable", "Launches"]
