"""The virtual device: an accelerator without silicon, healthy and broken in every way that can be injected."""

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import argosy_hwadapt as hw
from argosy_hwadapt.capture import CapturedGraph
from argosy_hwadapt.cpu.c_bindings import ffi
from argosy_hwadapt.device import Device
from argosy_hwadapt.virtual import VirtualRuntime


def make(**options):
    """Open a private virtual device."""
    runtime = VirtualRuntime(**options)
    return Device("virtual", 0, runtime.devices()[0], runtime)


def kernel_of(device, function):
    """Load a Python function (arguments, extents) as a kernel; the callback must live as long as the kernel."""
    callback = ffi.callback("void(void **, int64_t *)", lambda a, e: function(a, e) and None)
    kernel = device.load(
        device.build("address", int(ffi.cast("uintptr_t", callback)).to_bytes(8, "little")), function.__name__
    )
    kernel.callback = callback
    return kernel


def increment(arguments, extents):
    """Add one to each byte of a buffer."""
    memory = ffi.buffer(ffi.cast("uint8_t **", arguments[0])[0], extents[0])
    memory[:] = bytes((b + 1) % 256 for b in memory[:])


def read(device, buffer):
    """Copy a buffer to the host."""
    out = bytearray(buffer.nbytes)
    device.copy(out, buffer)
    device.synchronize()
    return bytes(out)


def test_memory_is_reached_by_copies_only():
    """There is no view, no address and no adoption; copies move bytes there and back."""
    device = make()
    buffer = device.allocate(8)
    device.copy(buffer, b"12345678")
    device.copy(buffer, b"ab", dst_offset=3)
    assert read(device, buffer) == b"123ab678"
    assert device.host_view(buffer) is None
    for wrong in (lambda: device.address(buffer), lambda: device.adopt(np.ones(3))):
        with pytest.raises(hw.UnsupportedOperation, match="virtual:0"):
            wrong()


def test_work_is_asynchronous_and_in_order():
    """A launch returns before it has run; later copies see its result."""
    device = make()
    buffer = device.allocate(3)
    device.copy(buffer, b"abc")

    launched = threading.Event()

    def waiting(arguments, extents):
        assert launched.wait(3600)
        increment(arguments, extents)

    device.launch(kernel_of(device, waiting), (3,), args=[buffer])
    launched.set()
    assert read(device, buffer) == b"bcd"


def test_freed_memory_is_not_reused_under_running_work():
    """A buffer forgotten while its kernel waits in the queue still receives the result safely."""
    device = make(memory_bytes=1 << 20)
    kernel = kernel_of(device, increment)
    for _ in range(50):
        buffer = device.allocate(1 << 19)
        device.launch(kernel, (16,), args=[buffer])
        del buffer
        device.allocator.release_cached()
    device.synchronize()


def test_devices_copy_to_each_other():
    """Buffers move between devices, and between the CPU and a device, through the host by default."""
    first, second, cpu = hw.device("virtual", 0), hw.device("virtual", 1), hw.device("cpu")
    source, target, host = first.allocate(4), second.allocate(4), cpu.allocate(4)
    first.copy(source, b"data")
    second.copy(target, source)
    cpu.copy(host, target)
    assert bytes(cpu.host_view(host)) == b"data"
    with pytest.raises(ValueError, match="destination lives on virtual:1"):
        first.copy(target, source)
    with pytest.raises(hw.LaunchError, match="lives on virtual:1; copy it here"):
        first.launch(kernel_of(first, increment), (1,), args=[target])


def test_out_of_memory_leaves_the_device_usable():
    """At the cap: caches are dropped, then the error tells requested, free and total; afterwards all works."""
    device = make(memory_bytes=1 << 20)
    keep = device.allocate(1 << 19)
    cached = device.allocate(1 << 18)
    del cached
    assert device.allocate(1 << 19).nbytes == 1 << 19
    gc.collect()
    with pytest.raises(hw.DeviceOutOfMemory, match=r"512 KiB of 1 MiB are free.*1 x 512 KiB") as info:
        device.allocate(1 << 20)
    assert (info.value.requested, info.value.free, info.value.total) == (1 << 20, 1 << 19, 1 << 20)
    device.call("health")
    del keep


def test_a_dead_device_fails_at_the_next_synchronisation_and_for_ever():
    """The loss appears at synchronize, and every later call fails at once with the first cause."""
    device = make(die_at_launch=2)
    kernel, buffer = kernel_of(device, increment), device.allocate(16)
    device.launch(kernel, (1,), args=[buffer])
    device.synchronize()
    device.launch(kernel, (1,), args=[buffer])
    with pytest.raises(hw.DeviceLost, match=r"died in launch 2 \(increment\)"):
        device.synchronize()
    for later in (device.synchronize, lambda: device.copy(buffer, b"x"), lambda: device.launch(kernel, (1,))):
        with pytest.raises(hw.DeviceLost, match=r"virtual:0 cannot be used any more: .*died in launch 2"):
            later()


