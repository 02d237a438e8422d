"""Switches of ``fleet.DistributedStrategy``: each does what a script of one process would do by hand."""

import numpy as np
import pytest

import argosy as paddle
from argosy import distributed as dist
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


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("find_unused_parameters", True, "it changes no result"),
        ("recompute_configs", {"enable_tuning": True}, "enable_tuning=True does nothing here: nothing is searched for"),
        ("hybrid_configs", {"pp_configs": {"profiling": True}}, "pp_configs=.* does nothing here"),
        ("sharding_configs", {"segment_broadcast_MB": 16.0}, "segment_broadcast_MB=16.0 does nothing here"),
        ("gradient_scale_configs", {"scale_strategy": "avg", "scale_gradient": True}, "gradients are means over ranks"),
    ],
)
def test_what_does_nothing_says_so(name, value, says):
    strategy = fleet.DistributedStrategy()
    with pytest.warns(UserWarning, match=rf"DistributedStrategy\.{name}.* ?{says}"):
        setattr(strategy, name, value)
    kept = getattr(strategy, name)
    assert kept == value or kept.items() >= value.items()
    setattr(strategy, name, getattr(fleet.DistributedStrategy(), name))  # what it had says nothing


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("recompute_configs", {"refined_ops_patterns": [{"main_ops": ["matmul"]}]}, "use Strategy.recompute"),
        ("sharding_configs", {"mp_degree": 2}, "mp_degree=2 is not implemented; use hybrid_configs"),
    ],
)
def test_values_that_are_not_built_are_refused(name, value, says):
    with pytest.raises(NotImplementedError, match=rf"DistributedStrategy\.{name}: .*{says}"):
        setattr(fleet.DistributedStrategy(), name, value)
    with pytest.raises(ValueError, match=r"hybrid_configs has no \['tp_degree'\]"):
        fleet.DistributedStrategy().hybrid_configs = {"tp_degree": 2}


@pytest.mark.parametrize(
    ("degrees", "stage", "error", "says"),
    [
        ({}, 2, NotImplementedError, "stage=2 is implemented for pipelines; use .*group_sharded_parallel"),
        ({"pp_degree": 2, "sep_degree": 2}, 3, NotImplementedError, "stage=3 of a pipeline with sep_degree"),
        ({"pp_degree": 2}, 4, ValueError, "stage is 1, 2 or 3, not 4"),
    ],
)
def test_stages_of_zero_are_those_of_pipelines(degrees, stage, error, says):
    def program():
        configs = {"stage": stage}
        fleet.init(is_collective=True, strategy=strategy_of(
            hybrid_configs={"sharding_degree": 2, **degrees}, sharding_configs=configs))  # fmt: skip
        layers = [paddle.nn.Linear(2, 2), paddle.nn.Linear(2, 2)]
        fleet.distributed_model(fleet.meta_parallel.PipelineLayer(layers, degrees.get("pp_degree", 1)))

    with pytest.raises(error, match=says):
        run_ranks(program, int(np.prod([2, *degrees.values()])))


def test_lars_takes_the_place_of_momentum():
    """The rule by hand, on one parameter; without decay it is momentum. Raises for another optimizer."""
    lars = {"lars": True, "lars_configs": {"lars_coeff": 0.5, "lars_weight_decay": 0.1, "epsilon": 0.01}}

    def program():
        fleet.init(is_collective=True, strategy=strategy_of(**lars))
        layer = nn.Linear(3, 2, bias_attr=False)
        plain = paddle.optimizer.Momentum(0.2, 0.9, parameters=layer.parameters())
        optimizer = fleet.distributed_optimizer(plain)
        p, v = layer.weight.numpy().astype(np.float64), np.zeros((3, 2))
        for step in range(3):
            (layer(paddle.to_tensor(ROWS[step : step + 2, :3])) ** 2).sum().backward()
            g = layer.weight.grad.numpy().astype(np.float64)
            size, slope = np.linalg.norm(p), np.linalg.norm(g)
            v = 0.9 * v + 0.2 * 0.5 * size / (slope + 0.1 * size + 0.01) * (g + 0.1 * p)
            p = p - v
            optimizer.step()
            optimizer.clear_grad()
        np.testing.assert_allclose(layer.weight.numpy(), p, rtol=1e-5)
        return type(optimizer).__name__

    assert run_ranks(program, 1) == ["LarsMomentumOptimizer"]
    without = {"lars": True, "lars_configs": {"lars_weight_decay": 0.0}}
    make = lambda rate, parameters: paddle.optimizer.Momentum(rate, parameters=parameters)  # noqa: E731
    ((found, _, _),) = run_ranks(lambda: train(make, **without), 1)
    ((plain, _, _),) = run_ranks(lambda: train(make), 1)
    np.testing.assert_allclose(found, plain, rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError, match="makes LARS of Momentum, not of SGD"):
        run_ranks(lambda: train(**lars), 1)


