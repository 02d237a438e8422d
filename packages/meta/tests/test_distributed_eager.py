"""Eager operators on distributed tensors, called often: native code of the local program, and the tape."""

import numpy as np

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed.debug import run_ranks
from argosy_phi_ops.hot import Counted
from argosy_phi_ops.operator import get_operator

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
        mine = [plan for kinds, plan in get_operator("addmm").plans.items() if kinds[0] is b.payload.array_type]
        return [r.numpy() for r in (results[0], results[-1])], [type(plan.run) is Counted for plan in mine]

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
