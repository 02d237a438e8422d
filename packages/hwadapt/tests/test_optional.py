"""The optional groups: defaults made from the nine methods, a vendor's own methods, and errors of plug-ins."""

import gc
import weakref

import numpy as np
import pytest

import argosy_hwadapt as hw
from argosy_hwadapt.device import Device
from argosy_hwadapt.kernel import Scalar
from argosy_hwadapt.optional import DEFAULTS, OPTIONAL_GROUPS
from argosy_hwadapt.testing.kernels import kit_source, load_kernel
from argosy_hwadapt.virtual import VirtualRuntime


def open_device(runtime):
    return Device("chip", 0, runtime.devices()[0], runtime)


@pytest.fixture(params=["cpu", "virtual"])
def device(request):
    return hw.device("cpu") if request.param == "cpu" else open_device(VirtualRuntime())


def read(device, buffer):
    out = np.empty(buffer.nbytes, np.uint8)
    device.copy(out, buffer)
    device.synchronize()
    return out


def test_there_are_twenty_seven_optional_methods_in_eight_groups():
    """The contract's size is a promise."""
    assert len(DEFAULTS) == 27 == sum(map(len, OPTIONAL_GROUPS.values()))
    assert len(OPTIONAL_GROUPS) == 8
    assert [name for name in vars(hw.DeviceRuntime) if not name.startswith("_")] == [
        "devices", "open", "alloc", "free", "copy", "synchronize", "build", "load", "launch"
    ]  # fmt: skip


def test_memset_fills_exactly_the_range(device):
    """Also beyond the chunk in which the default copies."""
    buffer = device.allocate((1 << 20) + 100)
    device.memset(buffer, 7)
    device.memset(buffer, 9, offset=50, nbytes=1 << 20)
    values = read(device, buffer)
    assert set(values[:50]) == set(values[-50:]) == {7}
    assert set(values[50:-50]) == {9}


def test_default_streams_are_one_queue_and_events_host_times(device):
    """A program that uses streams and events runs unchanged on a device without them."""
    stream = device.call("stream_create")
    start = device.call("event_record", stream)
    buffer = device.allocate(1 << 20)
    device.copy(buffer, bytes(1 << 20), stream=stream)
    end = device.call("event_record", stream)
    device.call("stream_wait_event", stream, end)
    device.call("event_synchronize", end)
    assert 0 < device.call("event_elapsed", start, end) < 60_000
    device.call("stream_destroy", stream)


def test_mem_info_accounts_for_what_is_held(device):
    """Free and total are in bytes, and an allocation reduces what is free by its block."""
    free, total = device.mem_info()
    buffer = device.allocate(8 << 20)
    assert device.mem_info() == (free - (8 << 20), total) or device.memory_stats().reserved > 8 << 20
    assert total == device.info.memory_bytes
    del buffer


def test_captured_work_runs_when_replayed(device):
    """Between begin and end nothing happens; each replay does everything again."""
    buffer, source = device.allocate(4), bytearray(b"1111")
    device.copy(buffer, b"0000")
    device.call("capture_begin")
    device.copy(buffer, source)
    graph = device.call("capture_end")
    assert bytes(read(device, buffer)) == b"0000"
    for text in (b"1111", b"2222"):
        source[:] = text
        device.call("capture_replay", graph)
        assert bytes(read(device, buffer)) == text


def test_a_captured_graph_keeps_its_memory(device):
    """What it reads and writes lives as long as the graph and no longer, so a replay hits nobody else's block."""
    buffer, source = device.allocate(4096), device.allocate(4096)
    device.memset(source, 7)
    device.call("capture_begin")
    device.copy(buffer, source)
    graph = device.call("capture_end")
    held = device.memory_stats().allocated
    del buffer, source
    gc.collect()
    assert device.memory_stats().allocated == held
    others = [device.allocate(4096) for _ in range(4)]
    for other in others:
        device.memset(other, 1)
    device.call("capture_replay", graph)
    assert all(set(read(device, other)) == {1} for other in others)
    del graph
    assert device.memory_stats().allocated == held + 2 * 4096


def test_a_launch_is_captured_with_its_kernel_and_buffers():
    """Also buffers that are passed with an offset."""
    device = open_device(VirtualRuntime())
    kernel = load_kernel(device, kit_source("native-object", ""), "native-object", "affine_float32")
    buffer = device.allocate(512)
    device.memset(buffer, 0)
    device.call("capture_begin")
    device.launch(kernel, (1,), (1,), [buffer, (buffer, 4), Scalar("f", 1), Scalar("f", 3), Scalar("q", 1)])
    graph = device.call("capture_end")
    kernel, buffer = weakref.ref(kernel), weakref.ref(buffer)
    gc.collect()
    device.call("capture_replay", graph)
    assert kernel() is not None
    assert read(device, buffer()).view(np.float32)[:2].tolist() == [0, 3]
    del graph
    gc.collect()
    device.synchronize()
    assert buffer() is None


def test_every_submission_is_captured(device):
    """Fills and copies from other devices run when replayed, not before, and read what is there by then."""
    peer, size = hw.device("virtual", 1), 16
    source, buffer, filled = peer.allocate(size), device.allocate(size), device.allocate(size)
    peer.memset(source, 5)
    for target in (buffer, filled):
        device.memset(target, 0)
    device.call("capture_begin")
    device.memset(filled, 3)
    device.copy(buffer, source)
    assert device.call("health") is None
    graph = device.call("capture_end")
    assert set(read(device, buffer)) == set(read(device, filled)) == {0}
    peer.memset(source, 6)
    device.call("capture_replay", graph)
    assert set(read(device, filled)) == {3}
    assert set(read(device, buffer)) == {6}


