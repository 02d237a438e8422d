"""What libraries take from ``fleet.utils`` and from modules beside it."""

import re

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed import collective, fleet
from argosy.distributed.debug import run_ranks
from argosy.distributed.fleet.base import topology
from argosy.distributed.fleet.utils import mix_precision_utils, sequence_parallel_utils, timer_helper
from argosy.distributed.fleet.utils.hybrid_parallel_util import fused_allreduce_gradients_with_group, unwrap_optimizer


def start_parts(size):
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"mp_degree": size}
    fleet.init(is_collective=True, strategy=strategy)


def test_gradients_of_sixteen_bits_are_added_in_float32():
    paddle.seed(1)
    layer = nn.Linear(4, 4)
    layer.to(dtype="bfloat16")
    assert not hasattr(layer.weight, "main_grad")
    model = mix_precision_utils.MixPrecisionLayer(layer, "bfloat16")
    optimizer = mix_precision_utils.MixPrecisionOptimizer(
        paddle.optimizer.AdamW(0.1, parameters=model.parameters(), multi_precision=True)
    )
    assert layer.weight.main_grad is None
    x = paddle.ones([2, 4], "bfloat16")
    for scale in (1.0, 1 / 512):  # the second sum is lost in bfloat16
        (model(x).sum() * scale).backward()
    assert layer.weight.main_grad.dtype is paddle.float32
    np.testing.assert_array_equal(layer.weight.main_grad.numpy(), 2 + 2 / 512)
    before = layer.weight.numpy()
    optimizer.step()
    assert (layer.weight.numpy() != before).all()
    optimizer.clear_grad(set_to_zero=False)
    assert layer.weight.main_grad is None
    assert unwrap_optimizer(optimizer, mix_precision_utils.MixPrecisionOptimizer) is optimizer._inner_opt


def test_a_main_gradient_of_the_users_own_is_a_member_like_any_other():
    weight = nn.Linear(2, 2).weight
    weight.main_grad = None
    assert weight.main_grad is None
    weight.main_grad = paddle.ones([2, 2])
    assert weight.grad is None
    assert weight.main_grad.sum() == 4


def test_other_types_are_refused():
    with pytest.raises(ValueError, match="expected 'float16' or 'bfloat16'"):
        mix_precision_utils.MixPrecisionLayer(nn.Linear(2, 2), "float32")


def test_timers(capsys, monkeypatch):
    monkeypatch.setattr(timer_helper, "_timers", None)
    with pytest.raises(AssertionError, match="not initialized"):
        timer_helper.get_timers()
    timer_helper.set_timers()
    timers = timer_helper.get_timers()
    timers("step").start()
    with pytest.raises(RuntimeError, match="already started"):
        timers("step").start()
    assert timers("step").elapsed(reset=False) > 0
    timers("step").stop()
    timers.log(["step"])
    assert re.fullmatch(r"time \(ms\) \| step: [\d.]+\n", capsys.readouterr().out)
    assert timers("step").elapsed() == 0


def test_gradients_of_a_group():
    def main(scale):
        weight = paddle.create_parameter([2], "float32")
        (weight * (dist.get_rank() + 1.0)).sum().backward()
        fused_allreduce_gradients_with_group([weight], None, scale=scale)
        return weight.grad.tolist()

    assert run_ranks(lambda: main(None), 2) == [[1.5, 1.5]] * 2
    assert run_ranks(lambda: main(1.0), 2) == [[3.0, 3.0]] * 2


def test_groups_where_libraries_look_for_them():
    def main():
        start_parts(2)
        parts = topology._HYBRID_PARALLEL_GROUP.get_model_parallel_group()
        return parts.ranks, collective._get_default_group().ranks, dist.in_auto_parallel_align_mode()

    assert run_ranks(main, 2) == [([0, 1], [0, 1], False)] * 2


def test_parts_of_layers_are_drawn_apart_and_the_rest_alike():
    def main():
        paddle.seed(11)
        start_parts(2)
        part = fleet.meta_parallel.ColumnParallelLinear(4, 8, gather_output=False).weight.numpy()
        with fleet.meta_parallel.get_rng_state_tracker().rng_state():
            apart = paddle.rand([4]).tolist()
        return part, apart, paddle.rand([4]).tolist()

    (first, first_apart, alike), (second, second_apart, also) = run_ranks(main, 2)
    assert (first != second).any()
    assert first_apart != second_apart
    assert alike == also
    paddle.seed(11)
    assert alike == paddle.rand([4]).tolist()  # fleet.init draws nothing


def test_parts_of_sequences():
    def main():
        start_parts(2)
        x = paddle.arange(4, dtype="float32").reshape([4, 1])
        part = sequence_parallel_utils.scatter(x)
        whole = sequence_parallel_utils.all_gather(part)
        return (
            part.numpy().ravel().tolist(),
            whole.numpy().ravel().tolist(),
            (sequence_parallel_utils.reduce_scatter(x).numpy().ravel().tolist()),
        )

    assert run_ranks(main, 2) == [([0, 1], [0, 1, 2, 3], [0, 2]), ([2, 3], [0, 1, 2, 3], [4, 6])]


def test_functions_of_a_split_vocabulary():
    rng = np.random.default_rng(0)
    logits, labels = rng.standard_normal((3, 6), np.float32), np.array([0, 5, -100])
    table = rng.standard_normal((6, 2), np.float32)

    def main():
        rank = dist.get_rank()
        own = paddle.to_tensor(logits[:, 3 * rank : 3 * rank + 3], stop_gradient=False)
        loss, softmax = collective._c_softmax_with_cross_entropy(own, paddle.to_tensor(labels), None, True)
        loss.sum().backward()
        rows = collective._c_lookup_table(
            paddle.to_tensor(table[3 * rank : 3 * rank + 3]), paddle.to_tensor([1, 4]), 3 * rank
        )
        return loss.numpy(), softmax.numpy(), own.grad.numpy(), rows.numpy()

    whole = paddle.to_tensor(logits, stop_gradient=False)
    expected, softmax = nn.functional.softmax_with_cross_entropy(
        whole, paddle.to_tensor(labels[:, None]), return_softmax=True
    )
    expected.sum().backward()
    results = run_ranks(main, 2)
    for loss, _, _, _ in results:
        np.testing.assert_allclose(loss, expected.numpy(), rtol=1e-6)
    np.testing.assert_allclose(np.concatenate([r[1] for r in results], 1), softmax.numpy(), rtol=1e-6)
    np.testing.assert_allclose(np.concatenate([r[2] for r in results], 1), whole.grad.numpy(), atol=1e-7)
    np.testing.assert_array_equal(sum(r[3] for r in results), table[[1, 4]])
