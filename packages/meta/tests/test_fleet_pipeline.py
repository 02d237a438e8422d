"""Scripts that train a ``PipelineLayer`` by ``fleet``: the losses and parameters of one process."""

from contextlib import nullcontext
from functools import partial
from itertools import combinations, pairwise

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed import debug, fleet
from argosy.distributed.fleet import meta_parallel as parts
from argosy_autoparallel.schedule import InstructionError, Update

run_ranks = partial(debug.run_ranks, timeout=600)
STEPS, COUNT, ROWS, WIDTH = 3, 4, 8, 6


def heads(layer, x):
    return paddle.matmul(x, layer.weight, transpose_y=True)


def described(dropout=0.2):
    """A table that begins and ends the model, and layers between."""
    return [
        parts.SharedLayerDesc("table", nn.Embedding, None, "weight", 16, WIDTH),
        *[parts.LayerDesc(nn.Linear, WIDTH, WIDTH) for _ in range(4)],
        parts.LayerDesc(nn.Dropout, dropout),
        nn.functional.gelu,
        parts.SharedLayerDesc("table", nn.Embedding, heads, "weight", 16, WIDTH),
    ]


def loss_of(logits, labels):
    return nn.functional.cross_entropy(logits, labels)


def batches():
    rng = np.random.default_rng(0)
    return [[paddle.to_tensor(rng.integers(0, 16, (ROWS,))) for _ in range(2)] for _ in range(STEPS)]


def prepared(stages, loss_fn=loss_of, dropout=0.2, lazy=False, **options):
    with paddle.LazyGuard() if lazy else nullcontext():
        model = parts.PipelineLayer(described(dropout), num_stages=stages, loss_fn=loss_fn, **options)
    paddle.seed(7)
    rate = paddle.optimizer.lr.StepDecay(0.1, 2)
    return model, paddle.optimizer.Momentum(rate, parameters=model.parameters()), rate


def one_process(dropout=0.2):
    model, optimizer, rate = prepared(1, dropout=dropout)
    losses = []
    for x, y in batches():
        total = 0.0
        for i in range(COUNT):
            each = slice(i * ROWS // COUNT, (i + 1) * ROWS // COUNT)
            loss = loss_of(model(x[each]), y[each])
            (loss / COUNT).backward()
            total += float(loss) / COUNT
        optimizer.step()
        optimizer.clear_grad()
        rate.step()
        losses.append(total)
    return losses, {name: p.numpy() for name, p in model.named_parameters()}


def train(degree, copies=1, schedule="1F1B", scaler=None, **options):
    """A script as Paddle's users write it."""
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"dp_degree": copies, "mp_degree": 1, "pp_degree": degree}
    strategy.pipeline_configs = {
        "accumulate_steps": COUNT, "micro_batch_size": ROWS // COUNT // copies, "schedule_mode": schedule
    }  # fmt: skip
    fleet.init(is_collective=True, strategy=strategy)
    groups = fleet.get_hybrid_communicate_group()
    model, optimizer, rate = prepared(degree, **options)
    model, optimizer = fleet.distributed_model(model), fleet.distributed_optimizer(optimizer)
    scaler = None if scaler is None else fleet.distributed_scaler(paddle.amp.GradScaler(**scaler))
    losses = []
    for x, y in batches():
        if len(losses) == 2:
            made = len(model._pipeline._steps)
        order = np.arange(ROWS).reshape(COUNT, copies, -1).transpose(1, 0, 2).reshape(copies, -1)
        mine = order[groups.get_data_parallel_rank()]
        losses.append(float(model.train_batch([x[mine], y[mine]], optimizer, lr_scheduler=rate, scaler=scaler)))
    assert len(model._pipeline._steps) == made  # no batch but the first ones is captured
    held = {n: p._local_value().numpy() for n, p in model._layers.named_parameters() if p.payload.is_held}
    return losses, held, groups.stage_id


