"""Sharing memory with numpy and through DLPack."""

import pickle

import numpy as np
import pytest

from argosy_tensorcore import Tensor, as_dtype, from_dlpack, from_numpy, to_numpy
from argosy_tensorcore.dtype import ALL_DTYPES


@pytest.mark.parametrize("d", ALL_DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)], ids=str)
def test_numpy_round_trip_shares_memory(d, shape):
    """from_numpy and to_numpy hand the same memory on, in every dtype."""
    array = np.ones(shape, d.numpy)
    tensor = from_numpy(array)
    assert to_numpy(tensor) is array
    assert tensor.dtype is d
    assert tensor.shape == shape


def test_from_numpy_takes_arrays_only():
    """Lists are to_tensor's; a numpy scalar becomes 0-D."""
    with pytest.raises(TypeError, match="list"):
        from_numpy([1, 2])
    assert from_numpy(np.float32(2)).shape == []


@pytest.mark.parametrize("d", [d for d in ALL_DTYPES if d.in_numpy], ids=lambda d: d.name)
def test_dlpack_round_trip_shares_memory(d):
    """numpy reads a tensor, and a tensor numpy's array, through DLPack without copying; strides survive."""
    base = np.ones((4, 3), d.numpy)
    for array in (base, base[::2, 1:], base[:, 0]):
        tensor = from_dlpack(array)
        assert np.shares_memory(to_numpy(tensor), array)
        back = np.from_dlpack(tensor)
        assert np.shares_memory(back, array)
        assert back.shape == array.shape
    assert from_dlpack(tensor).payload.shares_storage(tensor.payload)
    assert tensor.__dlpack_device__() == (1, 0)


def test_what_dlpack_cannot_offer_is_refused():
    """Tensors in the graph, dtypes numpy cannot export and objects without the protocol raise."""
    with pytest.raises(BufferError, match="detach"):
        np.from_dlpack(Tensor([1.0], stop_gradient=False))
    with pytest.raises(BufferError, match="bfloat16"):
        np.from_dlpack(Tensor([1.0], as_dtype("bfloat16")))
    with pytest.raises(TypeError, match="__dlpack__"):
        from_dlpack([1, 2])


def test_detach_shares_memory_and_versions():
    """A detached tensor sees writes to the original and counts them."""
    tensor = Tensor([1.0, 2.0], stop_gradient=False)
    detached = tensor.detach()
    tensor.set_value(np.array([3, 4], np.float32))
    assert detached.tolist() == [3.0, 4.0]
    assert detached.stop_gradient
    assert detached.inplace_version == tensor.inplace_version == 1


@pytest.mark.parametrize("name", [dtype.name for dtype in ALL_DTYPES])
def test_arrays_out_of_pickles_are_shown_as_others(name):
    """Their dtypes are copies, which numpy does not call built in."""
    array = np.ones(3, as_dtype(name).numpy)
    expected = Tensor(array).numpy()
    found = from_numpy(pickle.loads(pickle.dumps(array))).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
