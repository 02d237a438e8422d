"""Streams of a device that has several: what goes to which, and memory that two of them use."""

from collections import deque

import numpy as np
import pytest

from argosy_hwadapt.device import Device
from argosy_hwadapt.virtual import VirtualRuntime


class LateRuntime(VirtualRuntime):
    """Streams that do nothing before somebody waits, and then the device's own first: whatever is not ordered by
    events comes out wrong."""

    def __init__(self):
        super().__init__()
        self.queues = {None: deque()}

    def stream_create(self, ctx):
        stream = len(self.queues)
        self.queues[stream] = deque()
        return stream

    def stream_destroy(self, ctx, stream):
        self.run(self.queues.pop(stream))

    def event_record(self, ctx, stream=None):
        event = {"done": False, "stream": stream}
        self.queues[stream].append(lambda: event.update(done=True))
        return event

    def stream_wait_event(self, ctx, stream, event):
        def wait():
            while not event["done"]:
                self.queues[event["stream"]].popleft()()

        self.queues[stream].append(wait)

    def copy(self, ctx, dst, dst_off, src, src_off, nbytes, stream=None):
        def work():
            super(LateRuntime, self).copy(ctx, dst, dst_off, src, src_off, nbytes)
            super(LateRuntime, self).synchronize(ctx)

        self.queues[stream].append(work)

    def synchronize(self, ctx, stream=None):
        for queue in list(self.queues.values()) if stream is None else [self.queues[stream]]:
            self.run(queue)
        super().synchronize(ctx)

    def run(self, queue):
        while queue:
            queue.popleft()()


@pytest.fixture
def device():
    runtime = LateRuntime()
    return Device("late", 0, runtime.devices()[0], runtime)


def test_work_goes_to_the_current_stream(device):
    stream = device.call("stream_create")
    buffer, found = device.allocate(256), np.zeros(256, np.uint8)
    device.copy(buffer, bytes([1]) * 256, stream=stream)
    device.current_stream = stream
    device.copy(found, buffer)
    device.current_stream = None
    device.copy(buffer, bytes([2]) * 256)  # the device's own stream runs first here
    device.synchronize()
    assert set(found) == {1}


def test_memory_that_another_stream_reads_is_not_written_before(device):
    """Its block is given out again at once: what is done with it waits."""
    stream = device.call("stream_create")
    buffer, found = device.allocate(4096), np.zeros(4096, np.uint8)
    handle = buffer.handle
    device.copy(buffer, bytes([1]) * 4096)
    device.call("stream_wait_event", stream, device.call("event_record", None))
    device.copy(found, buffer, stream=stream)
    del buffer
    again = device.allocate(4096)
    assert again.handle == handle
    device.copy(again, bytes([2]) * 4096)
    device.synchronize()
    assert set(found) == {1}


def test_blocks_stay_with_the_stream_that_they_were_allocated_on(device):
    device.current_stream = stream = device.call("stream_create")
    buffer = device.allocate(1 << 16)
    handle = buffer.handle
    del buffer
    assert device.allocate(1 << 16).handle == handle
    device.current_stream = None
    assert device.allocate(1 << 16).handle != handle
    device.allocator.release_cached()
    assert device.memory_stats().reserved == 0
    assert stream in device.runtime.queues


def test_largest_figures_count_from_a_reset(device):
    buffers = [device.allocate(1 << 20) for _ in range(3)]
    del buffers
    assert device.memory_stats()[2:] == (3 << 20, 3 << 20)
    device.allocator.release_cached()
    device.allocator.reset_peaks(reserved=False)
    assert device.memory_stats()[2:] == (0, 3 << 20)
    device.allocator.reset_peaks()
    assert device.memory_stats()[2:] == (0, 0)