CASES = {
    "one stage": ({"degree": 1}, 1), "copies of one stage": ({"degree": 1, "copies": 2}, 2),
    "two stages": ({"degree": 2}, 2), "four stages": ({"degree": 4}, 4), "copies": ({"degree": 2, "copies": 2}, 4),
    "virtual stages": ({"degree": 2, "num_virtual_pipeline_stages": 2}, 2),
    "by class": ({"degree": 2, "seg_method": "layer:Linear"}, 2),
    "by numbers": ({"degree": 2, "seg_method": [0, 2, 8]}, 2),
    "filled by one stage": ({"degree": 1, "lazy": True}, 1),
    "filled by stages": ({"degree": 2, "copies": 2, "lazy": True}, 4),
    "scaled": ({"degree": 2, "scaler": {"init_loss_scaling": 1024.0}}, 2),
    "recomputed": ({"degree": 2, "recompute_interval": 3}, 2),
    "ZBH1, recomputed": ({"degree": 2, "schedule": "ZBH1", "recompute_interval": 2}, 2),
    "ZBH1": ({"degree": 2, "schedule": "ZBH1"}, 2), "DualPipeV": ({"degree": 2, "use_dualpipev": True}, 2),
}  # fmt: skip


@pytest.fixture(scope="module")
def expected():
    return run_ranks(one_process, 1)[0]


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("case", CASES)
def test_scripts_of_fleet_train_pipelines(expected, case):
    """Losses, parameters and the schedule of the rate; the table is on the first stage and on the last, which
    DualPipeV has on one rank."""
    options, ranks = CASES[case]
    results = run_ranks(lambda: train(**options), ranks)
    for losses, held, _ in results:
        np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
        for name, value in held.items():
            np.testing.assert_allclose(value, expected[1][name], rtol=1e-4, atol=1e-6, err_msg=name)
    assert set().union(*(held for _, held, _ in results)) == expected[1].keys()
    table = "shared_layers.table.weight"
    last = 0 if options.get("use_dualpipev") else max(stage for _, _, stage in results)
    assert all((table in held) == (stage in (0, last)) for _, held, stage in results)


def test_copies_of_one_stage_train_eagerly(expected):
    """Called as other models are: gradients are means over the copies."""

    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"dp_degree": 2}
        fleet.init(is_collective=True, strategy=strategy)
        net = nn.Linear(2, 1)
        model = fleet.distributed_model(parts.PipelineLayer([net], 1))
        assert type(model) is parts.NoPipelineParallel
        model(paddle.full([1, 2], float(fleet.worker_index()))).sum().backward()
        return net.weight.grad.numpy().ravel().tolist()

    assert run_ranks(program, 2) == [[0.5, 0.5]] * 2