@pytest.mark.parametrize("static", [False, True], ids=["eager", "captured"])
def test_gradients_travel_in_half_precision(static):
    """The mean of gradients that were rounded to float16."""

    def program(narrow):
        fleet.init(is_collective=True, strategy=strategy_of(fp16_allreduce=narrow))
        net = nn.Linear(4, 1, bias_attr=False)
        model = fleet.distributed_model(net)

        def step(x):
            model(x).sum().backward()
            return net.weight.grad

        x = paddle.to_tensor(ROWS[fleet.worker_index()])
        return (paddle.jit.to_static(step, full_graph=True) if static else step)(x).numpy().ravel()

    rounded = ROWS[:2].astype(np.float16).astype(np.float32).mean(0)
    found, other = run_ranks(lambda: program(True), 2)
    np.testing.assert_array_equal(found, other)
    np.testing.assert_array_equal(found, rounded.astype(np.float16).astype(np.float32))
    assert np.abs(run_ranks(lambda: program(False), 2)[0] - ROWS[:2].mean(0)).max() < 1e-7


def test_as_many_local_steps_as_the_loss_says():
    """After an average the loss is half of the first, so that 9 steps become 3 (more than the root of 4.5), then by a
    quarter of the rate 5."""

    def program():
        fleet.init(is_collective=True, strategy=strategy_of(
            adaptive_localsgd=True, adaptive_localsgd_configs={"init_k_steps": 9, "begin_step": 1}))  # fmt: skip
        layer = nn.Linear(1, 1, bias_attr=False)
        optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(0.0, parameters=layer.parameters()))
        with pytest.raises(TypeError, match=r"call optimizer\.minimize"):
            optimizer.step()
        rank, counts = fleet.worker_index(), []
        for step in range(14):
            optimizer._inner_opt.set_lr(0.25 if step > 10 else 1.0)
            optimizer.minimize(paddle.to_tensor((11.0 if step == 0 else 5.5) + (1.0, -1.0)[rank]))
            counts.append(optimizer._k_steps)
        return counts

    assert run_ranks(program, 2) == [[9] * 9 + [3] * 3 + [5] * 2] * 2


def test_layers_are_computed_again_in_the_backward_pass():
    """The named layer runs twice, with the results of once; what is no layer is refused."""
    calls = []

    def program(checkpoints):
        configs = {"checkpoints": checkpoints, "enable_offload": True}
        fleet.init(is_collective=True, strategy=strategy_of(recompute=True, recompute_configs=configs))
        net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.GELU()))
        net[1].register_forward_post_hook(lambda *_: calls.append(1))
        plain = net[1][2].register_forward_post_hook(lambda *_: calls.append(2))
        model = fleet.distributed_model(net)
        model(paddle.to_tensor(ROWS)).square().mean().backward()
        plain.remove()
        return [p.grad.numpy() for p in net.parameters()]

    paddle.seed(5)
    ((*found,),) = run_ranks(lambda: (paddle.seed(5), program(["1"]))[1], 1)
    assert calls == [2, 1, 2]
    ((*plain,),) = run_ranks(lambda: (paddle.seed(5), program(["0"]))[1], 1)
    for mine, expected in zip(found, plain, strict=True):
        np.testing.assert_array_equal(mine, expected)
    with pytest.raises(ValueError, match=r"names of the model's layers, not \['2'\]; there are \['0', '1', '1.0'"):
        run_ranks(lambda: program(["2"]), 1)


