"""Parts of weights for checkpoints, and marks of functions for captures: what models of PaddleFormers import."""

import numpy as np
import pytest

import argosy as paddle
from argosy.distributed.debug import run_ranks
from argosy.distributed.flex_checkpoint.dcp import sharded_weight as parts
from argosy.jit import marker


class _Ranks:
    rank, nranks = 2, 4


def test_a_part_knows_its_place():
    """A part along an axis begins where the ranks before end; a whole weight is one part; names have the prefix."""
    w = paddle.rand([3, 5])
    part = parts.shard_weight("w", w, 1, _Ranks())
    assert (part.local_shape, part.global_shape, part.global_offset) == ((3, 5), (3, 20), (0, 10))
    assert part.local_tensor is w
    with pytest.raises(ValueError, match="axis should be from 0 to 1 for shape"):
        parts.shard_weight("w", w, 2, _Ranks())
    layer = paddle.nn.Linear(2, 3)
    paddle.distributed.fleet.init(is_collective=True)
    made = paddle.distributed.build_sharded_state_dict(layer.state_dict(), {"weight": 1}, "a.")
    assert list(made) == ["a.weight", "a.bias"]
    assert [x.global_offset for x in made.values()] == [(0, 0), (0,)]
    assert [x.global_shape for x in made.values()] == [(2, 3), (3,)]
    other = parts.create_sharded_weight_with_new_local("m", paddle.zeros([3, 5]), part)
    assert (other.key, other.global_offset, other.local_tensor.sum().item()) == ("m", (0, 10), 0.0)
    with pytest.raises(ValueError, match=r"should have the shape \[3, 5\] of w"):
        parts.create_sharded_weight_with_new_local("m", paddle.zeros([5, 3]), part)


def test_a_distributed_tensor_gives_the_part_of_the_rank():
    def rank():
        dist = paddle.distributed
        mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
        x = dist.shard_tensor(paddle.arange(8).reshape([4, 2]), mesh, [dist.Shard(0)])
        place = dist.get_rank() * 2
        made = dist.ShardedWeight("x", x, x.shape, x.shape, (place, 0))
        assert made.local_shape == (2, 2)
        np.testing.assert_array_equal(made.local_tensor.numpy(), np.arange(8).reshape(4, 2)[place : place + 2])
        return True

    assert run_ranks(rank, 2) == [True, True]


def test_marks_leave_results_and_force_dynamic_breaks_the_graph():
    """A unified function runs as it is; one that must be dynamic runs as Python, with a graph that breaks there."""
    seen = []

    @marker.force_dynamic
    def outside(x):
        seen.append(float(x.sum()))
        return x * 2

    @marker.unified(for_sot=False)
    def same(x):
        return x + 1

    @marker.unified
    @marker.capture_control_flow
    def whole(x):
        return outside(same(x)) + 1

    @marker.unified
    class Twice(paddle.nn.Layer):
        def forward(self, x):
            return x * 2

    captured = paddle.jit.to_static(whole, full_graph=False)
    for _ in range(3):
        assert captured(paddle.ones([2])).tolist() == [5.0, 5.0]
    assert seen == [4.0] * 3
    with pytest.raises(NotImplementedError, match="outside is marked force_dynamic"):
        paddle.jit.to_static(lambda x: outside(x), full_graph=True)(paddle.ones([2]))
    assert paddle.jit.to_static(Twice(), full_graph=True)(paddle.ones([2])).tolist() == [2.0, 2.0]
    with pytest.raises(NotImplementedError, match="InputSpec"):
        marker.dynamic_dims(paddle.ones([2]), 0)
    with pytest.raises(TypeError, match="a function or a class of layers"):
        marker.force_dynamic(3)


def test_addresses_that_models_import():
    from argosy.incubate.nn.layer.fused_linear import FusedLinear
    from argosy.incubate.tensor.manipulation import create_async_load

    assert FusedLinear is paddle.incubate.nn.FusedLinear
    with pytest.raises(NotImplementedError, match="moved between memories"):
        create_async_load()