def test_the_list_of_a_step_ends_with_the_update():
    """What the update raises is named as that of any other instruction is, on each rank; no gradient is lost."""

    class Unsound(paddle.optimizer.SGD):
        def step(self):
            raise ArithmeticError("this rule has no step")

    def body():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2}
        strategy.pipeline_configs = {"accumulate_steps": COUNT, "micro_batch_size": ROWS // COUNT}
        fleet.init(is_collective=True, strategy=strategy)
        model, *_ = prepared(2)
        unsound = fleet.distributed_optimizer(Unsound(0.1, parameters=model.parameters()))
        model = fleet.distributed_model(model)
        place = (
            rf"rank {dist.get_rank()}, instruction \d+: update update\[0\].*: ArithmeticError: this rule has no step"
        )
        with pytest.raises(InstructionError, match=place):
            model.train_batch(batches()[0], unsound)
        (step,) = model._pipeline._steps.values()
        assert [i for i in step.own if isinstance(i, Update)] == [step.own.instructions[-1]]
        assert all(p.grad is not None for p in model._layers.parameters() if not p.is_dist() or p.payload.is_held)

    run_ranks(body, 2)


def test_recomputed_regions_keep_what_goes_into_them():
    """Of what the layers of a region compute nothing waits for the backward pass: less is held at once."""

    def program(interval):
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2}
        strategy.pipeline_configs = {"accumulate_steps": COUNT, "micro_batch_size": ROWS // COUNT}
        fleet.init(is_collective=True, strategy=strategy)
        deep = [parts.LayerDesc(kind, *given) for _ in range(4) for kind, given in ((nn.Linear, (WIDTH, 64)),
                (nn.GELU, ()), (nn.Dropout, (0.2,)), (nn.Linear, (64, WIDTH)))]  # fmt: skip
        net = parts.PipelineLayer(deep, 2, loss_fn=nn.MSELoss(), recompute_interval=interval)
        model = fleet.distributed_model(net)
        x = paddle.ones([ROWS, WIDTH])
        model.forward_backward_pipeline([x, x])
        (step,) = model._pipeline._steps.values()
        return sum(step.verified.peaks[1].values.values())  # of rank 0 the input wants no gradient

    without, recomputed = (run_ranks(partial(program, interval), 2)[0] for interval in (0, 8))
    assert recomputed < 0.3 * without


@pytest.mark.parametrize(("schedule", "chunks"), [("1F1B", 1), ("ZBH1", 1), ("VPP", 2)])
def test_hooks_are_called_around_passes(schedule, chunks):
    """By location, of this model or of all, and by the number of a pass; not where nobody trains."""
    where = parts.PipelineParallelMicroStepLocations

    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2}
        strategy.pipeline_configs = {
            "accumulate_steps": COUNT, "micro_batch_size": ROWS // COUNT, "schedule_mode": schedule
        }  # fmt: skip
        fleet.init(is_collective=True, strategy=strategy)
        layers = [nn.Linear(WIDTH, WIDTH) for _ in range(4)]
        net = parts.PipelineLayer(layers, 2, loss_fn=nn.MSELoss(), num_virtual_pipeline_stages=chunks)
        seen, numbers = [], []
        parts.register_global_pipeline_parallel_hook(
            where.FORWARD_BEGIN, lambda step_id, input_tensor: seen.append(("begin", step_id, input_tensor.shape))
        )
        model = fleet.distributed_model(net)
        model.register_hook(where.FORWARD_END, lambda output_tensor, **_: seen.append("end"))
        model.register_hook(where.BACKWARD_BEGIN, lambda step_id, output_tensor_grad: seen.append(("back", step_id)))
        model.register_hook(where.BACKWARD_END, lambda **given: seen.append(sorted(given)))
        assert model.forward_pipeline_parallel_hook_capacity == model.backward_pipeline_parallel_hook_capacity
        last = model.forward_pipeline_parallel_hook_capacity - 1
        for number in (0, last):
            model.register_forward_pipeline_parallel_hook(number, numbers.append)
            model.register_backward_pipeline_parallel_hook(number, numbers.append)
        with pytest.raises(ValueError, match=f"hook_id {last + 1} is none of {last + 1}"):
            model.register_forward_pipeline_parallel_hook(last + 1, numbers.append)
        with pytest.raises(ValueError, match="no location 'forward'"):
            model.register_hook("forward", print)
        x = paddle.ones([ROWS, WIDTH])
        model.eval_batch([x, x])
        assert not seen
        model.forward_backward_pipeline([x, x])
        return seen, numbers, last + 1

    for seen, numbers, passes in run_ranks(program, 2):
        assert passes == COUNT * chunks
        begun = [each[1] for each in seen if each[0] == "begin"]
        assert sorted(begun) == sorted([*range(COUNT)] * chunks)
        assert seen[:2] == [("begin", 0, [ROWS // COUNT, WIDTH]), "end"]
        assert sorted(each[1] for each in seen if each[0] == "back") == sorted(begun)
        assert seen.count(["input_tensor_grad", "output_tensor_grad", "step_id"]) == passes
        assert sorted(numbers) == [0, 0, passes - 1, passes - 1]


def test_stages_of_a_rank_are_layers():
    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2}
        fleet.init(is_collective=True, strategy=strategy)
        layers = [nn.Linear(2, 2) for _ in range(4)]
        model = parts.PipelineLayer(layers, 2, num_virtual_pipeline_stages=2)
        one = parts.PipelineLayer(layers, 2)
        chunks = model.get_model_chunks()
        x = paddle.ones([1, 2])
        np.testing.assert_array_equal(chunks[1](x).numpy(), model(x, chunk_id=1).numpy())
        with pytest.raises(TypeError, match="Linear has no build_schedule_node"):
            model.get_schedule_chunk(0)
        return [chunk.parameters()[0] is layers[i].weight for chunk, i in zip(chunks, (0, 2), strict=True)], (
            one.get_model_chunks()
        )

    assert run_ranks(program, 2) == [([True, True], None), ([False, False], None)]


def test_an_overflow_skips_the_step_on_every_rank():
    """The scale shrinks, parameters stay."""

    def program():
        steep = lambda logits, labels: loss_of(logits, labels) * 1e6  # noqa: E731
        losses, held, _ = train(2, scaler={"init_loss_scaling": 1e38}, loss_fn=steep)
        return losses, held

    before = {name: p.numpy() for name, p in prepared(1)[0].named_parameters()}
    for losses, held in run_ranks(program, 2):
        assert np.isfinite(losses).all()
        for name, value in held.items():
            np.testing.assert_array_equal(value, before[name])


def test_batches_are_evaluated():
    """The mean loss, or outputs, without dropout."""

    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2}
        strategy.pipeline_configs = {"accumulate_steps": COUNT, "micro_batch_size": ROWS // COUNT}
        fleet.init(is_collective=True, strategy=strategy)
        model = fleet.distributed_model(prepared(2)[0])
        x, y = batches()[0]
        return float(model.eval_batch([x, y], True)), model.eval_batch([x, y]).numpy()

    model, _, _ = prepared(1)
    model.eval()
    x, y = batches()[0]
    for loss, outputs in run_ranks(program, 2):
        np.testing.assert_allclose(outputs, model(x).numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(loss, float(loss_of(model(x), y)), rtol=1e-5)


def test_losses_of_all_functions_are_given():
    """That of ``loss_fn_idx`` is trained; in the order of the functions, whole or of each microbatch."""
    functions = [lambda out, y: (out - y).abs().mean(), nn.MSELoss()]

    def program(copies):
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2, "sharding_degree": copies}
        strategy.pipeline_configs = {"accumulate_steps": 2, "micro_batch_size": ROWS // 2 // copies}
        fleet.init(is_collective=True, strategy=strategy)
        layers = [nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)]
        net = parts.PipelineLayer(layers, 2, loss_fn=functions)
        for layer in layers:
            layer.weight.set_value(np.eye(WIDTH, dtype=np.float32))
            layer.bias.set_value(np.zeros(WIDTH, np.float32))
        model, place = fleet.distributed_model(net), fleet.get_hybrid_communicate_group().get_sharding_parallel_rank()
        optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(0.5, parameters=model.parameters()))
        x = paddle.to_tensor(
            np.split(np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH) / 16, copies)[place]
        )
        evaluated = model.eval_batch([x, x * 0], True)
        losses = model.train_batch([x, x * 0], optimizer, loss_fn_idx=1)
        each = model.train_batch([x, x * 0], optimizer, loss_fn_idx=0, return_micro_batch_loss=True)
        with pytest.raises(ValueError, match="no loss_fn of number 2"):
            model.train_batch([x, x * 0], optimizer, loss_fn_idx=2)
        return [float(x) for x in evaluated], [float(x) for x in losses], [list(x.shape) for x in each]

    values = np.arange(ROWS * WIDTH) / 16
    for copies in (1, 2):
        for evaluated, losses, each in run_ranks(partial(program, copies), 2 * copies):
            np.testing.assert_allclose(evaluated, [values.mean(), (values**2).mean()], rtol=1e-5)
            np.testing.assert_allclose(losses, evaluated, rtol=1e-5)
            assert each == [[2], [2]]


