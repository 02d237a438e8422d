"""Operators on tensors of devices whose memory the host cannot see: applications are found by the device, too."""

import numpy as np
import pytest

from argosy_hwadapt import UnsupportedOperation, device
from argosy_phi_ops import get_operator
from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.eager.creation import set_creation_device
from argosy_phi_ops.eager.dispatch import write
from argosy_phi_ops.eager.fallback import clear_fallbacks, fallbacks
from argosy_phi_ops.errors import DeviceMismatch
from argosy_tensorcore.rng import Generator
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.* runs on the cpu, not on virtual:RuntimeWarning")


@pytest.fixture
def there():
    """The tensor [[1, 2], [3, 4]] on the device."""
    return Tensor._wrap(StridedArray.from_array(np.array([[1, 2], [3, 4]], np.float32), device("virtual")))


def test_operators_run_where_their_operands_are(there):
    """By a compiler's code, or the host's kernels, counted; also where it was applied on the host before."""
    here = Tensor(there.payload.to_host())
    for name, more in (("exp", ()), ("add", (2.0,)), ("split", (2,)), ("transpose", ([1, 0],)), ("cumsum", (0,))):
        op = get_operator(name)
        expected = op(here, *more)
        for _ in range(2):
            made = op(there, *more)
            for x, y in zip(made, expected, strict=True) if isinstance(made, tuple) else [(made, expected)]:
                assert x.payload.array_type.device is there.payload.device
                np.testing.assert_allclose(x.payload.to_host(), y.payload.ndarray, rtol=1e-6)


def test_operands_on_two_devices_are_refused_by_the_names_of_both(there):
    """Numbers and 0-D tensors of the host go anywhere."""
    here = Tensor(np.ones((2, 2), np.float32))
    other = Tensor._wrap(StridedArray.from_array(here.payload.ndarray, device("virtual", 1)))
    add = get_operator("add")
    add(here, here)
    for _ in range(2):
        with pytest.raises(DeviceMismatch, match="add: operands are on virtual:0 and on cpu"):
            add(there, here)
        with pytest.raises(DeviceMismatch, match="add: operands are on virtual:0 and on virtual:1"):
            add(there, other)
    assert add(there, Tensor(np.float32(1))).payload.to_host().tolist() == [[2, 3], [4, 5]]


def test_views_on_a_device_share_its_memory(there):
    """A write through one shows in the other; nothing is copied."""
    turned = get_operator("transpose")(there, [1, 0])
    assert turned.payload.shares_storage(there.payload)
    assert turned.payload.strides == (1, 2)
    write(there, get_operator("multiply")(there, 10.0))
    assert turned.payload.to_host().tolist() == [[10, 30], [20, 40]]


def test_what_falls_back_is_counted_or_refused(there, monkeypatch):
    """With a warning once for each operator, device and reason; an operator without a program always falls back."""
    unique = get_operator("masked_select")
    mask = get_operator("greater_than")(there, 2.0)
    clear_fallbacks()
    with pytest.warns(RuntimeWarning, match="masked_select runs on the cpu, not on virtual:0: it has no program"):
        made = unique(there, mask)
    assert (made.payload.to_host().tolist(), str(made.payload.device)) == ([3, 4], "virtual:0")
    unique(there, mask)
    (found,) = [each for each in fallbacks() if each.operator == "masked_select"]
    assert (found.device, found.calls, found.nbytes) == ("virtual:0", 2, 40)
    monkeypatch.setenv("ARGOSY_FALLBACK", "error")
    with pytest.raises(UnsupportedOperation, match="masked_select has no code for virtual:0"):
        unique(there, mask)


def test_new_tensors_are_made_on_the_device_that_is_set():
    """By operators that take no tensor; random numbers are those of the host."""
    context().generator = Generator(5)
    expected = get_operator("uniform")([3], "float32", 0.0, 1.0).payload.to_host()
    context().generator = Generator(5)
    set_creation_device(device("virtual", 1))
    try:
        drawn, full = get_operator("uniform")([3], "float32", 0.0, 1.0), get_operator("full")([2], 7.0, "float32")
        assert drawn.payload.array_type.device is full.payload.array_type.device is device("virtual", 1)
        assert drawn.payload.to_host().tolist() == expected.tolist()
        assert (full + full).payload.to_host().tolist() == [14, 14]
    finally:
        set_creation_device(None)
    assert get_operator("full")([2], 7.0, "float32").payload.array_type.device is None
    assert not AMBIENT.word


def test_tensors_of_a_device_have_a_type_of_their_own(there):
    """Found by identity, as those of the host are; copies on the host have the host's."""
    here = Tensor(there.payload.to_host())
    again = there.payload.view((2, 2), (2, 1), 0)
    assert there.payload.array_type is again.array_type
    assert there.payload.array_type is not here.payload.array_type
    assert (there.payload.array_type.device.name, here.payload.array_type.device) == ("virtual", None)
