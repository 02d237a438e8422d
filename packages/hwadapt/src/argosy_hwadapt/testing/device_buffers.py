"""Collectives on the buffers of a device: the check of them, and a communicator that takes those of virtual devices."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from argosy_hwadapt.calls import Array, Call
from argosy_hwadapt.communicator import BaseCommunicator, Communicator, Handle
from argosy_hwadapt.cpu.c_bindings import view
from argosy_hwadapt.device import Device
from argosy_hwadapt.device_operand import DeviceOperand
from argosy_hwadapt.testing.suite import require, require_error
from argosy_hwadapt.virtual import VirtualContext, VirtualRuntime


@cache
def virtual_device() -> Device:
    """A virtual device that the registry does not know."""
    runtime = VirtualRuntime()
    return Device("virtual", 0, runtime.devices()[0], runtime)


def check_device_buffers(comm: Communicator, device: Device) -> None:
    """Every operation on buffers of a device gives what it gives on arrays, or is refused at the call."""
    n, me = comm.size, comm.rank
    mine = np.arange(n, dtype=np.float32) + me
    if not comm.takes_device_buffers(device):
        x = _to_device(device, mine)
        require_error(TypeError, lambda: comm.all_reduce(x, x), f"a buffer of {device}")  # type: ignore[arg-type]
        require_error(TypeError, lambda: comm.send(x, 0), f"a buffer of {device}")  # type: ignore[arg-type]
        comm.barrier()
        return
    everyone = np.stack([np.arange(n, dtype=np.float32) + rank for rank in range(n)])
    _compare("all_reduce", comm.all_reduce, device, mine, everyone.sum(0))
    _compare("all_gather", comm.all_gather, device, mine, everyone.ravel())
    _compare("reduce_scatter", comm.reduce_scatter, device, mine, everyone.sum(0)[me : me + 1])
    _compare("reduce_scatter", _in_place(comm.reduce_scatter), device, mine, everyone.sum(0)[me : me + 1])
    _compare("all_gather", _in_twos(comm.all_gather_coalesced), device, mine, everyone.ravel())
    _compare("reduce_scatter", _in_twos(comm.reduce_scatter_coalesced), device, mine, everyone.sum(0)[me : me + 1])
    _compare("all_to_all", comm.all_to_all, device, mine, everyone[:, me])
    _compare_messages(comm, device, mine)


def _compare(what: str, operation: Any, device: Device, sent: Array, expected: Array) -> None:
    send, recv = _to_device(device, sent), _to_device(device, np.full_like(expected, -1))
    operation(send, recv)
    found = _to_host(recv)
    require(np.array_equal(found, expected), f"{what} on {device}: {found} instead of {expected}")


def _in_place(operation: Any) -> Any:
    """An operation whose result begins where its operand does."""

    def run(send: DeviceOperand, recv: DeviceOperand) -> None:
        operation(send, DeviceOperand(send.buffer, send.offset, recv.dtype, recv.shape))
        send.device.copy(recv.buffer, send.buffer, recv.nbytes, recv.offset, send.offset)

    return run


def _in_twos(operation: Any) -> Any:
    """A coalesced operation on the same operand twice, of which the second result is looked at."""

    def both(send: DeviceOperand, recv: DeviceOperand) -> None:
        other = _to_device(send.device, _to_host(recv))
        operation([send, send], [other, recv])

    return both


def _compare_messages(comm: Communicator, device: Device, mine: Array) -> None:
    """A broadcast, a ring of messages, and a permutation in which one rank is no target."""
    n, me = comm.size, comm.rank
    root = _to_device(device, mine)
    comm.broadcast(root, n - 1)  # type: ignore[arg-type]
    require(np.array_equal(_to_host(root), mine - me + n - 1), f"broadcast on {device}")
    came = _to_device(device, mine * 0 - 1)
    comm.send(_to_device(device, mine), (me + 1) % n)  # type: ignore[arg-type]
    comm.recv(came, (me - 1) % n)  # type: ignore[arg-type]
    require(np.array_equal(_to_host(came), mine - me + (me - 1) % n), f"a message on {device}")
    comm.permute(_to_device(device, mine), came, [(r, r + 1) for r in range(n - 1)])  # type: ignore[arg-type]
    require(np.array_equal(_to_host(came), mine - 1 if me else mine * 0), f"permute on {device}")


def _to_device(device: Device, values: Array) -> DeviceOperand:
    buffer = device.allocate(values.nbytes)
    device.copy(buffer, np.ascontiguousarray(values))
    return DeviceOperand(buffer, 0, values.dtype, values.shape)


def _to_host(operand: DeviceOperand) -> Array:
    found = np.empty(operand.shape, operand.dtype)
    operand.device.copy(found, operand.buffer, operand.nbytes, 0, operand.offset)
    operand.device.synchronize()
    return found


class AddressedCommunicator(BaseCommunicator):
    """A communicator that takes buffers of virtual devices, whose memory is this process's: it gives a communicator of
    the host that memory itself, once the device has done what it was given.
    """

    name = "addressed"

    def __init__(self, inner: Communicator) -> None:
        self.inner, self.rank, self.size = inner, inner.rank, inner.size

    def takes_device_buffers(self, device: Device) -> bool:
        """See :meth:`Communicator.takes_device_buffers`."""
        return isinstance(device.context, VirtualContext)

    def start(self, call: Call) -> Handle:
        """See :meth:`Communicator.start`."""
        same = call.recv is call.send
        call.send = _addressed(call.send)
        call.recv = call.send if same else _addressed(call.recv)
        return self.inner.start(call)

    def send(self, buffer: Any, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`."""
        self.inner.send(_addressed(buffer), peer, tag)

    def split(self, color: int, key: int) -> AddressedCommunicator | None:
        """See :meth:`Communicator.split`."""
        inner = self.inner.split(color, key)
        return None if inner is None else AddressedCommunicator(inner)

    def abort(self, reason: str) -> None:
        """See :meth:`Communicator.abort`."""
        self.inner.abort(reason)

    def close(self) -> None:
        """See :meth:`Communicator.close`."""
        self.inner.close()


def _addressed(operand: Any) -> Any:
    """The memory of an operand as an array that keeps its buffer alive; arrays as they are."""
    if not isinstance(operand, DeviceOperand):
        return operand
    device, shape = operand.device, operand.shape
    if not operand.size:
        return np.empty(shape, operand.dtype)
    device.synchronize()
    address = device.context.address(operand.buffer.handle, operand.offset, operand.nbytes)
    return np.frombuffer(view(address, operand.nbytes, operand.buffer), operand.dtype).reshape(shape)