def test_lazy_layers_are_filled_by_their_stages():
    """With the values that they would have had; the generator goes on as it was."""
    whole = run_ranks(lambda: [p.numpy() for p in parts.PipelineLayer(described(), num_stages=1).parameters()], 1)[0]

    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2}
        fleet.init(is_collective=True, strategy=strategy)
        with paddle.LazyGuard():
            net = parts.PipelineLayer(described(), num_stages=2, loss_fn=loss_of)
        paddle.seed(3)
        assert not any(p._is_initialized() for p in net.whole_parameters())
        fleet.distributed_model(net)
        own = {id(p) for p in net.parameters()}
        numbers = [number for number, p in enumerate(net.whole_parameters()) if id(p) in own]
        for number, p in zip(numbers, net.parameters(), strict=True):
            np.testing.assert_array_equal(p.numpy(), whole[number])
        return float(paddle.rand([])), numbers

    (first, one), (second, other) = run_ranks(program, 2)
    assert first == second
    assert sorted({*one, *other}) == [*range(len(whole))]
    assert len(one) + len(other) == len(whole) + 1  # the table is on both


def test_a_rank_has_its_stages_parameters():
    """In the order of its layers, the last stage of five layers with three; the optimizer's groups by what each rank
    says, and hooks of gradients, which all ranks have, act on every microbatch's. Labels of one in a tuple are one."""

    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2}
        strategy.pipeline_configs = {"accumulate_steps": 2, "micro_batch_size": 1}
        fleet.init(is_collective=True, strategy=strategy)
        layers = [nn.Linear(1, 1) for _ in range(5)]
        net = parts.PipelineLayer(layers, 2, loss_fn=lambda out, labels: (out * labels[0]).mean())
        rank = fleet.worker_index()
        assert net.segment_parts == [0, 2, 5]
        assert [p is q for p, q in zip(net.parameters()[::2], [x.weight for x in layers[2 * rank :]], strict=False)]
        assert len(net.parameters()) == (4, 6)[rank]
        assert len(net.whole_parameters()) == 10
        for p in net.whole_parameters():
            p.set_value(np.ones(p.shape, np.float32) * (p.ndim == 2))
            p.register_hook(lambda gradient: gradient * 2)
        model = fleet.distributed_model(net)
        weights = [p for p in model.parameters() if p.ndim == 2]
        biases = [p for p in model.parameters() if p.ndim == 1]
        groups = [{"params": weights}, {"params": biases, "learning_rate": 0.0}]
        optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(0.25, parameters=groups))
        assert [len(group.params) for group in optimizer._inner_opt._groups] == [5, 5]
        x = paddle.ones([2, 1])
        model.train_batch([x, (x,)], optimizer)
        return [float(p._local_value()) for p in model.parameters()]

    first, last = run_ranks(program, 2)
    assert first + last == [0.5, 0.0] * 5


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_stages": 9}, ValueError, "8 layers do not make 9 stages"),
        ({"num_stages": 2, "seg_method": "layer:Conv2D"}, ValueError, "0 layers of class Conv2D do not make 2 stages"),
        ({"num_stages": 3, "seg_method": [0, 8]}, ValueError, "is not 4 increasing numbers from 0 to 8"),
        ({"num_stages": 2, "seg_method": "even"}, ValueError, "seg_method is 'uniform'"),
        ({}, ValueError, "give num_stages or topology"),
    ],
)
def test_models_that_cannot_be_cut_are_named(options, error, message):
    with pytest.raises(error, match=message):
        parts.PipelineLayer(described(), **options)


