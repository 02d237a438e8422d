"""Names of ``paddle.device`` on a device: streams, events, memory, properties; batches that are brought there."""

import gc

import numpy as np
import pytest

import argosy as paddle

D = paddle.device


@pytest.fixture
def on_device():
    with D.device_guard("virtual"):
        yield


def test_streams_and_events_order_work(on_device):
    stream, event = D.Stream(), D.Event(enable_timing=True)
    event.record()
    with D.stream_guard(stream):
        assert D.current_stream() is stream
        y = paddle.ones([4]) + 1
        end = stream.record_event()
    assert D.current_stream() is not stream
    D.current_stream().wait_stream(stream)
    D.current_stream().wait_event(end)
    stream.synchronize()
    assert (y.tolist(), stream.query(), end.query()) == ([2] * 4, True, True)
    assert event.elapsed_time(end) >= 0
    before = D.set_stream(stream)
    assert D.set_stream(before) == stream
    assert D.Stream("virtual:1").device == paddle.to_tensor(0.0, place="virtual:1").place
    with pytest.raises(ValueError, match="the event was not recorded"):
        D.Event().elapsed_time(end)


def test_memory_is_counted(on_device):
    gc.collect()
    D.empty_cache()
    D.reset_peak_memory_stats()
    held = D.memory_allocated()
    x = paddle.zeros([1 << 18])
    assert D.memory_allocated("virtual:0") >= held + (1 << 20)
    assert D.max_memory_allocated() >= held + (1 << 20)
    assert D.memory_reserved() >= D.memory_allocated()
    D.synchronize()
    del x
    gc.collect()
    D.empty_cache()
    assert D.memory_reserved() - D.memory_allocated() == 0
    assert D.max_memory_reserved() > D.memory_reserved()
    D.reset_max_memory_reserved()
    D.reset_max_memory_allocated()
    assert (D.max_memory_reserved(), D.max_memory_allocated()) == (D.memory_reserved(), D.memory_allocated())


def test_properties_are_those_of_the_device(on_device):
    found = D.get_device_properties()
    assert (found.name, found.total_memory) == ("virtual device", 1 << 30)
    assert D.get_device_name("virtual:1") == D.get_device_name(1) == "virtual device"
    assert D.get_device_capability() == (0, 0)
    assert (D.device_count(), D.device_count("cpu"), D.is_available()) == (2, 0, True)
    assert not D.is_current_stream_capturing()


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_are_brought_to_the_place(workers):
    data = [(np.full(3, i, "float32"), i) for i in range(4)]
    loader = paddle.io.DataLoader(data, places="virtual", batch_size=2, num_workers=workers)
    batches = list(loader)
    assert [[part.place for part in batch] for batch in batches] == [loader.places * 2] * 2
    assert [batch[1].tolist() for batch in batches] == [[0, 1], [2, 3]]
    (named,) = paddle.io.DataLoader([{"x": 1.0}], places=["virtual:1"])
    assert str(named["x"].place) == "Place(virtual:1)"


def test_batches_go_to_one_place_that_is_there():
    for places in (["virtual:0", "virtual:1"], "virtual:9", "nowhere", 3):
        with pytest.raises(ValueError, match="argument 'places'"):
            paddle.io.DataLoader([1.0], places=places)
