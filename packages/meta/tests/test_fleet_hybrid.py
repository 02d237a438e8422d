"""Scripts of ``fleet`` on grids of ranks: split layers, copies, split states and pipelines of them train as one process
does."""

from functools import partial
from zlib import crc32

import numpy as np
import pytest

import argosy as paddle
from argosy import nn
from argosy.distributed import debug, fleet
from argosy.distributed.fleet import meta_parallel as parts
from argosy.distributed.fleet.meta_optimizers.dygraph_optimizer.dygraph_sharding_optimizer import (
    DygraphShardingOptimizer,
    DygraphShardingOptimizerV2,
)
from argosy.distributed.fleet.utils import sequence_parallel_utils as sequence
from argosy.distributed.fleet.utils.hybrid_parallel_util import (
    fused_allreduce_gradients,
    obtain_optimizer_parameters_list,
)

run_ranks = partial(debug.run_ranks, timeout=600)
STEPS, COUNT, ROWS, WIDTH, WORDS = 3, 2, 8, 8, 16


class Whole:
    """The layers of one process by the names of the split ones."""

    VocabParallelEmbedding = staticmethod(lambda words, width: nn.Embedding(words, width))
    ColumnParallelLinear = staticmethod(lambda i, o, has_bias=True, gather_output=False: nn.Linear(i, o))
    RowParallelLinear = staticmethod(lambda i, o, input_is_parallel=True: nn.Linear(i, o))

    @staticmethod
    def ParallelCrossEntropy():
        return lambda logits, labels: nn.functional.cross_entropy(logits, labels, reduction="none")


class MLP(nn.Layer):
    def __init__(self, source):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.wide = source.ColumnParallelLinear(WIDTH, 4 * WIDTH, has_bias=True, gather_output=False)
        self.narrow = source.RowParallelLinear(4 * WIDTH, WIDTH, input_is_parallel=True)

    def forward(self, x):
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm(x))))


class Loss(nn.Layer):
    def __init__(self, source):
        super().__init__()
        self.losses = source.ParallelCrossEntropy()

    def forward(self, logits, labels):
        return self.losses(logits, labels).mean()


def described(source):
    """A table, two blocks and a head whose classes stay split."""
    return [
        parts.LayerDesc(source.VocabParallelEmbedding, WORDS, WIDTH) if source is parts else nn.Embedding(WORDS, WIDTH),
        parts.LayerDesc(MLP, source), parts.LayerDesc(MLP, source),
        parts.LayerDesc(source.ColumnParallelLinear, WIDTH, WORDS, has_bias=True, gather_output=False)
        if source is parts else nn.Linear(WIDTH, WORDS),
    ]  # fmt: skip


def fill(model, rank=0, ranks=1):
    """Give every parameter its part of numbers that are those of one process."""
    for name, p in model.named_parameters():
        rng = np.random.default_rng(crc32(name.encode()))
        axis = getattr(p, "split_axis", 0) if getattr(p, "is_distributed", False) else None
        shape = [n * ranks if i == axis else n for i, n in enumerate(p.shape)]
        value = rng.standard_normal(shape).astype(np.float32) / 4
        p.set_value(value if axis is None else np.split(value, ranks, axis)[rank])
        assert name


def batches():
    rng = np.random.default_rng(0)
    return [[paddle.to_tensor(rng.integers(0, WORDS, (ROWS,))) for _ in range(2)] for _ in range(STEPS)]


def optimizer_of(model):
    clip = nn.ClipGradByGlobalNorm(0.3)
    return paddle.optimizer.AdamW(0.05, parameters=model.parameters(), grad_clip=clip)