def test_a_graph_within_a_graph_is_kept(device):
    """A replay that is itself captured keeps the memory of the inner graph."""
    buffer, source = device.allocate(4), device.allocate(4)
    device.memset(source, 2)
    device.call("capture_begin")
    device.copy(buffer, source)
    inner = device.call("capture_end")
    device.call("capture_begin")
    device.call("capture_replay", inner)
    outer = device.call("capture_end")
    source = weakref.ref(source)
    del inner
    gc.collect()
    assert source() is not None
    device.call("capture_replay", outer)
    assert set(read(device, buffer)) == {2}


class Capturing(VirtualRuntime):
    """A chip with a graph capture of its own, which notes handles as drivers do."""

    def __init__(self):
        super().__init__()
        self.recorded = None

    def copy(self, ctx, *args):
        if self.recorded is None:
            super().copy(ctx, *args)
        else:
            self.recorded.append(args)

    def capture_begin(self, ctx):
        self.recorded = []

    def capture_end(self, ctx):
        recorded, self.recorded = self.recorded, None
        return recorded

    def capture_replay(self, ctx, graph):
        for args in graph:
            super().copy(ctx, *args)


def test_a_vendors_graph_keeps_its_memory_too():
    """The framework keeps it, also where the plug-in records handles."""
    device = open_device(Capturing())
    buffer = device.allocate(4096)
    device.call("capture_begin")
    device.memset(buffer, 9)
    with pytest.raises(hw.UnsupportedOperation, match="virtual:1 goes through the host"):
        device.copy(buffer, hw.device("virtual", 1).allocate(4))
    with pytest.raises(hw.DeviceError, match="already active"):
        device.call("profiler_start")
    graph = device.call("capture_end")
    held = device.memory_stats().allocated
    buffer = weakref.ref(buffer)
    gc.collect()
    assert device.memory_stats().allocated == held
    device.call("capture_replay", graph)
    assert set(read(device, buffer())) == {9}


def test_a_graph_is_replayed_where_it_was_captured(device):
    """Another device's graph, or something else, is refused by name."""
    other = open_device(VirtualRuntime())
    other.call("capture_begin")
    graph = other.call("capture_end")
    for wrong in (graph, []):
        with pytest.raises(hw.DeviceError, match="capture_replay needs a graph that was captured on"):
            device.call("capture_replay", wrong)
    with pytest.raises(hw.DeviceError, match="graph capture was not started"):
        device.call("capture_end")


def test_default_profile_has_a_coarse_event_for_each_submission(device):
    """Launches and copies are timed by the host, and say so."""
    device.call("profiler_start")
    device.copy(device.allocate(100), bytes(100))
    device.memset(device.allocate(100), 1)
    with pytest.raises(hw.DeviceError, match="already active"):
        device.call("capture_begin")
    device.call("profiler_stop")
    events = device.call("profiler_drain")
    assert [(event.name, event.coarse) for event in events] == [("copy", True), ("memset", True)]
    assert all(event.end_ns > event.start_ns for event in events)
    assert device.call("profiler_drain") == []
    with pytest.raises(hw.DeviceError, match="profiling was not started"):
        device.call("profiler_stop")


def test_health_is_a_round_trip(device):
    """A healthy device answers."""
    assert device.call("health") is None


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("run_op", ("matmul", (), {}), "has no operator library, so it cannot run operator 'matmul'"),
        ("compile_graph", (None,), "has no graph compiler"),
        ("run_graph", (None, ()), "has no graph compiler"),
        ("reset", (), "cannot be reset"),
    ],
)
def test_what_no_default_can_do_says_so(device, method, arguments, message):
    """The error names device and reason."""
    with pytest.raises(hw.UnsupportedOperation, match=message):
        device.call(method, *arguments)
    assert device.call("ops") == {}
    assert "no graph compiler" in device.call("supports", None)


def test_a_vendors_own_method_wins():
    """The default is used only where the runtime has nothing."""

    class Chip(VirtualRuntime):
        def mem_info(self, ctx):
            return 5, 9

    device = open_device(Chip())
    assert device.offers("mem_info")
    assert not device.offers("memset")
    assert device.mem_info() == (5, 9)


def test_foreign_exceptions_name_the_plugin():
    """Whatever a plug-in raises arrives as a DeviceError with its name; memory errors stay memory errors."""

    class Chip(VirtualRuntime):
        def copy(self, ctx, *args):
            raise KeyError("stream 7")

        def alloc(self, ctx, nbytes):
            raise MemoryError

    device = open_device(Chip())
    with pytest.raises(hw.DeviceError, match=r"plug-in 'chip' raised KeyError in copy: 'stream 7'"):
        device.copy(bytearray(1), bytes(1))
    with pytest.raises(hw.DeviceOutOfMemory, match="chip:0 is out of memory"):
        device.allocate(1)


def test_a_missing_required_method_is_named():
    """The contract's nine cannot be defaulted."""

    class Chip(VirtualRuntime):
        launch = None

    device = open_device(Chip())
    with pytest.raises(hw.DeviceError, match="'chip' lacks the method 'launch'"):
        device.launch(object(), (1,))
