"""The optional groups: defaults made from the nine methods, a vendor's own methods, and errors of plug-ins."""

import numpy as np
import pytest

import argosy_hwadapt as hw
from argosy_hwadapt.device import Device
from argosy_hwadapt.optional import DEFAULTS, OPTIONAL_GROUPS
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


def test_default_profile_has_a_coarse_event_for_each_submission(device):
    """Launches and copies are timed by the host, and say so."""
    device.call("profiler_start")
    device.copy(device.allocate(100), bytes(100))
    with pytest.raises(hw.DeviceError, match="already active"):
        device.call("capture_begin")
    device.call("profiler_stop")
    (event,) = device.call("profiler_drain")
    assert (event.name, event.coarse) == ("copy", True)
    assert event.end_ns > event.start_ns
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
