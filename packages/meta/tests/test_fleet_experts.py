"""Ranks with experts of their own, to which tokens go by all-to-alls: beside copies, split states, split layers and
pipelines they train as one process does."""

import numpy as np
import pytest

import argosy as paddle
from argosy import nn
from argosy.distributed import alltoall_single, fleet
from argosy.distributed.debug import run_ranks
from argosy.distributed.fleet import meta_parallel as parts

STEPS, COUNT, ROWS = 2, 2, 16
DATA = np.random.default_rng(1).standard_normal((STEPS, COUNT, ROWS, 4)).astype(np.float32)


class AllToAll(paddle.autograd.PyLayer):
    """Halves of rows to two ranks, and gradients back."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group, y = group, paddle.zeros_like(x)
        alltoall_single(y, x.contiguous(), group=group)
        return y

    @staticmethod
    def backward(ctx, gradient):
        return AllToAll.apply(gradient, ctx.group)


class Experts(nn.Layer):
    """Two of them, of which ``group`` has one on each rank: the first half of each four rows is for the first."""

    def __init__(self, number, group):
        super().__init__()
        self.group, both = group, [nn.Linear(4, 4), nn.Linear(4, 4)]
        rng = np.random.default_rng(number)
        for p in (p for expert in both for p in expert.parameters()):
            p.set_value(rng.standard_normal(p.shape).astype(np.float32) / 2)
        self.experts = nn.LayerList(both if group.nranks == 1 else [both[group.rank]])
        for p in self.experts.parameters() if group.nranks > 1 else []:
            p.no_sync = True

    def forward(self, x):
        x = paddle.tanh(x)
        halves = x.reshape([-1, 2, 2, 4]).transpose([1, 0, 2, 3])
        if self.group.nranks > 1:
            halves = AllToAll.apply(self.experts[0](AllToAll.apply(halves, self.group)), self.group)
        else:
            halves = paddle.stack([expert(half) for expert, half in zip(self.experts, halves, strict=True)])
        return halves.transpose([1, 0, 2, 3]).reshape([-1, 4])


def train(order=None, **degrees):
    """Parameters by name after two steps of two microbatches, whose rows copies share; and the place among experts."""
    strategy = fleet.DistributedStrategy()
    copies = degrees.get("dp", 1) * degrees.get("sharding", 1)
    strategy.hybrid_configs = {f"{name}_degree": degree for name, degree in degrees.items()}
    if order is not None:
        strategy.hybrid_configs = {"order": order}
    strategy.pipeline_configs = {"accumulate_steps": COUNT, "micro_batch_size": ROWS // copies}
    fleet.init(is_collective=True, strategy=strategy)
    hcg = fleet.get_hybrid_communicate_group()
    pipelined, group = degrees.get("pp", 1) > 1, hcg.get_expert_parallel_group()
    paddle.seed(2)
    layers = [nn.Linear(4, 4), Experts(0, group), nn.Linear(4, 4), Experts(1, group)]
    stages = {"topology": hcg.topology()} if pipelined else {"num_stages": 1}
    net = parts.PipelineLayer(layers, loss_fn=lambda y, x: (y * y).mean(), **stages)
    clip = nn.ClipGradByGlobalNorm(0.05)
    adam = paddle.optimizer.AdamW(0.1, parameters=net.parameters(), grad_clip=clip)
    optimizer, model = fleet.distributed_optimizer(adam), fleet.distributed_model(net)
    place = hcg.get_data_parallel_rank() + degrees.get("dp", 1) * hcg.get_sharding_parallel_rank()
    for step in range(STEPS):
        x = paddle.to_tensor(np.split(DATA[step], copies, 1)[place].reshape(-1, 4))
        if pipelined:
            model.train_batch([x, x], optimizer)
        else:
            (model(x) ** 2).mean().backward()
            optimizer.step()
            optimizer.clear_grad()
    held = {name: p for name, p in net.named_parameters() if getattr(p.payload, "is_held", True)}
    return {name: (p._local_value() if p.process_mesh else p).numpy() for name, p in held.items()}, group.rank


GRIDS = {
    "copies": {"dp": 4}, "ZeRO": {"sharding": 2}, "split layers": {"mp": 2, "dp": 2}, "pipelines": {"pp": 2, "dp": 2},
    "owners without gradients": {"pp": 2, "sharding": 4}, "all": {"pp": 2, "sharding": 2, "mp": 2},
    "all, in another order": {"pp": 2, "sharding": 2, "mp": 2, "order": ["mp", "sharding", "pp", "dp", "sep", "cp"]},
}  # fmt: skip


@pytest.fixture(scope="module")
def whole():
    return run_ranks(train, 1)[0][0]


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.exhaustive] * (i > 4)) for i, case in enumerate(GRIDS)]
)
def test_ranks_have_experts_of_their_own(whole, case):
    """Clipped by the norm of all. Ranks with parts of the same layers have the same tokens."""
    degrees = GRIDS[case]
    size = np.prod([n for n in degrees.values() if type(n) is int])
    found = run_ranks(lambda: train(ep=2, **degrees), int(size), timeout=600)
    for held, place in found:
        for name, value in held.items():
            expected = whole[name.replace("experts.0", f"experts.{place}")]
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5, err_msg=name)
    assert len(set().union(*(held for held, _ in found))) == 8
