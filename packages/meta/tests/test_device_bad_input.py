"""What devices are given that is wrong, or too much: each a named error, after which the device goes on, or a right
answer."""

import numpy as np
import pytest

import argosy as paddle
from argosy_hwadapt import DeviceLost, DeviceNotFound, DeviceOutOfMemory, UnsupportedOperation, registry, why
from argosy_hwadapt.virtual import VirtualRuntime
from argosy_phi_ops.eager.fallback import clear_fallbacks, fallbacks
from argosy_phi_ops.errors import AxisError, DeviceMismatch

on_devices = pytest.mark.parametrize(
    "name", ["virtual", pytest.param("opencl", marks=pytest.mark.skipif(why("opencl") is not None, reason="no OpenCL"))]
)
X = np.arange(12, dtype="float32").reshape(3, 4)


def put(x, name):
    return paddle.to_tensor(x, place=name)


@pytest.mark.parametrize("place", ["nowhere", "virtual:9", "opencl:99", "nowhere:1"])
@pytest.mark.parametrize("call", [lambda p: put(X, p), paddle.set_device, lambda p: paddle.ones([2]).to(p)])
def test_a_device_or_index_that_is_not_there_is_named(call, place):
    before = paddle.get_device()
    with pytest.raises((DeviceNotFound, ValueError), match=place.partition(":")[0]):
        call(place)
    assert paddle.get_device() == before


@on_devices
def test_operands_on_two_devices_are_named(name):
    """But numbers on the host go anywhere; eager and captured."""
    here, there = put(X, name), put(X, "virtual:1")
    captured = paddle.jit.to_static(lambda x, y: x + y, full_graph=True)
    for add in (lambda x, y: x + y, captured):
        with pytest.raises(DeviceMismatch, match=f"{name}:0.*virtual:1|virtual:1.*{name}:0"):
            add(here, there)
        assert (add(here, paddle.to_tensor(2.0))).tolist() == (X + 2).tolist()


@on_devices
def test_the_host_has_no_view_of_the_memory(name):
    x = put(X, name)
    for view in (lambda: x.payload.ndarray, lambda: np.from_dlpack(x)):
        with pytest.raises(BufferError, match=name):
            view()
    assert x.numpy().tolist() == X.tolist()


@pytest.mark.parametrize(("name", "dtype"), [("virtual", "bfloat16"), ("virtual", "float8_e4m3fn")])
def test_a_dtype_that_the_device_lacks_falls_back_by_name(name, dtype, monkeypatch):
    monkeypatch.setenv("ARGOSY_FALLBACK", "silent-counted")
    x = paddle.ones([3]).astype(dtype)
    clear_fallbacks()
    made = paddle.concat([x.to(name), x.to(name)])
    assert (str(made.place), made.astype("float32").cpu().tolist()) == (f"Place({name}:0)", [1] * 6)
    assert any(dtype in found.reason for found in fallbacks())
    monkeypatch.setenv("ARGOSY_FALLBACK", "error")
    with pytest.raises(UnsupportedOperation, match=dtype):
        paddle.concat([x.to(name), x.to(name)])


@on_devices
def test_elements_that_are_not_adjacent_are_read_and_written_right(name, monkeypatch):
    monkeypatch.setenv("ARGOSY_FALLBACK", "silent-counted")
    x = put(X, name)
    turned, stepped = x.T, x[:, ::2]
    assert (turned + 1).tolist() == (X.T + 1).tolist()
    assert (turned @ stepped).tolist() == (X.T @ X[:, ::2]).tolist()
    stepped[:] = 0
    wanted = X.copy()
    wanted[:, ::2] = 0
    assert x.tolist() == wanted.tolist()


@on_devices
def test_what_does_not_fit_is_told_and_the_device_goes_on(name):
    """Of 2^50 bytes; and of 4 GiB and one, where there is not as much."""
    x = put(X, name)
    for size in (1 << 50, *([(1 << 32) + 1] if name == "virtual" else [])):
        with paddle.device.device_guard(name), pytest.raises(DeviceOutOfMemory, match=f"{name}:0"):
            paddle.empty([size], dtype="uint8")
    assert (x * 2).tolist() == (X * 2).tolist()


@pytest.mark.exhaustive
@on_devices
def test_elements_past_2_to_the_31_are_counted_right(name):
    """In kernels that keep no such tensor in memory: its largest element, where it is, and the sum of as many."""
    size = (1 << 31) + 5

    def figures(x):
        numbers = paddle.arange(size) + x
        ones = paddle.ones([size], dtype="int64") * (x + 1)
        return numbers.max(), (numbers == size - 1).argmax(), ones.sum()

    with paddle.device.device_guard(name):
        found = paddle.jit.to_static(figures)(put(np.zeros(1, np.int64), name))
    assert [int(v) for v in found] == [size - 1, size - 1, size]


@on_devices
@pytest.mark.parametrize("index", [3, 1 << 31, 1 << 33, -4])
def test_an_index_beyond_the_axis_is_refused(name, index):
    """By a number at once, by a tensor at the next synchronisation."""
    x = put(X, name)
    with pytest.raises(AxisError):
        x[index]
    with pytest.raises(AxisError, match="test_device_bad_input"):
        paddle.gather(x, paddle.to_tensor([0, index], place=name)).numpy()
    assert x[1].tolist() == X[1].tolist()


def test_a_device_that_is_unplugged_between_two_calls_is_lost(monkeypatch):
    """Its first cause stays, on every later call."""
    monkeypatch.setitem(registry._runtimes, "stick", VirtualRuntime().faulty(die_at_launch=2))
    try:
        x = put(X, "stick")
        assert (x + 1).tolist() == (X + 1).tolist()
        for _ in range(2):
            with pytest.raises(DeviceLost, match="the device died in launch 2"):
                (x + 1).numpy()
    finally:
        del registry._devices["stick", 0]