def test_a_hung_device_is_given_up_by_the_watchdog():
    """With a watchdog, waiting ends in time; the device counts as lost."""
    device = make(hang_at_launch=1)
    device.watchdog = 0.2
    buffer = device.allocate(1)
    device.launch(kernel_of(device, increment), (1,), args=[buffer])
    with pytest.raises(hw.DeviceLost, match=r"did not answer within 0.2 s"):
        device.synchronize()
    with pytest.raises(hw.DeviceLost):
        device.copy(bytearray(1), buffer)


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("alloc", lambda device, buffer: device.allocate(1 << 20)),
        ("copy", lambda device, buffer: device.copy(bytearray(8), buffer)),
        ("memset", lambda device, buffer: device.memset(buffer, 1)),
        ("launch", lambda device, buffer: device.launch(None, (1,), args=[buffer])),
        ("free", lambda device, buffer: device.call("free", buffer.handle)),
        ("mem_info", lambda device, buffer: device.mem_info()),
        ("event_record", lambda device, buffer: device.call("event_record", None)),
        ("event_synchronize", lambda device, buffer: device.call("event_synchronize", None)),
        ("peer_copy", lambda device, buffer: device.copy(buffer, other_of(device).allocate(1))),
        ("run_op", lambda device, buffer: device.call("run_op", "matmul", (), {})),
        ("run_graph", lambda device, buffer: device.call("run_graph", None, ())),
        ("capture_replay", lambda device, buffer: device.call("capture_replay", empty_graph(device))),
        ("stream_destroy", lambda device, buffer: device.call("stream_destroy", None)),
        ("close", lambda device, buffer: device.call("close")),
        ("health", lambda device, buffer: device.call("health")),
    ],
)
def test_a_watchdog_covers_every_call_that_may_wait(method, call):
    """Whichever call the plug-in does not return from, the device counts as lost, and the error names the call."""
    device, never, hangs = make(), threading.Event(), threading.Event()
    before = getattr(device.runtime, method, None)
    setattr(device.runtime, method, lambda *args: never.wait() if hangs.is_set() else before(*args))
    buffer = device.allocate(8)
    hangs.set()
    device.watchdog = 0.05
    with pytest.raises(hw.DeviceLost, match=rf"did not answer within 0.05 s \({method}\)"):
        call(device, buffer)
    with pytest.raises(hw.DeviceLost, match="cannot be used any more"):
        device.mem_info()
    never.set()


def other_of(device):
    """A second device of the same runtime."""
    return Device("virtual", 1, device.runtime.devices()[1], device.runtime)


def empty_graph(device):
    """A graph without work."""
    return CapturedGraph(device, None, {})


def test_a_full_memory_is_waited_for_within_the_deadline():
    """The allocation that waits for a hung queue ends, too: nobody has called synchronize."""
    device = make(hang_at_launch=1, memory_bytes=1 << 20)
    device.watchdog = 0.2
    buffer = device.allocate(1 << 19)
    device.launch(kernel_of(device, increment), (1,), args=[buffer])
    with pytest.raises(hw.DeviceLost, match=r"did not answer within 0.2 s \(alloc\)"):
        device.allocate(1 << 20)


def test_a_replay_of_many_submissions_has_a_deadline_for_each():
    """The default replay may take longer than the deadline of one call."""
    device, pause = make(), threading.Event()
    runtime = device.runtime
    runtime.copy = lambda *args: pause.wait(0.02)
    device.call("capture_begin")
    for _ in range(20):
        device.copy(device.allocate(1), b"x")
    graph = device.call("capture_end")
    device.watchdog = 0.3
    device.call("capture_replay", graph)
    device.synchronize()


def test_building_is_no_waiting_for_the_device():
    """A compiler may take longer than a device may be silent."""
    device, pause = make(), threading.Event()
    build = device.runtime.build
    device.runtime.build = lambda *args: pause.wait(0.1) or build(*args)
    device.watchdog = 0.01
    assert device.build("address", bytes(8))


def test_a_healthy_device_passes_its_watchdog():
    """A watchdog does not disturb, and errors pass through it."""
    device = make()
    device.watchdog = 5.0
    device.synchronize()
    buffer = device.allocate(2)
    device.copy(buffer, b"ab")
    assert read(device, buffer) == b"ab"
    device.call("free", 12345)
    with pytest.raises(hw.DeviceError, match="handle 12345 is freed but was not allocated"):
        device.synchronize()


FORK = """
import os, sys
import argosy_hwadapt as hw
device = hw.device("virtual")
child = os.fork()
if child == 0:
    try:
        device.allocate(10)
    except hw.DeviceError as error:
        os._exit(0 if "opened before a fork" in str(error) else 2)
    os._exit(1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_an_error_instead_of_a_hang():
    """The driver is not called in the child at all."""
    assert subprocess.run([sys.executable, "-c", FORK], timeout=3600).returncode == 0
