"""Communication between launches: a communicator gets the buffers of a device where it takes them.

What it does not take passes through pinned memory of the host, counted (`argosy_phi_ops.eager.staging`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from argosy_cinn.host import HostCall
from argosy_cinn.shapes import sizes
from argosy_cinn.staged_call import Communicators, Locate, call_staged
from argosy_hwadapt import Device
from argosy_hwadapt.device_operand import DeviceOperand
from argosy_phi_ops.eager.staging import note_staged
from argosy_phi_ops.primitives.communication import blocking_form
from argosy_phi_ops.reference.kernels.communication import communicator_of
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_phi_ops.reference.running import running
from argosy_pir.core import Operation
from argosy_pir.types import TensorType
from argosy_pir.values import Value

__all__ = ["communicate", "takes_buffers"]

#: Attributes that say where parts are cut or joined.
_AXES = ("axis", "split_axis", "concat_axis")
_COALESCED = ("all_gather_coalesced", "reduce_scatter_coalesced")


def takes_buffers(devices: Iterable[Device], communicators: Communicators) -> bool:
    """Whether one of the communicators takes buffers of one of the devices."""
    return any(c.takes_device_buffers(d) for d in devices if not d.is_host for c in communicators.values())


def communicate(
    device: Device, call: HostCall, locate: Locate, tokens: dict[Value, Any], communicators: Communicators
) -> None:
    """Run a communication whose tensors are on ``device``; ``tokens`` carries what is no tensor."""
    direct = _Direct(device, call, locate, tokens, communicators)
    if direct.is_possible():
        with running(call.op):
            direct.run()
    else:
        for nbytes in call_staged(device, call, locate, tokens, communicators):
            note_staged(call.op.kind, device, nbytes)


class _Direct:
    """An operation of a communicator on buffers of a device."""

    def __init__(
        self, device: Device, call: HostCall, locate: Locate, tokens: dict[Value, Any], communicators: Communicators
    ) -> None:
        self.device, self.op, self.splats = device, call.op, call.splats
        self.locate, self.tokens = locate, tokens
        self.attributes, self.communicators = call.op.attributes, communicators

    def is_possible(self) -> bool:
        """Whether the communicator takes the operands. Parts along the first axis lie one after the other (see
        `rewrites.collectives`)."""
        if self.op.kind == "create_token":
            return True
        if self.op.kind == "wait":
            return isinstance(self.tokens.get(self.op.operand(1)), _Started)
        tensors = [v for v in (*self.op.operands, *self.op.results) if isinstance(v.type, TensorType)]
        if any(map(self.attributes.get, _AXES)) or any(0 in sizes(v) for v in tensors):
            return False
        return bool(self._communicator().takes_device_buffers(self.device))

    def run(self) -> None:
        """Call the communicator."""
        for result in self.op.results:
            if not isinstance(result.type, TensorType):
                self.tokens[result] = None
        kind, results = self.op.kind, self.op.results
        if kind == "wait":
            self.tokens[self.op.operand(1)].wait_into(self._operand(results[0]))
        elif kind in ("start", "start_recv"):
            self.tokens[results[1]] = self._start()
        elif kind == "send":
            given, a = self._operand(self.op.operand(0)), self.attributes
            self._communicator().send(given, a["peer"], a["tag"])
        elif kind in _COALESCED:
            self._call_coalesced()
        elif kind != "create_token":
            sent = self._operand(self.op.operand(0)) if isinstance(self.op.operand(0).type, TensorType) else None
            made = self._operand(results[0])
            if sent is not None and sent.buffer is made.buffer and sent.offset == made.offset:
                made = sent  # as communicators are told that they are one
            self._call(kind, self.attributes, sent, made).wait()

    def _call_coalesced(self) -> None:
        call = getattr(self._communicator(), self.op.kind)
        sent, made = ([self._operand(v) for v in values[:-1]] for values in (self.op.operands, self.op.results))
        call(sent, made, **({"op": self.attributes["kind"]} if "kind" in self.attributes else {}))

    def _start(self) -> _Started:
        """Begin on memory of its own, since that of the program may be used again meanwhile."""
        op, sent = self.op, None
        name, attributes = ("recv", op.attributes) if op.kind == "start_recv" else _blocking(op)
        if op.kind == "start":
            given = self._operand(op.operand(0))
            sent = self._allocate(op.operand(0))
            self.device.copy(sent.buffer, given.buffer, given.nbytes, 0, given.offset)
        made = self._allocate(op.results[0])
        return _Started(self._call(name, attributes, sent, made), made)

    def _call(self, kind: str, a: Mapping[str, Any], sent: DeviceOperand | None, made: DeviceOperand) -> Any:
        """A collective or a receipt that has begun."""
        communicator = self._communicator()
        if kind == "recv":
            return communicator.start_recv(made, a["peer"], a["tag"])
        assert sent is not None
        if kind == "broadcast_rank":
            self.device.copy(made.buffer, sent.buffer, sent.nbytes, made.offset, sent.offset)
            return communicator.start_broadcast(made, a["root"])
        extra = {"all_reduce": "kind", "reduce_scatter": "kind", "permute": "pairs"}.get(kind)
        begin = getattr(communicator, f"start_{kind}")
        return begin(sent, made, a[extra]) if extra else begin(sent, made)

    def _communicator(self) -> Any:
        return communicator_of(self.communicators, self.attributes.get("group", ()), self.op.kind)

    def _operand(self, value: Value) -> DeviceOperand:
        if value in self.splats:  # a constant that has no memory
            made = self._allocate(value)
            array = np.ascontiguousarray(np.broadcast_to(self.splats[value], made.shape), made.dtype)
            self.device.copy(made.buffer, array.reshape(-1).view(np.uint8))
            return made
        buffer, offset = self.locate(value)
        return DeviceOperand(buffer, offset, numpy_dtype(value.dtype), sizes(value))

    def _allocate(self, value: Value) -> DeviceOperand:
        dtype, shape = numpy_dtype(value.dtype), sizes(value)
        return DeviceOperand(self.device.allocate(int(np.prod(shape)) * dtype.itemsize), 0, dtype, shape)


def _blocking(op: Operation) -> tuple[str, Mapping[str, Any]]:
    primitive, attributes = blocking_form(op.attributes["collective"], op.attributes)
    return primitive.name.removeprefix("prim."), attributes


class _Started:
    """A collective on its way, and the memory that it fills."""

    def __init__(self, handle: Any, made: DeviceOperand) -> None:
        self._handle, self._made = handle, made

    def wait_into(self, result: DeviceOperand) -> None:
        """Copy what it gives there once it is done."""
        self._handle.wait()
        made = self._made
        made.device.copy(result.buffer, made.buffer, made.nbytes, result.offset, made.offset)
