"""What functions with several results give: lists that users change, and tuples with names, as in Paddle."""

import numpy as np
import pytest

from argosy_phi_ops.declare.composition import find_function
from argosy_tensorcore.tensor import Tensor

X = Tensor(np.arange(12.0).reshape(4, 3))


@pytest.mark.parametrize(
    ("name", "arguments", "count"),
    [("split", (2,), 2), ("split", ([1, -1],), 2), ("chunk", (2,), 2), ("unbind", (), 4)],
)
def test_parts_are_lists(name, arguments, count):
    """Users exchange, append and add parts; as functions and as methods."""
    for parts in (find_function(name)(X, *arguments), getattr(X, name)(*arguments)):
        assert type(parts) is list
        assert len(parts) == count
        parts[0] = parts[0] * 2
        parts.append(X)
        assert len(parts + [X]) == count + 2  # noqa: RUF005  # the sum of lists is the point


def test_broadcast_tensors_gives_a_list():
    """As many as there are tensors."""
    parts = find_function("broadcast_tensors")([X, Tensor(np.zeros(3))])
    assert type(parts) is list
    assert [list(x.shape) for x in parts] == [[4, 3], [4, 3]]


def test_topk_names_its_results():
    """``values`` and ``indices``, which unpack like any pair; ``dim`` and ``input`` are other names."""
    found = X.topk(2)
    assert found.values.numpy().tolist() == [[2, 1], [5, 4], [8, 7], [11, 10]]
    values, indices = find_function("topk")(input=X, k=1, dim=0)
    assert (values.numpy().tolist(), indices.numpy().tolist()) == ([[9, 10, 11]], [[3, 3, 3]])