def test_products_are_rounded():
    """By the given bits, but for layers whose names have a pattern: as by hand."""

    def program(by_hand, **configs):
        settings = {} if by_hand else {"qat": True, "qat_configs": {"not_quant_pattern": ["head"], **configs}}
        fleet.init(is_collective=True, strategy=strategy_of(**settings))
        paddle.seed(4)
        net = nn.Sequential(("body", nn.Linear(4, 6)), ("act", nn.ReLU()), ("head", nn.Linear(6, 2)))
        optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(0.1, parameters=net.parameters()))
        if by_hand:
            net.head.skip_quant = True
            paddle.quantization.imperative.ImperativeQuantAware(
                weight_quantize_type="channel_wise_abs_max", weight_bits=3, onnx_format=True
            ).quantize(net)
        model = fleet.distributed_model(net)
        for _ in range(2):
            model(paddle.to_tensor(ROWS)).square().mean().backward()
            optimizer.step()
            optimizer.clear_grad()
        return [p.numpy() for p in net.parameters()]

    (found,) = run_ranks(lambda: program(False, weight_bits=3), 1)
    (expected,) = run_ranks(lambda: program(True), 1)
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert not np.array_equal(found[0], run_ranks(lambda: program(False), 1)[0][0])
    with pytest.raises(NotImplementedError, match="algo='lsq'; scales are largest absolute values"):
        run_ranks(lambda: program(False, algo="lsq"), 1)


def test_pruned_weights_stay_pruned():
    """Two of every four inputs of the weight are zero after each step of two ranks, whose states are split."""

    def program():
        sizes = {"sharding_degree": 2}
        fleet.init(is_collective=True, strategy=strategy_of(asp=True, hybrid_configs=sizes))
        paddle.seed(4)
        net = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 1))
        optimizer = fleet.distributed_optimizer(paddle.optimizer.AdamW(0.1, parameters=net.parameters()))
        masks = paddle.incubate.asp.prune_model(net)
        model = fleet.distributed_model(net)
        model(paddle.to_tensor(ROWS.reshape(2, 2, 8)[fleet.worker_index()])).square().mean().backward()
        optimizer.step()
        return [(p.numpy(), masks[p.name]) for p in net.parameters() if p.name in masks]

    for found in run_ranks(program, 2):
        assert len(found) == 2
        for weight, mask in found:
            assert mask.mean() == 0.5
            np.testing.assert_array_equal(weight != 0, mask != 0)


