"""Eager operators on distributed tensors that look like earlier ones are applied without binding arguments again."""

import numpy as np
import pytest
from ranks import on_ranks

from argosy_autoparallel import ProcessMesh, Replicate, Shard, shard_tensor
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.declare.signature import Signature
from argosy_phi_ops.eager.application import Application
from argosy_phi_ops.eager.dispatch import Interpreter, layer
from argosy_phi_ops.eager.table import forget
from argosy_tensorcore.tensor import Tensor

X = np.arange(15, dtype=np.float32).reshape(5, 3)
W = np.arange(9, dtype=np.float32).reshape(3, 3) - 4


@pytest.fixture
def bindings(monkeypatch):
    """The names of operators whose arguments were bound."""
    forget()
    found, bind = [], Signature.bind

    def noted(self, args, kwargs):
        found.append(self.name)
        return bind(self, args, kwargs)

    monkeypatch.setattr(Signature, "bind", noted)
    return found


def test_arguments_are_bound_once_for_each_layout(bindings):
    """Calls of an operator with attributes bind once for operands of one layout, and again for another layout or other
    attributes; each gives what one process gives, with uneven parts."""

    def program(rank):
        mesh = ProcessMesh([0, 1])
        x, w = shard_tensor(X, mesh, [Shard(0)]), shard_tensor(W, mesh, [Replicate()])
        columns = shard_tensor(X, mesh, [Shard(1)])
        addmm = get_operator("addmm")
        found = [addmm(x, x, w), addmm(x, x, w), addmm(columns, x, w), addmm(x, x, w, beta=2.0), addmm(x, x, w)]
        return [y.numpy() for y in found]

    for made in on_ranks(program, 2):
        for y, beta in zip(made, (1, 1, 1, 2, 1), strict=True):
            np.testing.assert_array_equal(y, beta * X + X @ W)
    assert bindings.count("addmm") == 2 * 3


def test_operators_without_attributes_are_not_bound_again(bindings):
    """So it is for those of one or two tensors, of a tensor and a number too."""

    def program(rank):
        x = shard_tensor(X, ProcessMesh([0, 1]), [Shard(0)])
        add, square = get_operator("add"), get_operator("square")
        return [y.numpy() for _ in range(3) for y in (add(x, x), add(x, 2), add(x, 3), square(x))]

    for made in on_ranks(program, 2):
        for y, expected in zip(made, 3 * [X + X, X + 2, X + 3, X * X], strict=True):
            np.testing.assert_array_equal(y, expected)
    assert {bindings.count(name) for name in ("add", "square")} <= {2, 4}


def test_a_layer_above_sees_what_has_a_short_way():
    """A layer that is pushed later is not passed by."""

    class Noting(Interpreter):
        def process(self, op, operands, attributes, below):
            seen.append(op.name)
            return below(op, operands, attributes)

    def program(rank):
        x = shard_tensor(X, ProcessMesh([0]), [Shard(0)])
        for _ in range(2):
            get_operator("add")(x, x)
            get_operator("sum")(x, -1)
        with layer(Noting()):
            get_operator("add")(x, x)
            get_operator("sum")(x, -1)

    seen = []
    on_ranks(program, 1)
    assert seen == ["add", "sum"]


def test_ordinary_tensors_keep_their_routes_beside_distributed_ones(bindings):
    """While there are distributed tensors, ordinary ones take the routes that they take otherwise."""

    def program(rank):
        kept = shard_tensor(X, ProcessMesh([0]), [Shard(0)])
        x = Tensor(X)
        for _ in range(3):
            y = get_operator("addmm")(x, x, Tensor(W))
        return y.numpy(), kept.shape

    made, _ = on_ranks(program, 1)[0]
    np.testing.assert_array_equal(made, X + X @ W)
    assert bindings.count("addmm") == 1
    assert [type(each) for each in get_operator("addmm").applications.applications()] == [Application]
