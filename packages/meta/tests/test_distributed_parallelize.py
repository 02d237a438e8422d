"""``parallelize``: a model of one device, put on a mesh by a plan of layer names."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy.models import GPT, GPTConfig
from argosy_autoparallel import count_collectives

PLAN = {
    "tokens": dist.ColWiseParallel(gather_output=True),
    r"blocks\.\d+\.attention\.inward": dist.ColWiseParallel(),
    r"blocks\.\d+\.attention\.outward": dist.RowWiseParallel(),
    "blocks.*.wide": dist.ColWiseParallel(),
    "blocks.*.narrow": dist.RowWiseParallel(),
    "head.weight": dist.ColWiseParallel(gather_output=True),
}
CONFIG = {"dp_config": {"sharding_level": 1}, "mp_config": {"parallelize_plan": PLAN}}


def _train(config, static=False):
    paddle.seed(3)
    model = GPT(GPTConfig(16, 6, 8, 1, 2))
    optimizer = paddle.optimizer.AdamW(0.02, parameters=model.parameters())
    rows = np.random.default_rng(0).integers(0, 16, (2, 2, 4, 6))
    batches = [[paddle.to_tensor(x) for x in pair] for pair in rows]
    if config is not None:
        mesh = dist.ProcessMesh([[0, 1], [2, 3]], ["dp", "mp"])
        model, optimizer = dist.parallelize(model, optimizer, mesh, config)
        batches = dist.shard_dataloader(batches, mesh, shard_dims="dp")

    def step(x, y):
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if static else step
    losses = [float(run(x, y)) for x, y in batches]
    block = model.blocks[0]
    moment = optimizer._accumulators["moment1"][block.narrow.weight.name]
    return losses, [
        x.placements for x in (block.wide.weight, block.wide.bias, block.narrow.weight, moment, model.norm.bias)
    ]


@pytest.mark.parametrize("static", [False, True], ids=["eager", "compiled"])
def test_a_gpt_is_parallel_by_a_plan(static):
    """Products by columns and rows along mp, moments split along dp as well: the losses of one process."""
    whole, split = dist.Replicate(), dist.Shard
    (expected, _) = run_ranks(lambda: _train(None), 1)[0]
    for losses, placements in run_ranks(lambda: _train(CONFIG, static), 4):
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        assert placements == [
            [whole, split(1)], [whole, split(0)], [whole, split(0)], [split(1), split(0)], [whole, whole],
        ]  # fmt: skip


class Mixer(nn.Layer):
    """[B, S, H] in and out: an embedding of features, a norm, a perceptron."""

    def __init__(self):
        super().__init__()
        self.inward, self.norm = nn.Linear(4, 6), nn.LayerNorm(6)
        self.wide, self.narrow = nn.Linear(6, 8), nn.Linear(8, 6)
        self.seen = []

    def forward(self, x):
        x = self.norm(self.inward(x))
        self.seen.append((x.shape, x.placements))
        x = self.narrow(self.wide(x).tanh())
        self.seen.append((x.shape, x.placements))
        return x


SEQUENCES = {
    "begin and end": {"inward": dist.SequenceParallelBegin(), "wide": dist.SequenceParallelEnd()},
    "enable": {"norm": dist.SequenceParallelEnable()},
    "in place": {
        "inward": dist.SequenceParallelBegin(need_transpose=False),
        "wide": dist.SequenceParallelEnd(need_transpose=False),
    },
    "disable": {
        "inward": dist.SequenceParallelBegin(),
        "norm": dist.SequenceParallelDisable(),
        "wide": dist.SequenceParallelEnd(),
    },
    "rows that are whole": {"wide": dist.ColWiseParallel(True), "narrow": dist.RowWiseParallel(False)},
    "own hooks": {
        "wide": dist.PrepareLayerInput(lambda process_mesh: lambda layer, inputs: (inputs[0] * 2,)),
        "narrow": [
            dist.PrepareLayerOutput(lambda process_mesh: lambda layer, inputs, outputs: outputs * 1.0),
            dist.PrepareLayerInput(lambda process_mesh: lambda layer, inputs: (inputs[0] / 1.0,)),
        ],
    },
}


def _mix(plan, dims, ranks):
    paddle.seed(1)
    model, x = Mixer(), paddle.to_tensor(np.random.default_rng(0).standard_normal((2, 5, 4)).astype(np.float32))
    mesh = dist.ProcessMesh([[rank] for rank in ranks] if len(dims) == 2 else ranks, dims)
    dist.parallelize(model, None, mesh, {"mp_config": {"parallelize_plan": plan}})
    x = dist.shard_tensor(x, mesh, [dist.Replicate(), dist.Shard(0)][: len(dims)])
    y = model(x)
    y.sum().backward()
    return y.numpy(), model.inward.weight.grad.numpy(), model.seen


@pytest.mark.parametrize("dims", [["mp"], ["mp", "dp"]], ids=["mp", "mp and dp"])
@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_split_between_layers(name, dims):
    """Values and gradients are those of one process, wherever sequences are split."""
    alone = SEQUENCES[name] if name == "own hooks" else {}
    expected, gradient, _ = run_ranks(lambda: _mix(alone, ["mp"], [0]), 1)[0]
    for found, grad, seen in run_ranks(lambda: _mix(SEQUENCES[name], dims, [0, 1]), 2):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(grad, gradient, rtol=1e-4, atol=1e-5)
        if name in ("begin and end", "disable"):
            assert seen[0][0] == [5, 2, 6]
            assert seen[0][1][0] == dist.Shard(0)
        if name == "in place":
            assert seen[0][0] == [2, 5, 6]
            assert seen[0][1][0] == dist.Shard(1)


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"mp_config": {"parallelize_plan": {"wde": dist.ColWiseParallel()}}}, ValueError, "'wde' matches no layer"),
        ({"mp_config": {"parallelize_plan": {"*.w": dist.ColWiseParallel()}}}, ValueError, r"'\*.w' is no regular"),
        ({"mp_config": {"parallelize_plan": {"wide": "columns"}}}, TypeError, "not one as ColWiseParallel"),
        ({"dp_config": {"sharding_level": 4}}, ValueError, "sharding_level is 0, 1, 2 or 3, not 4"),
        ({"dp_config": {"sharding_level": 1}}, ValueError, "sharding_level=1 needs a mesh dimension 'dp'"),
        ({"pp_config": {"split_spec": "blocks"}}, ValueError, "pp_config needs a mesh dimension 'pp'"),
        ({"cp_config": {"parallelize_plan": {"wide": dist.ContextParallel()}}}, ValueError, "a mesh dimension 'sep'"),
        ({"tp_config": {}}, ValueError, "no part"),
    ],
)
def test_plans_that_do_not_fit_are_named(config, error, message):
    """Keys without a layer, levels, dimensions and parts that there are not."""
    model = Mixer()
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
    with pytest.raises(error, match=message):
        dist.parallelize(model, optimizer, dist.ProcessMesh([0], ["mp"]), config)


def test_a_mesh_and_a_function_are_wanted():
    """Without a mesh, without a dimension mp, with what is no function."""
    plan = {"mp_config": {"parallelize_plan": {"wide": dist.ColWiseParallel()}}}

    def program():
        with pytest.raises(ValueError, match="parallelize needs a mesh"):
            dist.parallelize(Mixer(), config=plan)
        with pytest.raises(ValueError, match="the plan of 'wide' needs a mesh dimension 'mp'"):
            dist.parallelize(Mixer(), None, dist.ProcessMesh([0], ["dp"]), plan)

    run_ranks(program, 1)
    with pytest.raises(TypeError, match="takes a function of the mesh"):
        dist.PrepareLayerInput(3)
    with pytest.raises(TypeError, match="takes a Layer"):
        dist.parallelize(3)


def _train_images(parallel, static=False):
    """Losses and weights of convolutions, activations and pools; what was communicated forward and for all."""
    paddle.seed(3)
    net = nn.Sequential(
        nn.Conv2D(2, 3, 3, padding=1), nn.Tanh(), nn.MaxPool2D(2), nn.Conv2D(3, 2, 3, stride=2, padding=1)
    )
    optimizer = paddle.optimizer.SGD(1e-3, parameters=net.parameters())
    images = paddle.to_tensor(np.random.default_rng(0).standard_normal((2, 2, 6, 16)).astype(np.float32))
    if parallel:
        plan = {"0": dist.ConvParallel(), "3": dist.ConvParallel()}
        mesh = dist.ProcessMesh([0, 1], dim_names=["mp"])
        net, optimizer = dist.parallelize(net, optimizer, mesh, {"mp_config": {"parallelize_plan": plan}})
    with count_collectives() as forward, paddle.no_grad():
        seen = net(images).placements

    def step(x):
        loss = net(x).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if static else step
    with count_collectives() as counts:
        losses = [float(run(images)) for _ in range(3)]
    return losses, [p.numpy() for p in net.parameters()], seen, {*forward.calls}, {*counts.calls}


@pytest.mark.parametrize("static", [False, True], ids=["eager", "compiled"])
def test_images_are_split_by_their_width(static):
    """Convolutions and pools read what they lack of their neighbours: messages forward, sums of weights' gradients; no
    image is gathered."""
    ((losses, weights, *_),) = run_ranks(lambda: _train_images(False), 1)
    for found, trained, seen, forward, kinds in run_ranks(lambda: _train_images(True, static), 2):
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        for x, y in zip(trained, weights, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)
        assert seen == [dist.Shard(3)]
        assert forward <= {"send"}
        assert kinds <= {"send", "all_reduce"}
