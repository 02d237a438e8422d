"""Level 6: faults. Those that need a broken device run where the runtime can make one (``faulty``)."""

import os
import signal
import time
from typing import Any

from argosy_hwadapt.contract import ABI, NO_FORK
from argosy_hwadapt.device import Device
from argosy_hwadapt.errors import AbiMismatch, DeviceError, DeviceLost, DeviceOutOfMemory
from argosy_hwadapt.kernel import Scalar
from argosy_hwadapt.registry import check_abi
from argosy_hwadapt.testing.kernels import KitKernel, usable_form
from argosy_hwadapt.testing.suite import CheckSkipped, Subject, check, require, require_error

_ANSWER_SECONDS = 1.0
_CHILD_SECONDS = 5


def _faulty(subject: Subject, **faults: Any) -> Device:
    make = getattr(subject.runtime, "faulty", None)
    if make is None:
        raise CheckSkipped("the plug-in cannot be made to fail (it has no method 'faulty')")
    runtime = make(**faults)
    return Device(subject.name, 0, runtime.devices()[0], runtime)


def _launch(device: Device) -> None:
    kernel, buffer = KitKernel(device, usable_form(device), "affine_float32"), device.allocate(4)
    device.memset(buffer, 0)
    kernel.launch((1,), [buffer, buffer, Scalar("f", 1), Scalar("f", 1), Scalar("q", 1)])


@check(6)
def survives_an_impossible_allocation(subject: Subject) -> None:
    """More than any device has is refused with the numbers, and the device goes on."""
    wanted = 1 << 54
    error = require_error(DeviceOutOfMemory, lambda: subject.device.allocate(wanted), "16 PiB")
    require(getattr(error, "requested", 0) == wanted, f"the error does not tell the request: {error}")
    subject.device.call("health")


@check(6)
def refuses_other_major_versions(subject: Subject) -> None:
    """Both neighbours of the contract's major version are refused."""
    for major in (ABI[0] - 1, ABI[0] + 1):
        require_error(AbiMismatch, lambda m=major: check_abi("x", "y", (m, 0)), f"major {major}")  # type: ignore[misc]


@check(6)
def names_the_plugin_in_foreign_errors(subject: Subject) -> None:
    """An exception of any kind from the plug-in arrives as a DeviceError with its name."""

    class RaisingRuntime:
        def __getattr__(self, name: str) -> Any:
            return getattr(subject.runtime, name)

        def synchronize(self, ctx: Any, stream: Any = None) -> None:
            raise ZeroDivisionError("deep inside")

    runtime: Any = RaisingRuntime()
    device = Device(subject.name, 0, subject.device.info, runtime)
    error = require_error(DeviceError, device.synchronize, "ZeroDivisionError in the plug-in")
    require(subject.name in str(error) and "ZeroDivisionError" in str(error), f"the error says only: {error}")


@check(6)
def stays_dead_after_a_loss(subject: Subject) -> None:
    """A device that dies in a launch fails at the next synchronisation, and every call after it at once."""
    device = _faulty(subject, die_at_launch=2)
    _launch(device)
    device.synchronize()
    _launch(device)
    require_error(DeviceLost, device.synchronize, "synchronize after the death")
    for call in (device.synchronize, lambda: _launch(device), lambda: device.allocate(1 << 20)):
        start = time.perf_counter()
        require_error(DeviceLost, call, "a call on a dead device")
        require(time.perf_counter() - start < _ANSWER_SECONDS, "a dead device took its time to answer")


@check(6)
def ends_a_hang(subject: Subject) -> None:
    """The watchdog gives up a device that hangs."""
    device = _faulty(subject, hang_at_launch=1)
    device.watchdog = 0.2
    _launch(device)
    start = time.perf_counter()
    require_error(DeviceLost, device.synchronize, "synchronize of a hung device")
    require(time.perf_counter() - start < 0.2 + _ANSWER_SECONDS, "the watchdog was late")


@check(6)
def recovers_from_a_full_memory(subject: Subject) -> None:
    """At the cap, cached blocks are given back before a request fails, and freed memory can be had again."""
    device = _faulty(subject, memory_bytes=1 << 20)
    buffers = [device.allocate(1 << 18) for _ in range(4)]
    require_error(DeviceOutOfMemory, lambda: device.allocate(1), "a fifth quarter")
    buffers.clear()
    require(device.allocate(1 << 20).nbytes == 1 << 20, "all memory could not be had again")


@check(6)
def refuses_use_after_a_fork(subject: Subject) -> None:
    """A device that cannot cross a fork says so in the child before any driver call."""
    if NO_FORK not in subject.device.info.flags or not hasattr(os, "fork"):
        raise CheckSkipped("the device declares that it survives a fork, or the system has none")
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_CHILD_SECONDS)  # a driver that hangs in the child must not hang the kit
        os._exit(_child_is_refused(subject))
    require(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child could use the device, or died")


def _child_is_refused(subject: Subject) -> int:
    try:
        subject.device.synchronize()
    except DeviceError as error:
        return 0 if "fork" in str(error) else 2
    return 1
