"""Strided payloads: what is shared, what is copied, and what views have in common."""

import gc
import threading

import numpy as np
import pytest

from argosy_hwadapt import device
from argosy_tensorcore import Storage, StridedArray, as_dtype
from argosy_tensorcore.dtype import ALL_DTYPES


def test_a_fresh_array_is_wrapped_without_being_copied():
    """from_array shares writable native memory, whatever its strides."""
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    for array in (base, base.T, base[::-1, ::-2], base[1:3, 2:4], base[:0]):
        payload = StridedArray.from_array(array)
        assert payload.array() is array
        assert payload.array().tolist() == array.tolist()
        assert (payload.shape, payload.ndim, payload.size) == (array.shape, array.ndim, array.size)
        assert payload.contiguous == array.flags.c_contiguous


@pytest.mark.parametrize("order", ["<", ">"])
def test_foreign_byte_order_is_converted(order):
    """Values survive, and what the payload holds is native."""
    payload = StridedArray.from_array(np.array([1, 2, 3], order + "i4"))
    assert payload.array().dtype == np.dtype("=i4")
    assert payload.array().tolist() == [1, 2, 3]


def test_read_only_unaligned_and_odd_strided_arrays_are_copied():
    """What cannot be written, addressed or counted in elements is copied."""
    frozen = np.arange(3)
    frozen.setflags(write=False)
    unaligned = np.zeros(9, np.uint8)[1:].view(np.float32)
    odd = np.zeros(3, [("a", "i4"), ("b", "i2")])["a"]
    for array in (frozen, unaligned, odd, np.broadcast_to(np.zeros(1), (4,))):
        payload = StridedArray.from_array(array)
        assert not np.shares_memory(payload.array(), array)
        assert payload.array().flags.writeable
        assert payload.array().flags.aligned
        assert payload.contiguous


def test_numpy_scalars_and_unsupported_dtypes():
    """A numpy scalar becomes 0-D; dtypes that tensors lack raise TypeError."""
    payload = StridedArray.from_array(np.float64(2.5))
    assert (payload.shape, payload.dtype.name, payload.array()[()]) == ((), "float64", 2.5)
    for array in (np.array(["a"]), np.array([object()]), np.zeros(1, "M8[s]")):
        with pytest.raises(TypeError, match="not a data type"):
            StridedArray.from_array(array)


@pytest.mark.parametrize("d", ALL_DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(), (0,), (3, 2)], ids=str)
def test_storage_born_and_array_born_payloads_agree(d, shape):
    """Payloads over a device buffer and over an ndarray have equal attributes and hold equal bits."""
    owned = StridedArray.empty(shape, d)
    allocated = StridedArray.empty(shape, d.name, device("cpu"))
    for name in ("dtype", "shape", "ndim", "size", "nbytes", "strides", "offset", "contiguous"):
        assert getattr(owned, name) == getattr(allocated, name), name
    values = np.ones(shape, d.numpy)
    for payload in (owned, allocated):
        payload.fill_from(values)
        assert payload.array().tobytes() == values.tobytes()
        assert payload.storage.nbytes == values.nbytes
    if values.size:
        assert allocated.address == device("cpu").address(allocated.storage.buffer)


def test_views_share_storage_and_version():
    """Views made by strides or from numpy views see each other's writes and one version counter."""
    payload = StridedArray.from_array(np.arange(12, dtype=np.int32).reshape(3, 4))
    assert payload.version == 0
    row = payload.share(payload.array()[1])
    column = payload.view((3,), (4,), 2)
    reverse = payload.view((3,), (-4,), 8)
    assert (row.offset, column.offset, row.strides) == (4, 2, (1,))
    assert column.array().tolist() == [2, 6, 10]
    assert reverse.array().tolist() == [8, 4, 0]
    assert row.view((2,), (2,), 1).array().tolist() == [5, 7]
    row.array()[2] = -1
    row.bump_version()
    assert column.array().tolist() == [2, -1, 10]
    assert {p.version for p in (payload, row, column, reverse)} == {1}
    assert payload.shares_storage(row)
    assert row.shares_storage(column)
    assert not payload.shares_storage(StridedArray.from_array(payload.array()))


