"""Tensors as data: attributes, conversions, copies, methods that come by name."""

import numpy as np
from argosy_tensorcore import Strided, Tensor


def test_a_wrapped_payload_shares_its_array():
    """A tensor made of a payload shows the same memory."""
    array = np.zeros(3, np.float32)
    tensor = Tensor._wrap(Strided.from_array(array))
    array[1] = 5
    assert tensor.tolist() == [0.0, 5.0, 0.0]