def test_stages_cost_alike():
    """The most parameters of a stage are the least that there can be, by trying all cuts."""
    widths = [4, 16, 2, 32, 8, 8, 1]
    layers = [parts.LayerDesc(nn.Linear, *pair) for pair in pairwise(widths)]
    described_ = [parts.LayerDesc(nn.Embedding, 3, 4), *layers, nn.functional.relu]
    costs = [12, *(i * o + o for i, o in pairwise(widths)), 0]
    for stages in (1, 2, 3, 8):
        made = parts.PipelineLayer(described_, num_stages=stages, seg_method="cost").segment_parts

        def most(cuts):
            return max(sum(costs[a:b]) for a, b in pairwise([0, *cuts, len(costs)]))

        assert most(made[1:-1]) == min(map(most, combinations(range(1, len(costs)), stages - 1)))
    with pytest.raises(ValueError, match="8 layers do not make 9 stages"):
        parts.PipelineLayer(described_, num_stages=9, seg_method="cost")


def test_a_shared_weight_is_in_a_stage():
    """Before the first instruction: a name that the layer does not have, and a weight that nobody reads."""
    with pytest.raises(ValueError, match=r"SharedLayerDesc 'table': Embedding has no \['wieght'\]"):
        parts.PipelineLayer([parts.SharedLayerDesc("table", nn.Embedding, None, "wieght", 4, 4), nn.Linear(4, 4)], 2)

    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2}
        fleet.init(is_collective=True, strategy=strategy)
        layers = [parts.SharedLayerDesc("table", nn.Linear, lambda layer, x: x, "weight", 4, 4), nn.Linear(4, 4)]
        layers.insert(0, nn.Linear(4, 4))
        model = fleet.distributed_model(parts.PipelineLayer(layers, 2, loss_fn=nn.MSELoss()))
        model.forward_backward_pipeline([paddle.ones([2, 4]), paddle.ones([2, 4])])

    with pytest.raises(ValueError, match=r"shared weights \['linear_\d+.w_0'\] are in no stage"):
        run_ranks(program, 2)


