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


@pytest.mark.parametrize("placement", [dist.Shard(0), dist.Replicate()], ids=str)
def test_writing_to_views_is_refused_and_to_tensors_is_not(placement):
    """A view of a distributed tensor is a copy: what is written to it would not reach the tensor."""

    def main():
        mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
        for view_of in VIEWS.values():
            for write in WRITES.values():
                x = dist.shard_tensor(paddle.arange(12.0).reshape([4, 3]), mesh, [placement])
                with pytest.raises(NotImplementedError, match="would be lost"):
                    write(view_of(x))
                write(x)  # the tensor itself, and a clone of a view
                write(view_of(x).clone())
                x.reshape_([12]).fill_(2.0)
                assert x.numpy().tolist() == [2.0] * 12

    run_ranks(main, 2)
