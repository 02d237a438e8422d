"""Eager operators on distributed tensors, called often: native code of the local program, and the tape."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed.debug import run_ranks
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.tiering import TieredKernel

RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((255, 256), np.float32), RNG.standard_normal((256, 64), np.float32)
B = RNG.standard_normal((255, 64), np.float32)


def _operands(mesh):
    return (
        dist.shard_tensor(paddle.to_tensor(B), mesh, [dist.Shard(0)]),
        dist.shard_tensor(paddle.to_tensor(X), mesh, [dist.Shard(0)]),
        dist.shard_tensor(paddle.to_tensor(W), mesh, [dist.Replicate()]),
    )


def test_a_hot_local_program_is_compiled_and_gives_the_same():
    """What numpy computes of a rank's part at first, native code computes when it was called often; uneven parts."""

    def main():
        b, x, w = _operands(dist.ProcessMesh([0, 1]))
        results = [paddle.addmm(b, x, w) for _ in range(250)]
        found = get_operator("addmm").applications.by_key.items()
        mine = {each for key, each in found if key[0] is b.payload.array_type}
        return [r.numpy() for r in (results[0], results[-1])], [type(each.kernel) is TieredKernel for each in mine]

    for (first, last), counted in run_ranks(main, 2):
        np.testing.assert_allclose(first, B + X @ W, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(last, first, rtol=1e-4, atol=1e-4)
        assert counted == [False]


def test_the_short_way_records_what_the_long_one_does():
    """The second call of an operator passes gradients as the first does, and none where they are switched off."""

    def main():
        b, x, w = _operands(dist.ProcessMesh([0, 1]))
        w.stop_gradient = False
        found = []
        for _ in range(3):
            paddle.addmm(b, x, w).sum().backward()
            found.append(w.grad.numpy())
            w.clear_grad()
        with paddle.no_grad():
            silent = paddle.addmm(b, x, w), paddle.tanh(w), w + w
        return found, [y.stop_gradient for y in silent]

    for found, silent in run_ranks(main, 2):
        for g in found:
            np.testing.assert_allclose(g, X.sum(0)[:, None].repeat(64, 1), rtol=1e-4, atol=1e-4)
        assert silent == [True] * 3


WRITES = {
    "fill_": lambda view: view.fill_(5.0),
    "zero_": lambda view: view.zero_(),
    "add_": lambda view: view.add_(paddle.ones([1])),
    "exp_": lambda view: view.exp_(),
    "uniform_": lambda view: view.uniform_(),
    "copy_": lambda view: view.copy_(paddle.ones(view.shape)),
    "set_value": lambda view: view.set_value(paddle.ones(view.shape)),
    "item": lambda view: view.__setitem__(0, 9.0),
}
VIEWS = {
    "getitem": lambda x: x[0],
    "slice": lambda x: x[:2],
    "transpose": lambda x: x.t(),
    "reshape": lambda x: x.reshape([-1]),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "unbind": lambda x: paddle.unbind(x)[0],
}


@pytest.mark.parametrize("placement", [dist.Shard(0), dist.Shard(1), dist.Partial()], ids=str)
def test_views_and_their_tensors_show_what_is_written_to_either(placement):
    """As with ordinary tensors, views of views too; what may be a copy is refused."""

    def values(x, view_of, write):
        paddle.seed(1)
        view, beside = view_of(x), x[1:3]
        inner = view.unsqueeze(0)
        write(view)
        found = [x, view, beside, inner]
        inner[0] = 7.0
        found = [y.tolist() for y in found] + [y.tolist() for y in (x, view, beside, inner)]
        x[1:2] = 3.0
        found += [y.tolist() for y in (x, view, beside, inner)]
        x.reshape_([12]).fill_(2.0)
        return [*found, x.tolist(), view.tolist()]

    def main():
        mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
        for view_of in VIEWS.values():
            for write in WRITES.values():
                x = paddle.arange(12.0).reshape([4, 3])
                assert values(dist.shard_tensor(x, mesh, [placement]), view_of, write) == values(x, view_of, write)
        with pytest.raises(NotImplementedError, match="may be a copy"):
            dist.shard_tensor(paddle.ones([4, 3]), mesh, [placement]).t().reshape([-1]).fill_(1.0)

    run_ranks(main, 2)


def test_gradients_know_what_was_written_to_a_view():
    """They flow through what was written; a leaf that wants gradients cannot be written through a view."""

    def main():
        mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
        x = dist.shard_tensor(paddle.ones([4, 3]), mesh, [dist.Shard(0)], stop_gradient=False)
        row = dist.shard_tensor(paddle.ones([3]), mesh, [dist.Replicate()], stop_gradient=False)
        y = x * 2.0
        y[1].multiply_(row * 3.0)
        (y * y).sum().backward()
        with pytest.raises(ValueError, match="cannot be changed in place"):
            x[0].fill_(1.0)
        return x.grad.numpy(), row.grad.numpy()

    for given, row in run_ranks(main, 2):
        assert given.tolist() == [[8.0] * 3, [72.0] * 3, [8.0] * 3, [8.0] * 3]
        assert row.tolist() == [72.0] * 3