def one_process():
    model = parts.PipelineLayer(described(Whole), num_stages=1, loss_fn=Loss(Whole))
    fill(model)
    optimizer, losses = optimizer_of(model), []
    for x, y in batches():
        loss = model._loss_fn[0](model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return losses, {name: p.numpy() for name, p in model.named_parameters()}


def average_and_step(optimizer, model, hcg):
    """What PaddleNLP's trainer does in the place of ``optimizer.step()``."""
    parameters = obtain_optimizer_parameters_list(optimizer._inner_opt)
    inner = unwrap(optimizer, (DygraphShardingOptimizer, DygraphShardingOptimizerV2))
    assert isinstance(inner, DygraphShardingOptimizerV2)
    inner.reduce_gradients(parameters, hcg)
    own = inner.filter_parameters(parameters, hcg)
    assert all(p.grad is None for p in parameters)
    assert all(p.shape == p.grad.shape and p.ndim == 1 for p in own)
    assert optimizer._dp_enable
    fused_allreduce_gradients(own, hcg)
    optimizer._step(parameters)


def unwrap(optimizer, kind):
    while hasattr(optimizer, "_inner_opt") and not isinstance(optimizer, kind):
        optimizer = optimizer._inner_opt
    return optimizer


def whole(p):
    """The value of a parameter, of its parts on the mesh of its stage together."""
    mesh = p.process_mesh
    if mesh is None:
        return p.numpy()
    return paddle.distributed.reshard(p, mesh, [paddle.distributed.Replicate()] * mesh.ndim)._local_value().numpy()


def train(static=False, schedule="1F1B", by_hand=False, sliced=False, stage=1, chunks=1, kept=None, **degrees):
    """A script as Paddle's users write it; its losses, and the parts of parameters that this rank has."""
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {f"{name}_degree": degree for name, degree in degrees.items()}
    strategy.hybrid_configs["sharding_configs"].split_param = by_hand or sliced
    strategy.hybrid_configs["sharding_configs"].comm_buffer_size_MB = 0.001
    strategy.sharding_configs = {"stage": stage}
    copies = degrees.get("dp", 1) * degrees.get("sharding", 1)
    strategy.pipeline_configs = {
        "accumulate_steps": COUNT, "micro_batch_size": ROWS // COUNT // copies, "schedule_mode": schedule
    }  # fmt: skip
    fleet.init(is_collective=True, strategy=strategy)
    hcg = fleet.get_hybrid_communicate_group()
    pipelined = hcg.get_pipe_parallel_world_size() > 1
    stages = {"topology": hcg.topology()} if pipelined else {"num_stages": 1}
    stages |= {"num_virtual_pipeline_stages": chunks}
    model = parts.PipelineLayer(described(parts), loss_fn=Loss(parts), **stages)
    fill(model, hcg.get_model_parallel_rank(), hcg.get_model_parallel_world_size())
    optimizer = optimizer_of(model)
    loss_fn = model._loss_fn[0]
    model, optimizer = fleet.distributed_model(model), fleet.distributed_optimizer(optimizer)
    place = hcg.get_data_parallel_rank() + degrees.get("dp", 1) * hcg.get_sharding_parallel_rank()
    losses = []

    def step(x, y):
        loss = loss_fn(model(x), y)
        loss.backward()
        average_and_step(optimizer, model, hcg) if by_hand else optimizer.step()
        optimizer.clear_grad()
        return loss

    if static:
        step = paddle.jit.to_static(step, full_graph=True)
    for x, y in batches():
        mine = np.arange(ROWS).reshape(copies, -1)[place]
        if pipelined and by_hand:
            losses.append(float(model.forward_backward_pipeline([x[mine], y[mine]])))
            optimizer.step()
            optimizer.clear_grad()
        elif pipelined:
            losses.append(float(model.train_batch([x[mine], y[mine]], optimizer)))
        else:
            losses.append(float(step(x[mine], y[mine])))
    if kept is not None:
        kept.append(model._pipeline)
    held = {}
    for name, p in model._layers.named_parameters():
        if getattr(p.payload, "is_held", True):
            axis = getattr(p, "split_axis", 0) if getattr(p, "is_distributed", False) else None
            held[name] = axis, whole(p)
    states = sum(x._local_value().size for kind in optimizer._inner_opt._accumulators.values() for x in kind.values()
                 if getattr(x.payload, "is_held", True))  # fmt: skip
    return losses, held, hcg.get_model_parallel_rank(), states


@pytest.fixture(scope="module")
def expected():
    return run_ranks(one_process, 1)[0]


def check(results, expected, ranks):
    losses = np.mean([mine for mine, *_ in results], 0)
    np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
    for _, held, place, _ in results:
        for name, (axis, value) in held.items():
            whole = expected[1][name]
            part = whole if axis is None else np.split(whole, ranks, axis)[place]
            np.testing.assert_allclose(value, part, rtol=1e-4, atol=1e-4, err_msg=name)
    assert set().union(*(held for _, held, *_ in results)) == expected[1].keys()


GRIDS = {
    "mp2": {"mp": 2}, "mp2 dp2": {"mp": 2, "dp": 2}, "sharding2": {"sharding": 2},
    "mp2 sharding2": {"mp": 2, "sharding": 2}, "mp2 captured": {"mp": 2, "static": True},
    "sharding2 dp2, by hand": {"sharding": 2, "dp": 2, "by_hand": True},
    "mp2 sharding2, sliced": {"mp": 2, "sharding": 2, "sliced": True},
    "sharding4, sliced, captured": {"sharding": 4, "sliced": True, "static": True},
}  # fmt: skip


@pytest.mark.parametrize("case", GRIDS)
def test_grids_train_as_one_process_does(expected, case):
    """Clipping by the norm of all ranks is on, also where a trainer averages gradients itself; parts of
    the table, of columns, rows and classes."""
    degrees = GRIDS[case]
    size = np.prod([n for n in degrees.values() if type(n) is int])
    results = run_ranks(lambda: train(**degrees), int(size))
    check(results, expected, degrees.get("mp", 1))
    if "sharding" in degrees:  # each member has the states of its parameters, or slices, alone
        held = [states for *_, states in results]
        moments = 2 * sum(value.size for _, value in results[0][1].values())
        sliced = degrees.get("sliced") or degrees.get("by_hand")
        assert max(held) < (1.1 / degrees["sharding"] if sliced else 0.75) * moments


def test_slices_are_of_rules_of_elements_and_go_on_from_their_states():
    """A rule that looks at whole parameters is refused; flat states of a rank are saved and read."""

    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"sharding_degree": 2, "sharding_configs": {"split_param": True}}
        fleet.init(is_collective=True, strategy=strategy)
        layer = nn.Linear(3, 3)
        with pytest.raises(NotImplementedError, match="split_param with Lamb, whose rule looks at whole parameters"):
            fleet.distributed_optimizer(paddle.optimizer.Lamb(0.1, parameters=layer.parameters()))

        def made():
            inner = paddle.optimizer.Adam(0.1, parameters=layer.parameters())
            return fleet.distributed_optimizer(inner)

        def step(optimizer):
            model(paddle.ones([2, 3])).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
            return layer.weight.numpy()

        model, first, second = fleet.distributed_model(layer), made(), made()
        first._set_all_gather_overlap_forward(True, layer)
        step(first)
        values, states = layer.state_dict(), {k: x.numpy() for k, x in first.state_dict().items()}
        values = {k: x.numpy() for k, x in values.items()}
        expected = step(first)
        layer.set_state_dict(values)
        second.set_state_dict(states)
        return expected, step(second), sum(x.size for k, x in states.items() if "moment" in k)

    for expected, found, moments in run_ranks(program, 2):
        np.testing.assert_array_equal(found, expected)
        assert moments == 2 * 6