@pytest.mark.parametrize("shards", [1, 2])
def test_passes_without_an_update_add_their_gradients(expected, shards):
    """``forward_backward_pipeline``, then the optimizer's own step: the losses of ``train_batch``. Two of them before
    a step add up. Where states are split over ranks each has the gradients of its parameters; masks are others then."""
    dropout = 0.2 if shards == 1 else 0.0

    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"dp_degree": 1, "pp_degree": 2, "sharding_degree": shards}
        strategy.pipeline_configs = {"accumulate_steps": COUNT, "micro_batch_size": ROWS // COUNT // shards}
        fleet.init(is_collective=True, strategy=strategy)
        model, optimizer, rate = prepared(2, dropout=dropout)
        model = fleet.distributed_model(model)
        optimizer = fleet.distributed_optimizer(optimizer)
        losses, norms = [], []
        place = fleet.get_hybrid_communicate_group().get_sharding_parallel_rank()
        mine = np.arange(ROWS).reshape(COUNT, shards, -1)[:, place].ravel()
        for x, y in batches():
            x, y = x[mine], y[mine]
            each = model.forward_backward_pipeline([x, y], return_micro_batch_loss=True)
            assert list(each.shape) == [COUNT]
            losses.append(float(each.sum()))
            optimizer.step()
            optimizer.clear_grad()
            rate.step()
        last = fleet.get_hybrid_communicate_group().get_stage_id()
        schedule = model.forward_backward_pipeline(None, static_scheduler=True)
        assert schedule == ("f0;f1;b0;f2;b1;f3;b2;b3;", "f0;b0;f1;b1;f2;b2;f3;b3;")[last]
        for count in (1, 2):
            for _ in range(count):
                paddle.seed(3)
                model.forward_backward_pipeline([x, y])
            held = [p for p in model._layers.parameters() if p.grad is not None and p.payload.is_held]
            norms.append(sum(float(np.abs(p.grad._local_value().numpy()).sum()) for p in held))
            optimizer.clear_grad()
        return losses, norms

    wanted = expected[0] if shards == 1 else run_ranks(lambda: one_process(dropout), 1)[0][0]
    for losses, norms in run_ranks(program, 2 * shards):
        np.testing.assert_allclose(losses, wanted, rtol=1e-5)
        assert norms[0] > 0
        assert norms[1] == pytest.approx(2 * norms[0])


def test_trainers_that_update_themselves_give_lists_of_microbatches(expected):
    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2}
        strategy.pipeline_configs = {"accumulate_steps": COUNT, "micro_batch_size": ROWS // COUNT}
        fleet.init(is_collective=True, strategy=strategy)
        model, optimizer, rate = prepared(2)
        model, optimizer = fleet.distributed_model(model), fleet.distributed_optimizer(optimizer)
        losses = []
        for x, y in batches():
            data = model._prepare_training([x.split(COUNT), y.split(COUNT)], optimizer, rate)
            losses.append(float(model.forward_backward_pipeline(data)))
            assert not optimizer._dp_enable
            assert not optimizer._sharding_enable
            optimizer._step(model.parameters())
            optimizer.clear_grad()
            rate.step()
        with pytest.raises(ValueError, match=f"1 microbatches for accumulate_steps {COUNT}"):
            model.forward_backward_pipeline([[x], [y]])
        return losses

    for losses in run_ranks(program, 2):
        np.testing.assert_allclose(losses, expected[0], rtol=1e-5)


def test_stages_take_the_first_ones_values_of_shared_layers():
    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2}
        fleet.init(is_collective=True, strategy=strategy)
        model, _, _ = prepared(2)
        table = model.shared_layers["table"].weight
        table.set_value(table.numpy() + fleet.worker_index())
        model._synchronize_shared_weights()
        return table.numpy()

    first, second = run_ranks(program, 2)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("other", [1, 4])
