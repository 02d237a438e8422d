"""Calls of programs on devices that are no host: what is checked, brought there, made and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_cinn.collectives import communicate
from argosy_cinn.host import HostCall
from argosy_cinn.plan.sizes import check_argument
from argosy_cinn.staged_call import Communicators, Locate, call_staged
from argosy_cinn.strided_copies import copy_contiguous
from argosy_hwadapt import Buffer, Device
from argosy_phi_ops.eager.fallback import note_fallback
from argosy_phi_ops.eager.placement import copy_elements, goes_anywhere, send
from argosy_phi_ops.errors import DeviceMismatch
from argosy_phi_ops.primitives.communication import is_communication
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.storage import StridedArray

__all__ = ["DeviceCall", "call_host"]


class DeviceCall:
    """A program of known sizes on a device, bound to its states: the object that is called.

    ``program`` has ``name``, number of ``inputs``, names of ``states``, ``signature``, ``outputs`` (shape, dtype, ...),
    numbers of the states that are ``written``, and ``constants``. Subclasses say how it is submitted.
    """

    def __init__(self, program: Any, device: Device, states: list[StridedArray]) -> None:
        self.program, self.device, self.states = program, device, states
        self.constants = [send(StridedArray(np.array(constant, order="C")), device) for constant in program.constants]
        for i, state in enumerate(states):
            place = len(program.signature) - len(states) + i
            check_argument(program.signature[place], state, f"state {program.states[i]!r}")
        self.written = [states[i].storage for i in program.written]

    @property
    def arena_bytes(self) -> int:
        """Bytes of intermediate values."""
        raise NotImplementedError

    def submit(self, arena: Buffer, payloads: list[StridedArray]) -> None:
        """Launch what computes the program: inputs, states, outputs and constants are ``payloads``, in row-major
        order."""
        raise NotImplementedError

    def __call__(self, inputs: Sequence[StridedArray]) -> list[StridedArray]:
        """Submit a run; the results."""
        program, device = self.program, self.device
        if len(inputs) != program.inputs:
            raise ValueError(f"program '{program.name}' takes {program.inputs} inputs, got {len(inputs)}")
        for i, payload in enumerate(inputs):
            check_argument(program.signature[i], payload, f"input {i}")
        given = [self._input(payload, i) for i, payload in enumerate(inputs)]
        states = [self._state(state, i) for i, state in enumerate(self.states)]
        outputs = [StridedArray.empty(shape, dtype, device) for shape, dtype, *_ in program.outputs]
        self.submit(device.allocate(self.arena_bytes), [*given, *states, *outputs, *self.constants])
        for i in program.written:
            if states[i] is not self.states[i]:
                copy_elements(self.states[i], states[i])
        for storage in self.written:
            storage.version += 1
        return outputs

    def _input(self, payload: StridedArray, index: int) -> StridedArray:
        """The payload, or a copy where it is not contiguous, is a number on the host, or would be overwritten."""
        payload = self._transfer(payload, f"input {index}")
        if not payload.contiguous:
            return copy_contiguous(payload)
        if payload._storage in self.written:
            copy = StridedArray.empty(payload.shape, payload.dtype, self.device)
            copy.copy_from(payload)
            return copy
        return payload

    def _state(self, state: StridedArray, index: int) -> StridedArray:
        payload = self._transfer(state, f"state {self.program.states[index]!r}")
        return payload if payload.contiguous else copy_contiguous(payload)

    def _transfer(self, payload: StridedArray, label: str) -> StridedArray:
        if payload.array_type.device is self.device:
            return payload
        if payload.array_type.device is not None or not goes_anywhere(payload.array_type):
            where = payload.array_type.device or "cpu"
            raise DeviceMismatch(
                f"program '{self.program.name}' runs on {self.device}, but its {label} of shape "
                f"{list(payload.shape)} is on {where}"
            )
        return send(StridedArray(payload.to_host().copy()), self.device)


def call_host(
    device: Device, call: HostCall, locate: Locate, tokens: dict[Value, Any], communicators: Communicators
) -> None:
    """Run a `HostCall`, counted as a fallback. Communication is none (see `collectives`)."""
    op = call.op
    if is_communication(op):
        communicate(device, call, locate, tokens, communicators)
        return
    types = [value.type for value in (*op.operands, *op.results)]
    moved: Any = sum(type.nbytes for type in types if isinstance(type, TensorType) and type.is_static)
    note_fallback(op.name, device, "the compiler has no kernel for it", moved)
    call_staged(device, call, locate, tokens, communicators)