RUN = {"mp2 sharding2 pp2", "sharding2 pp2, by hand"}
PIPELINES = {
    "mp2 pp2": {"mp": 2, "pp": 2}, "mp2 pp2 dp2": {"mp": 2, "pp": 2, "dp": 2},
    "mp2 pp2, ZBH1": {"mp": 2, "pp": 2, "schedule": "ZBH1"}, "sharding2 pp2": {"sharding": 2, "pp": 2},
    "sharding2 pp2, by hand": {"sharding": 2, "pp": 2, "by_hand": True},
    "mp2 sharding2 pp2": {"mp": 2, "sharding": 2, "pp": 2, "schedule": "ZBH1"},
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.exhaustive] * (case not in RUN)) for case in PIPELINES],
)
def test_pipelines_of_split_layers_train_as_one_process_does(expected, case):
    """Each part of the layers is a pipeline beside the others'; of split states each rank has its own."""
    degrees = PIPELINES[case]
    size = np.prod([n for n in degrees.values() if type(n) is int])
    results = run_ranks(lambda: train(**degrees), int(size))
    check(results, expected, degrees.get("mp", 1))
    for _, held, _, states in results:
        assert states <= 2 * sum(v.size for _, v in held.values()) * (0.7 if "sharding" in degrees else 1.1)


