"""OpenCL on a real runtime, where one is installed: the kit, errors, and kernels that share a queue."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest

import argosy_hwadapt as hw
from argosy_hwadapt.opencl import library as opencl
from argosy_hwadapt.opencl import runtime

pytestmark = pytest.mark.skipif(
    hw.why("opencl") is not None, reason="no OpenCL runtime: pip install argosy-hwadapt[opencl]"
)
TWICE = b"""
__kernel void twice(__global char *x, long start, float factor) {
    ((__global float *)(x + start))[get_global_id(0)] *= factor;
}
"""


def test_it_conforms_with_nine_interfaces():
    """No check fails; levels 0 to 2 leave out only what its memory cannot do."""
    command = [sys.executable, "-m", "argosy_hwadapt.testing", "opencl", "--json", "--ablation"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    assert [c for c in report["checks"] if c["status"] == "failed"] == []
    assert [c["name"] for c in report["checks"] if c["status"] == "skipped" and c["level"] < 3] == [
        "shows_host_memory_truly"
    ]
    assert report["passed"] >= 34


def test_launches_and_copies_keep_their_order():
    """On parts of a buffer that begin anywhere."""
    device = hw.device("opencl")
    buffer, x = device.allocate(4096), np.arange(1024, dtype=np.float32)
    kernel = device.load(device.build("opencl-c", TWICE), "twice")
    device.copy(buffer, x)
    for _ in range(3):
        device.launch(kernel, (8,), (64,), args=((buffer, 2048), hw.Scalar("f", 2)))
    made = np.empty_like(x)
    device.copy(made, buffer)
    device.synchronize()
    assert made.tolist() == [*range(512), *(8.0 * i for i in range(512, 1024))]


def test_profiles_tell_commands_of_all_streams_by_the_clock_of_the_host():
    """Each command once, in order on its stream; one that waits for an event starts when the other stream is done."""
    device = hw.device("opencl")
    first, second = device.call("stream_create"), device.call("stream_create")
    buffer, kernel = device.allocate(1 << 20), device.load(device.build("opencl-c", TWICE), "twice")
    before = time.perf_counter_ns()
    device.call("profiler_start")
    start = device.call("event_record", first)
    device.copy(buffer, bytes(1 << 20), stream=first)
    end = device.call("event_record", first)
    device.call("stream_wait_event", second, end)
    device.launch(kernel, (8,), (64,), args=((buffer, 0), hw.Scalar("f", 2)), stream=second)
    device.call("profiler_stop")
    device.copy(buffer, bytes(4))
    found = device.call("profiler_drain")
    device.synchronize()
    assert [event.name for event in found] == ["write", "launch twice"]
    assert found[0].start_ns <= found[0].end_ns <= found[1].start_ns <= found[1].end_ns
    assert abs(found[0].start_ns - before) < 10**10  # of the same clock
    assert device.call("event_elapsed", start, end) * 1e6 >= found[0].end_ns - found[0].start_ns
    assert device.call("profiler_drain") == []
    for stream in (first, second):
        device.call("stream_destroy", stream)


def test_errors_are_those_of_the_contract():
    """With the compiler's log; the device goes on."""
    device = hw.device("opencl")
    with pytest.raises(hw.KernelBuildError, match="nothing_of_that_name"):
        device.build("opencl-c", b"__kernel void f() { nothing_of_that_name(); }")
    with pytest.raises(hw.KernelBuildError, match="kernel 'other' of the program"):
        device.load(device.build("opencl-c", TWICE), "other")
    with pytest.raises(hw.DeviceOutOfMemory):
        device.allocate(1 << 44)
    with pytest.raises(hw.DeviceOutOfMemory, match=r"INVALID_BUFFER_SIZE \(-61\)"):
        opencl.check(-61, "a buffer")


class Listed:
    """A library that lists devices, each by name and kind (2: a processor, 4: a GPU)."""

    def __init__(self, *devices):
        self.devices = devices

    def clGetPlatformIDs(self, room, found, count):
        return answer([7], room, found, count)

    def clGetDeviceIDs(self, platform, kind, room, found, count):
        return answer(range(1, 1 + len(self.devices)), room, found, count)

    def clGetDeviceInfo(self, device, key, room, memory, size):
        name, kind = self.devices[int(opencl.ffi.cast("intptr_t", device)) - 1]
        data = {0x102B: name.encode() + b"\0", 0x1000: kind.to_bytes(8, "little")}.get(key, bytes(8))
        if room:
            opencl.ffi.memmove(memory, data, len(data))
        else:
            size[0] = len(data)
        return 0


def answer(numbers, room, found, count):
    for i in range(room):
        found[i] = opencl.ffi.cast("handle", numbers[i])
    if not room:
        count[0] = len(numbers)
    return 0


def test_accelerators_of_all_libraries_come_first(monkeypatch):
    """Each device once, though a loader lists those of a wheel again; two alike of one library are two."""
    libraries = [Listed(("cpu a", 2)), Listed(("cpu a", 2), ("cpu b", 2), ("NVIDIA H100", 4), ("NVIDIA H100", 4))]
    monkeypatch.setattr(runtime, "libraries", lambda: libraries)
    found = runtime.OpenClRuntime().devices()
    assert [(d.name, d.simt_width) for d in found] == [("NVIDIA H100", 32)] * 2 + [("cpu a", 1), ("cpu b", 1)]
