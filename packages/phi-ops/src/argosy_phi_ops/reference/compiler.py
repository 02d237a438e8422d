"""The compiler made of the interpreter: slow, obviously right, and always there.

It meets the protocols `Compiler` and `Executable` of `argosy_phi_ops.compiler`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from argosy_hwadapt import Device
from argosy_phi_ops.passes.device_assignment import DeviceAssignment, spans_devices
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_phi_ops.reference.interpreter import ProgramPlan
from argosy_pir.program import Program
from argosy_tensorcore.storage import StridedArray

Array = np.ndarray[Any, Any]


class ReferenceCompiler:
    """Compiles by decomposing operators and planning the interpretation, for any device."""

    name = "reference"

    def compile(
        self,
        program: Program,
        device: Device,
        communicators: Any = (),
        options: Mapping[str, Any] | None = None,
    ) -> ReferenceExecutable:
        """An executable of `program`; the one option is `check_index`: False lets indices that are out of range be
        clamped or dropped.

        Raises:
            CompileError: for operations that are neither operators nor executable.
            ValueError: for other options.
        """
        if set(options or ()) - {"check_index"}:
            raise ValueError(f"the reference compiler has the option check_index alone, got {sorted(options or ())}")
        started = perf_counter()
        plan = ProgramPlan(to_primitives(program, options))
        return ReferenceExecutable(program, plan, device, communicators, perf_counter() - started)


class ReferenceExecutable:
    """A planned program on a device. Computes on the host; data of other devices is copied there and back."""

    def __init__(
        self, program: Program, plan: ProgramPlan, device: Device, communicators: Any, compile_seconds: float
    ) -> None:
        self.program = program
        self._plan = plan
        self._output_devices = [device] * len(program.outputs)
        if spans_devices(plan.program):
            assignment = DeviceAssignment(plan.program, device)
            self._output_devices = [assignment.of(value) for value in plan.program.outputs]
        self._communicators = communicators
        self._compile_seconds = compile_seconds

    def run(self, inputs: Sequence[StridedArray], states: Sequence[StridedArray] = ()) -> list[StridedArray]:
        """The outputs, in memory of their own. States are updated in place in their storage, whose version
        is bumped.
        """
        given = [payload.to_host() for payload in (*inputs, *states)]
        outputs, updates = self._plan.run(given[: len(inputs)], given[len(inputs) :], self._communicators)
        self._write_states(states, updates, given)
        made = zip(_own_memory(outputs, given), self._output_devices, strict=True)
        return [StridedArray.from_array(array, device) for array, device in made]

    def bind(self, states: Sequence[StridedArray]) -> Callable[[Sequence[StridedArray]], list[StridedArray]]:
        """`run` with the states fixed."""
        held = list(states)
        return lambda inputs: self.run(inputs, held)

    def report(self) -> dict[str, Any]:
        """host_calls: kernels called by the last run, by primitive; the rest is nought, for there is no native code."""
        return {
            "host_calls": dict(self._plan.calls),
            "kernels": 0,
            "arena_bytes": 0,
            "compile_seconds": self._compile_seconds,
            "cache_hit": False,
        }

    def _write_states(self, states: Sequence[StridedArray], updates: Sequence[Array], given: Sequence[Array]) -> None:
        """All new values are secured before the first is written: one may be a view of another state's old
        value.
        """
        program = self._plan.program
        arguments = [state.argument for state in program.states]
        changed = [
            (payload, update)
            for payload, update, value, argument in zip(states, updates, program.state_updates, arguments, strict=True)
            if value is not argument
        ]
        secured = _own_memory([update for _, update in changed], given)
        for (payload, _), update in zip(changed, secured, strict=True):
            payload.fill_from(update)
            payload.bump_version()


def _own_memory(arrays: Sequence[Array], given: Sequence[Array]) -> list[Array]:
    """`arrays`, copied where they may share memory with `given` or with one before them, or are not
    writable.
    """
    taken = list(given)
    result = []
    for array in arrays:
        if not array.flags.writeable or any(np.may_share_memory(array, other) for other in taken):
            array = array.copy()
        taken.append(array)
        result.append(array)
    return result
