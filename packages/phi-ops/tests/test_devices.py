"""Operators on tensors of devices whose memory the host cannot see: applications are found by the device, too."""

import numpy as np
import pytest

from argosy_hwadapt import device
from argosy_phi_ops import get_operator
from argosy_phi_ops.eager import tiering
from argosy_pir.program import Program
from argosy_tensorcore.storage import Strided
from argosy_tensorcore.tensor import Tensor


@pytest.fixture
def there():
    """The tensor [[1, 2], [3, 4]] on the device."""
    return Tensor._wrap(Strided.from_array(np.array([[1, 2], [3, 4]], np.float32), device("virtual")))


def test_an_operator_without_kernels_for_a_device_names_both(there):
    """Also where the same operator was applied to a tensor of the host of the same type before."""
    here = Tensor(np.ones((2, 2), np.float32))
    for name, more in (("exp", ()), ("add", (here,)), ("add", (2.0,)), ("matmul", (here,)), ("split", (2,))):
        op = get_operator(name)
        op(here, *more)
        op(here, *more)
        for _ in range(2):
            with pytest.raises(NotImplementedError, match=f"{name}: .*'virtual'"):
                op(there, *more)
        op(here, *more)


def test_tensors_of_a_device_have_a_type_of_their_own(there):
    """Found by identity, as those of the host are; copies on the host have the host's."""
    here = Tensor(there.payload.to_host())
    again = there.payload.view((2, 2), (2, 1), 0)
    assert there.payload.array_type is again.array_type
    assert there.payload.array_type is not here.payload.array_type
    assert (there.payload.array_type.device.name, here.payload.array_type.device) == ("virtual", None)


def test_native_code_is_for_the_device_that_is_asked_for(monkeypatch):
    """One kernel for each device, none for the host in its place."""
    asked = []

    class Compiler:
        def compile(self, program, where):
            asked.append(where)
            return self

        def report(self):
            return {"host_calls": {}}

        def bind(self, states):
            return lambda payloads: payloads

    monkeypatch.setattr(tiering, "get_compiler", Compiler)
    monkeypatch.setattr(tiering, "available_compilers", lambda: ["native"])
    tiering.native_kernel(Program("f"))
    tiering.native_kernel(Program("f"), device("virtual", 1))
    assert asked == [device("cpu"), device("virtual", 1)]