def test_the_largest_entries_of_gradients_are_exchanged():
    """Each rank sends a hundredth of its entries, and what stays behind adds up: of zero gradients the rest is applied
    in the end. Before the first compressed step, and for what is small, there is momentum."""
    gradients = np.random.default_rng(0).standard_normal((2, 16384)).astype(np.float32)

    def program():
        configs = {"rampup_begin_step": 1, "rampup_step": 2, "sparsity": [0.99, 0.5]}
        fleet.init(is_collective=True, strategy=strategy_of(dgc=True, dgc_configs=configs))
        layer = nn.Linear(16384, 1)
        model = fleet.distributed_model(layer)
        layer.weight.set_value(np.zeros((16384, 1), np.float32))
        plain = paddle.optimizer.Momentum(1.0, 0.0, parameters=layer.parameters())
        optimizer, seen = fleet.distributed_optimizer(plain), []
        for factor in (1, 1, 0, 0):
            model(paddle.to_tensor(factor * gradients[fleet.worker_index()][None])).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
            seen.append(layer.weight.numpy().ravel())
        return seen, layer.bias.numpy()

    (seen, bias), (others, _) = run_ranks(program, 2)
    np.testing.assert_array_equal(seen, others)
    mean = gradients.mean(0)
    np.testing.assert_allclose(seen[0], -mean, rtol=1e-6)
    moved = seen[1] != seen[0]
    largest = np.abs(gradients) >= np.sort(np.abs(gradients), axis=1)[:, -164:][:, :1]
    np.testing.assert_array_equal(moved, largest.any(0))
    np.testing.assert_allclose(seen[3], -2 * mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(bias, -4.0, rtol=1e-6)
    with pytest.raises(TypeError, match="for Momentum, not SGD"):
        run_ranks(lambda: train(dgc=True), 1)


def test_what_ranks_add_up_is_clipped():
    """To the norm divided by the root of the number of ranks."""

    def program():
        fleet.init(is_collective=True, strategy=strategy_of(dgc=True, dgc_configs={"sparsity": [0.0]}))
        layer = nn.Linear(16384, 1, bias_attr=False)
        model = fleet.distributed_model(layer)
        layer.weight.set_value(np.zeros((16384, 1), np.float32))
        plain = paddle.optimizer.Momentum(1.0, 0.0, parameters=layer.parameters(), grad_clip=nn.ClipGradByNorm(2.0))
        model(paddle.full([1, 16384], 3.0 - fleet.worker_index())).sum().backward()
        fleet.distributed_optimizer(plain).step()
        plain._grad_clip = nn.ClipGradByGlobalNorm(1.0)
        with pytest.raises(TypeError, match="dgc clips by ClipGradByNorm, not ClipGradByGlobalNorm"):
            fleet.distributed_optimizer(plain)
        return np.linalg.norm(layer.weight.numpy())

    np.testing.assert_allclose(run_ranks(program, 2), 2**0.5, rtol=1e-5)


def test_strategies_are_written_and_read(tmp_path):
    """In the text format of protocol buffers, that of Paddle included."""
    file = str(tmp_path / "strategy.prototxt")
    amp, lars = {"custom_white_list": ['a"b\n', "é"]}, {"epsilon": 1e-7}
    strategy_of(
        dgc=True, amp=True, amp_configs=amp, lars_configs=lars, hybrid_configs={"mp_degree": 2}
    ).save_to_prototxt(file)
    text = (tmp_path / "strategy.prototxt").read_text()
    assert 'custom_white_list: "a\\"b\\n"' in text
    assert "sparsity" not in text  # as ever
    read = fleet.DistributedStrategy()
    read.load_from_prototxt(file)
    assert (read.dgc, read.amp, read.lars, read.hybrid_configs["mp_degree"]) == (True, True, False, 2)
    assert read.amp_configs["custom_white_list"] == amp["custom_white_list"]
    assert read.lars_configs["epsilon"] == 1e-7
    (tmp_path / "strategy.prototxt").write_text(
        """# by hand
        localsgd: true, localsgd_configs < k_steps: 0x4; begin_step: 2 >
        lamb_configs { exclude_from_weight_decay: ["a" 'b', "\\303\\251"] lamb_weight_decay: 1.5f }
        """, encoding="utf-8",
    )  # fmt: skip
    read.load_from_prototxt(file)
    assert (read.localsgd, read.localsgd_configs) == (True, {"k_steps": 4, "begin_step": 2})
    assert read.lamb_configs == {"exclude_from_weight_decay": ["ab", "é"], "lamb_weight_decay": 1.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("amp: true\ndgc: [", "the text ends"),
        ("amp\n= true", "line 2: '= true' is no token"),
        ("amp_configs { init_loss_scaling: 1", "expected '}', but the text ends"),
        ("lars_configs { coefficient: 1 }", r"lars_configs has no \['coefficient'\]"),
        ("amp true", "line 1: expected a value, got 'true'"),
    ],
)
def test_a_wrong_text_is_refused_with_its_line(tmp_path, text, message):
    (tmp_path / "wrong").write_text(text)
    with pytest.raises(ValueError, match=message):
        fleet.DistributedStrategy().load_from_prototxt(str(tmp_path / "wrong"))