def test_layers_are_saved_one_by_one(tmp_path, other):
    """By two stages after a step, read by another number of stages before theirs: the losses go on alike."""

    def start(degree):
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": degree}
        strategy.pipeline_configs = {"accumulate_steps": COUNT, "micro_batch_size": ROWS // COUNT}
        fleet.init(is_collective=True, strategy=strategy)
        model, optimizer, _ = prepared(degree, dropout=0.0)
        return fleet.distributed_model(model), fleet.distributed_optimizer(optimizer)

    (first, second), *_ = batches()

    def program():
        model, optimizer = start(2)
        model.train_batch([first, second], optimizer)
        model._layers.save_state_dict(str(tmp_path))
        own = model.is_pipeline_first_stage(), model.is_pipeline_last_stage()
        return own, float(model.eval_batch([first, second], True))

    def again():
        model, _ = start(other)
        layers = getattr(model, "_layers", model)
        layers.set_state_dir(str(tmp_path))
        if other == 1:
            return float(loss_of(layers(first), second))
        return float(model.eval_batch([first, second], True))

    results = run_ranks(program, 2)
    assert [own for own, _ in results] == [(True, False), (False, True)]
    expected = results[0][1]
    for loss in run_ranks(again, other):
        assert loss == pytest.approx(expected, rel=1e-5)
    with pytest.raises(FileNotFoundError, match="no file of layer 0"):
        parts.PipelineLayer(described(0.0), num_stages=1).set_state_dir(str(tmp_path / "none"))


def test_a_stage_saves_its_own_states_and_goes_on_from_them(tmp_path):
    """Of the model and the optimizer; together they are those of all parameters."""

    def start():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2}
        strategy.pipeline_configs = {"accumulate_steps": COUNT, "micro_batch_size": ROWS // COUNT}
        fleet.init(is_collective=True, strategy=strategy)
        model, optimizer, rate = prepared(2, dropout=0.0)
        return fleet.distributed_model(model), fleet.distributed_optimizer(optimizer), rate

    first, second = batches()[:2]

    def program():
        model, optimizer, rate = start()
        model.train_batch([*first], optimizer, rate)
        states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        for name, each in states.items():
            paddle.save(each, str(tmp_path / f"{name}.{fleet.worker_index()}"))
        loss = float(model.train_batch([*second], optimizer, rate))
        return loss, set(states["model"]), {k for k in states["optimizer"] if "velocity" in k}

    def again():
        model, optimizer, rate = start()
        for name, each in (("model", model), ("optimizer", optimizer)):
            each.set_state_dict(paddle.load(str(tmp_path / f"{name}.{fleet.worker_index()}")))
        return float(model.train_batch([*second], optimizer, rate))

    found = run_ranks(program, 2)
    assert run_ranks(again, 2) == pytest.approx([loss for loss, *_ in found], rel=1e-6)
    (_, one, ones), (_, other, others) = found
    assert one & other == {name for name in one if "shared_layers" in name}
    assert len(one | other) == 9
    assert (len(ones), len(others)) == (len(one), len(other))
