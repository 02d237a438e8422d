"""Switches of ``fleet.DistributedStrategy``: each does what a script of one process would do by hand."""

import numpy as np
import pytest

import argosy as paddle
from argosy import nn
from argosy.distributed import fleet
from argosy.distributed.debug import run_ranks

ROWS = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)


def strategy_of(**settings):
    made = fleet.DistributedStrategy()
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def model_of():
    paddle.seed(1)
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1D(5), nn.Linear(5, 1))


def train(make=paddle.optimizer.SGD, steps=4, rows=2, **settings):
    """Each rank has rows of its own; the whole parameters after each step."""
    fleet.init(is_collective=True, strategy=strategy_of(**settings))
    rank, ranks = fleet.worker_index(), fleet.worker_num()
    net = model_of()
    optimizer = fleet.distributed_optimizer(make(0.1, parameters=net.parameters()))
    model = fleet.distributed_model(net)
    seen = []
    for step in range(steps):
        x = ROWS[step % 4 * 2 :][:2] if rows == 2 else ROWS
        loss = model(paddle.to_tensor(np.split(x, ranks)[rank])).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        seen.append(np.concatenate([p.numpy().ravel() for p in net.parameters() if not p.stop_gradient]))
    return seen, loss.dtype, type(optimizer).__name__


def test_merged_gradients_update_every_second_step():
    merged = {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 2}}
    ((found, _, kind),) = run_ranks(lambda: train(rows=8, **merged), 1)
    ((plain, _, _),) = run_ranks(lambda: train(rows=8), 1)
    assert kind == "GradientMergeOptimizer"
    np.testing.assert_array_equal(found[2], found[1])
    np.testing.assert_allclose(found[1], plain[0], rtol=1e-5, atol=1e-6)  # the mean of two equal gradients
    np.testing.assert_allclose(found[3], plain[1], rtol=1e-5, atol=1e-6)


def test_parameters_are_averaged_after_every_second_step():
    """Between, ranks differ; their mean after one step of SGD is that of the mean gradient."""
    local = {"localsgd": True, "localsgd_configs": {"k_steps": 2, "begin_step": 1}}
    one, other = run_ranks(lambda: train(rows=8, **local), 2)
    for step, equal in enumerate([True, False, True, False]):
        assert np.array_equal(one[0][step], other[0][step]) is equal
    (averaged, _) = run_ranks(lambda: train(rows=8), 2)
    np.testing.assert_allclose(one[0][0], averaged[0][0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("static", [False, True], ids=["eager", "captured"])
def test_statistics_of_batches_are_those_of_all_ranks(static):
    """Results, gradients (those of the batch through its statistics, too) and running statistics of one process."""

    def program():
        layer = nn.SyncBatchNorm(4, data_format="NCL")
        layer.weight.set_value(np.arange(1, 5, dtype=np.float32))
        ranks, place = paddle.distributed.get_world_size(), paddle.distributed.get_rank()
        rows = ROWS.reshape(4, 4, 2)
        x = paddle.to_tensor(rows if ranks == 1 else (rows[:3], rows[3:])[place])
        x.stop_gradient = False

        def step(x):
            y = layer(x)
            (y * y * y).sum().backward()
            return y

        y = (paddle.jit.to_static(step, full_graph=True) if static else step)(x)
        return y.numpy(), x.grad.numpy(), layer.weight.grad.numpy(), layer._mean.numpy(), layer._variance.numpy()

    ((whole, gradient, scale, *statistics),) = run_ranks(program, 1)
    found = run_ranks(program, 2)
    np.testing.assert_allclose(np.concatenate([y for y, *_ in found]), whole, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([g for _, g, *_ in found]), gradient, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(sum(w for _, _, w, *_ in found), scale, rtol=1e-4, atol=1e-4)
    for *_, mean, variance in found:
        np.testing.assert_allclose([mean, variance], statistics, rtol=1e-4, atol=1e-6)


def test_models_are_converted():
    """Scales and shifts, too, are trained on."""
    found, _ = run_ranks(lambda: train(rows=8, sync_batch_norm=True), 2)
    (plain,) = run_ranks(lambda: train(rows=8), 1)
    np.testing.assert_allclose(found[0], plain[0], rtol=1e-4, atol=1e-5)


def test_forward_passes_run_in_half_precision():
    ((_, dtype, _),) = run_ranks(lambda: train(amp=True, amp_configs={"use_pure_bf16": True}), 1)
    assert dtype == paddle.bfloat16


def test_lamb_takes_the_place_of_adam():
    lamb = {"lamb": True, "lamb_configs": {"lamb_weight_decay": 0.02}}
    ((found, _, kind),) = run_ranks(lambda: train(paddle.optimizer.AdamW, **lamb), 1)
    by_hand = lambda rate, parameters: paddle.optimizer.Lamb(rate, 0.02, epsilon=1e-8, parameters=parameters)  # noqa: E731
    ((expected, _, _),) = run_ranks(lambda: train(by_hand), 1)
    assert kind == "Lamb"
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(TypeError, match="makes Lamb of Adam, not of SGD"):
        run_ranks(lambda: train(**lamb), 1)


def test_degrees_have_other_names():
    def sizes():
        settings = {"sharding": True, "sharding_configs": {"sharding_degree": 2}}
        fleet.init(is_collective=True, strategy=strategy_of(tensor_parallel=True, **settings,
                   tensor_parallel_configs={"tensor_parallel_degree": 2}))  # fmt: skip
        groups = fleet.get_hybrid_communicate_group()
        return groups.get_sharding_parallel_world_size(), groups.get_model_parallel_world_size()

    assert run_ranks(sizes, 4) == [(2, 2)] * 4