def test_small_helpers_of_scripts(tmp_path):
    """``fleet.util`` over ranks, and ``LocalFS``."""

    def program():
        fleet.init(is_collective=True)
        util, rank = fleet.util, fleet.worker_index()
        util.barrier()
        shares = util.get_heter_file_shard(["a", "b", "c"])
        assert shares == util.get_file_shard(["a", "b", "c"])
        env = paddle.distributed.ParallelEnv()
        assert (env.local_rank, env.nranks, env.nrings, env.device_type) == (rank, env.world_size, 1, "cpu")
        assert env.pg_timeout == 1_800_000
        return util.all_reduce([rank, 2], "max").tolist(), util.all_gather(rank), shares

    assert run_ranks(program, 2) == [([1, 2], [0, 1], ["a", "b"]), ([1, 2], [0, 1], ["c"])]

    def queries():
        job = fleet.Fleet().init(is_collective=True)
        assert fleet.get_hybrid_communicate_group() is job.get_hybrid_communicate_group()
        assert job.get_hybrid_parallel_topology().world_size() == fleet.nranks() == 2
        with pytest.raises(RuntimeError, match=r"call fleet.distributed_optimizer\(optimizer\) first"):
            job.minimize(paddle.ones([]))
        with pytest.raises(RuntimeError, match=r"what static.amp.decorate makes"):
            job.amp_init(None)
        with pytest.raises(ValueError, match="comm_type is one of"):
            job.collective_perf("scan")
        kinds = ["allreduce", "reduce", "broadcast", "allgather", "reduce_scatter"]
        assert all(fleet.collective_perf(kind, 2, {64: 1e9})[64] > 0 for kind in kinds)
        assert (job.is_server(), job.is_coordinator(), job.server_num()) == (False, False, 0)
        return job.world_device_ids(), fleet.rank(), job.all_reduce(1.5).tolist()

    assert [x[1:] for x in run_ranks(queries, 2)] == [(0, 3.0), (1, 3.0)]
    with pytest.raises(NotImplementedError, match=r"fleet\.Fleet\.init_server is not implemented: it is for parameter"):
        fleet.Fleet().init_server()
    files, top = fleet.utils.LocalFS(), str(tmp_path)
    files.mkdirs(f"{top}/one/two")
    files.touch(f"{top}/one/x")
    assert files.ls_dir(f"{top}/one") == (["two"], ["x"])
    with pytest.raises(FileExistsError):
        files.mv(f"{top}/one/x", f"{top}/one/two")
    files.mv(f"{top}/one/x", f"{top}/y")
    files.delete(f"{top}/one")
    assert (files.is_file(f"{top}/y"), files.is_exist(f"{top}/one"), files.list_dirs(top)) == (True, False, [])
    with pytest.raises(NotImplementedError, match="Hadoop"):
        fleet.utils.HDFSClient("", {})


def test_groups_are_shut_and_opened_again():
    def program():
        settings = dist.create_nccl_config({"nchannels": 4})
        group, other = dist.new_group([0, 1], nccl_config=settings), dist.new_group([1, 2])
        dist.shutdown_process_group()
        if group.is_member():
            with pytest.raises(ValueError, match=r"was shut down; restart_process_group\(\) opens it again"):
                dist.all_reduce(paddle.ones([2]), group=group)
        dist.restart_process_group(group)
        dist.restart_process_group()
        x = paddle.ones([1])
        if group.is_member():
            dist.all_reduce(x, group=group)
        with pytest.raises(ValueError, match="cannot be shut down"):
            dist.shutdown_process_group(dist.get_group(0))
        return float(x), other.is_member()

    assert run_ranks(program, 3) == [(2.0, False), (2.0, True), (1.0, True)]
    with pytest.raises(ValueError, match=r"there is no \['channels'\]"):
        dist.create_nccl_config({"channels": 4})


def test_operations_of_static_programs_are_split():
    """Sums of all rows and all columns on each rank; collectives run in static programs."""
    constant = lambda value: nn.initializer.Constant(value)  # noqa: E731

    def program():
        main, start = paddle.static.Program(), paddle.static.Program()
        paddle.enable_static()
        try:
            with paddle.static.program_guard(main, start):
                x, rows = paddle.static.data("x", [2, 4]), paddle.static.data("rows", [3], "int64")
                found = [
                    dist.split(x, (4, 6), "linear", 1, 2, weight_attr=constant(1.0)),
                    dist.split(x, (4, 6), "linear", 0, 2, weight_attr=constant(2.0)),
                    dist.split(rows, (4, 6), "embedding", 0, 2, weight_attr=constant(3.0)),
                ]
                with pytest.raises(ValueError, match="num_partitions is 3, but there are 2 ranks"):
                    dist.split(x, (4, 6), "linear", 0, 3)
            executor = paddle.static.Executor()
            executor.run(start)
            feed = {"x": np.ones((2, 4), np.float32), "rows": np.array([0, 2, 3])}
            return [(y.shape, set(y.ravel().tolist())) for y in executor.run(main, feed=feed, fetch_list=found)]
        finally:
            paddle.disable_static()

    assert run_ranks(program, 2) == [[((2, 6), {4.0}), ((2, 6), {8.0}), ((3, 6), {3.0})]] * 2
    with pytest.raises(ValueError, match="use ColumnParallelLinear"):
        dist.split(paddle.ones([2, 4]), (4, 6), "linear")