ZERO = {
    "ZeRO 2": {"stage": 2}, "ZeRO 3": {"stage": 3}, "ZeRO 3, dp2, VPP": {"stage": 3, "dp": 2, "chunks": 2},
    "ZeRO 2, mp2, ZBH1": {"stage": 2, "mp": 2, "schedule": "ZBH1"}, "ZeRO 3, mp2": {"stage": 3, "mp": 2},
}  # fmt: skip


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.exhaustive(every=4)] * (case != "ZeRO 3")) for case in ZERO]
)
def test_pipelines_split_gradients_and_parameters(expected, case):
    """Over the sharding group of a stage: each member adds up its part of the gradients over the microbatches, and at
    stage 3 has its part of the parameters."""
    degrees = {"pp": 2, "sharding": 2, **ZERO[case]}
    ranks = int(np.prod([degrees.get(name, 1) for name in ("pp", "sharding", "mp", "dp")]))

    def program():
        kept = []
        losses = train(kept=kept, **degrees)
        (pipeline,) = kept
        sums = sum(x.size for x in pipeline.gradients._sums.values())
        held = [t for t, _ in pipeline.gradients._tensors.values() if t.payload.is_held]
        return *losses, sums, sum(t._local_value().size for t in held), sum(t.size for t in held)

    results = run_ranks(program, ranks)
    check([found[:4] for found in results], expected, degrees.get("mp", 1))
    for *_, states, sums, parts_, whole_ in results:
        assert sums <= 0.6 * whole_
        assert states <= 2.4 * 0.6 * whole_
        assert parts_ <= whole_ * (0.6 if degrees["stage"] == 3 else 1)