def test_storage_covers_exactly_what_a_strided_array_touches():
    """Offsets count from the lowest element, so that reversed and stepped arrays have views, too."""
    base = np.arange(12, dtype=np.int64).reshape(3, 4)
    payload = StridedArray.from_array(base[::-1, ::-2])
    assert payload.storage.nbytes == 11 * 8
    assert payload.offset == 10
    assert payload.view((3,), (-4,)).array().tolist() == [11, 7, 3]
    assert payload.address == base.ctypes.data + 11 * 8
    assert payload.share(payload.array()[1:]).offset == 6


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [((13,), (1,), 0), ((2,), (1,), 11), ((2,), (-1,), 0), ((4, 4), (4, 1), 0)],
)
def test_views_stay_within_their_storage(shape, strides, offset):
    """A view beyond either end raises ValueError; an empty one may sit anywhere inside."""
    payload = StridedArray.from_array(np.arange(12.0))
    with pytest.raises(ValueError, match="12 of float64"):
        payload.view(shape, strides, offset)
    assert payload.view((0, 5), (5, 1), 12).array().shape == (0, 5)


def test_a_view_outlives_its_base():
    """Memory stays until the last view goes."""
    view = StridedArray.from_array(np.arange(1000.0)).view((2,), (1,), 500)
    allocated = StridedArray.empty((4,), "float32", device("cpu"))
    allocated.fill_from(np.ones(4, np.float32))
    array = allocated.array()
    del allocated
    gc.collect()
    assert view.array().tolist() == [500.0, 501.0]
    assert array.tolist() == [1.0] * 4


def test_one_storage_per_payload_among_threads():
    """Threads that ask for the storage at once get the same one."""
    payload = StridedArray.from_array(np.zeros(4))
    barrier, found = threading.Barrier(8), []

    def ask() -> None:
        barrier.wait()
        found.append(payload.storage)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(storage) for storage in found}) == 1


class DistantDevice:
    """A device whose memory the host cannot see, made of a host device and locked doors."""

    name, index = "distant", 0

    def __init__(self) -> None:
        self.host = device("cpu")

    def allocate(self, nbytes):
        return DistantBuffer(self, self.host.allocate(nbytes))

    def host_view(self, buffer, offset=0, nbytes=None):
        return None

    def copy(self, dst, src, nbytes=None, dst_offset=0, src_offset=0):
        dst, src = (getattr(side, "inner", side) for side in (dst, src))
        self.host.copy(dst, src, nbytes, dst_offset, src_offset)

    def synchronize(self):
        self.host.synchronize()


class DistantBuffer:
    def __init__(self, owner, inner) -> None:
        self.device, self.inner, self.nbytes = owner, inner, inner.nbytes


def test_memory_that_the_host_cannot_see_is_copied():
    """array() refuses, to_host copies, writes go over; views count from their own first element."""
    payload = StridedArray.from_array(np.arange(6, dtype=np.int32).reshape(2, 3), DistantDevice())
    assert payload.device.name == "distant"
    with pytest.raises(BufferError, match="distant"):
        payload.array()
    assert payload.to_host().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert payload.view((2, 2), (3, -2), 2).to_host().tolist() == [[2, 0], [5, 3]]
    payload.fill_from(np.int32(7))
    assert payload.view((3,), (1,), 3).to_host().tolist() == [7, 7, 7]
    payload.view((2, 2), (3, -2), 2).fill_from(np.array([[1, 2], [3, 4]]))
    assert payload.to_host().tolist() == [[2, 7, 1], [4, 7, 3]]
    payload.view((0,), (1,), 6).fill_from(np.zeros(0))


def test_storage_of_a_buffer():
    """A storage made of a device buffer is as large as it and starts at version 0."""
    storage = Storage(device("cpu").allocate(64))
    view = StridedArray.over_storage(storage, "float32", (4, 4))
    assert (storage.nbytes, storage.version, view.dtype) == (64, 0, as_dtype("float32"))
    assert view.array().ctypes.data == view.address
    assert "version=0" in repr(storage)
    with pytest.raises(AttributeError, match="no_such"):
        _ = view.no_such