def test_sequences_are_split_between_split_layers():
    """Layers of split sequences: results and gradients of one process, those of biases and scales summed by hooks."""

    def program():
        ranks = paddle.distributed.get_world_size()
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"mp_degree": ranks}
        fleet.init(is_collective=True, strategy=strategy)
        place = fleet.get_hybrid_communicate_group().get_model_parallel_rank()
        paddle.seed(0)
        model = nn.LayerList([
            nn.LayerNorm(WIDTH), sequence.ColumnSequenceParallelLinear(WIDTH, 16, has_bias=True),
            sequence.RowSequenceParallelLinear(16, WIDTH),
        ])  # fmt: skip
        fill(model, place, ranks)
        for parameter in model[0].parameters():
            sequence.mark_as_sequence_parallel_parameter(parameter)
        sequence.register_sequence_parallel_allreduce_hooks(model, 1, False)
        x = paddle.to_tensor(np.random.default_rng(2).standard_normal((4, 3, WIDTH)).astype(np.float32))
        x.stop_gradient = False
        y = model[2](nn.functional.gelu(model[1](model[0](sequence.ScatterOp.apply(x)))))
        whole = sequence.GatherOp.apply(y)
        (whole * paddle.arange(WIDTH, dtype="float32")).sum().backward()
        gradients = {}
        for name, p in model.named_parameters():
            axis = p.split_axis if getattr(p, "is_distributed", False) else None
            gradients[name] = axis, p.grad.numpy()
        return whole.numpy(), x.grad.numpy(), gradients, place

    ((whole, at_input, expected, _),) = run_ranks(program, 1)
    for mine, gradient, found, place in run_ranks(program, 2):
        np.testing.assert_allclose(mine, whole, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(gradient, at_input, rtol=1e-4, atol=1e-4)
        for name, (axis, value) in found.items():
            part = expected[name][1] if axis is None else np.split(expected[name][1], 2, axis)[place]
            np.testing.assert_allclose(value, part, rtol=1e-4, atol=1e-4, err_msg=name)


def test_groups_of_sequences_and_of_experts_are_cut():
    """Of two stages with a sharding group of two each; those of experts go across a stage. All ranks add up in them."""

    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"pp_degree": 2, "sharding_degree": 2, "cp_degree": 2, "ep_degree": 1}
        fleet.init(is_collective=True, strategy=strategy)
        hcg = fleet.get_hybrid_communicate_group()
        found = [hcg.get_context_parallel_group().ranks, hcg.get_cp_sharding_parallel_group().ranks]
        assert hcg.get_context_parallel_rank() == hcg.get_context_parallel_group().rank
        assert hcg.get_context_parallel_world_size() == 2
        assert hcg.get_context_parallel_group_src_rank() == found[0][0]
        assert hcg.get_sep_parallel_group_src_rank() == paddle.distributed.get_rank()
        ranks, group = hcg.create_fuse_group(["pipe", "sharding"])
        assert ranks == group.ranks == [0, 1, 2, 3]
        beside = hcg.get_p2p_groups()
        assert {tuple(each.ranks) for each in beside} == {tuple(hcg.get_pipe_parallel_group().ranks)}
        one = paddle.ones([1])
        for each in beside if hcg.get_stage_id() == 0 else beside[::-1]:  # what one sends to the next receives from
            paddle.distributed.all_reduce(one, group=each)
        assert float(one) == 16
        assert hcg.get_cp_sharding_parallel_group_src_rank() == paddle.distributed.get_rank()
        total = paddle.to_tensor([float(paddle.distributed.get_rank())])
        paddle.distributed.all_reduce(total, group=hcg.get_context_parallel_group())
        assert float(total) == sum(found[0])
        strategy.hybrid_configs = {"pp_degree": 1, "sharding_degree": 4, "cp_degree": 2, "ep_degree": 2}
        fleet.init(is_collective=True, strategy=strategy)
        hcg = fleet.get_hybrid_communicate_group()
        found += [hcg.get_cp_sharding_parallel_group().ranks, hcg.get_expert_parallel_group().ranks]
        found += [hcg.get_moe_sharding_parallel_group().ranks]
        places = hcg.get_expert_parallel_rank(), hcg.get_moe_sharding_parallel_rank()
        assert (hcg.get_expert_parallel_world_size(), hcg.get_moe_sharding_parallel_world_size()) == (2, 2)
        assert hcg.get_expert_parallel_group_src_rank() == found[3][0]
        assert hcg.get_moe_sharding_parallel_group_src_rank() == found[4][0]
        strategy.hybrid_configs = {"cp_degree": 3}
        with pytest.raises(ValueError, match="4 ranks are not groups of 3 for 'context'"):
            fleet.init(is_collective=True, strategy=strategy)
        return found, places

    expected = [([0, 1], [0], [0, 2], [0, 1], [0, 2]), ([0, 1], [1], [1, 3], [0, 1], [1, 3]),
                ([2, 3], [2], [0, 2], [2, 3], [0, 2]), ([2, 3], [3], [1, 3], [2, 3], [1, 3])]  # fmt: skip
    found = run_ranks(program, 4)
    assert [tuple(map(list, ranks)) for ranks, _ in found] == expected
    assert [places for _, places in found] == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_ranks_meet_by_the_calls_of_gloo():
    """What the launcher says must be what the caller says."""

    def program():
        rank, size = paddle.distributed.get_rank(), paddle.distributed.get_world_size()
        paddle.distributed.gloo_init_parallel_env(rank, size, "127.0.0.1:6070")
        paddle.distributed.gloo_barrier()
        paddle.distributed.gloo_release()
        with pytest.raises(ValueError, match="rank 7 of 9, but this is rank"):
            paddle.distributed.gloo_init_parallel_env(7, 9, "")
        return rank

    assert run_ranks(program, 2) == [0, 1]


def test_layouts_by_names_of_dimensions():
    mesh = paddle.distributed.ProcessMesh([[0, 1], [2, 3]], ["x", "y"])
    found = paddle.distributed.DistAttr(mesh, ["y", None, "x"])
    assert (found.dims_mapping, found.sharding_specs, found.process_mesh) == ([1, -1, 0], ["y", None, "x"], mesh)
    assert (found.multi_dims_mapping, found.batch_dim, found.dynamic_dims) == ([[1], [], [0]], 0, [False] * 3)
    assert found.is_annotated("process_mesh")
    found.clear_annotated()
    found.mark_annotated("chunk_id")
    assert found.annotated == {"chunk_id": True}
    assert not mesh.empty()
    assert "launch" in paddle.distributed.__all__
    assert found.placements == [paddle.distributed.Shard(2), paddle.distributed.Shard(0)]
    assert repr(found).startswith("DistAttr(mesh=ProcessMesh(")
    for specs, message in ((["z"], r"names \['z'\]"), (["x", "x"], "splits two axes")):
        with pytest.raises(ValueError, match=message):
            paddle.distributed.DistAttr(mesh, specs)
    with pytest.raises(ValueError, match="mesh is a ProcessMesh"):
        paddle.distributed.DistAttr([0, 1], [None])
