"""``group_sharded_parallel``: states, gradients and parameters split over ranks train as one process does."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy.distributed.parameter_owners import ParameterOwners, publish_updates
from argosy.distributed.sharding import group_sharded_parallel, save_group_sharded_model
from argosy_autoparallel.counting import count_collectives

ROWS = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
STEPS = 3


class Tied(nn.Layer):
    """A weight that is used twice, once by another layer's code; a buffer; a scale too small to be split."""

    def __init__(self):
        super().__init__()
        self.wide, self.norm, self.table = nn.Linear(6, 10), nn.BatchNorm1D(10, momentum=0.5), nn.Linear(10, 5)

    def forward(self, x):
        hidden = nn.functional.gelu(self.norm(self.wide(x)))
        return paddle.matmul(self.table(hidden), self.table.weight, transpose_y=True)


def prepared(**options):
    paddle.seed(3)
    model = Tied()
    model.norm.eval()
    clip = nn.ClipGradByGlobalNorm(0.2)
    return model, paddle.optimizer.AdamW(0.05, parameters=model.parameters(), grad_clip=clip, **options)


def train(level=None, static=False, scaled=False, passes=1, group=None, **options):
    """Losses, whole parameters, the number of this rank's states, and the optimizer's states."""
    ranks = 1 if level is None else dist.get_world_size()
    model, optimizer = prepared()
    scaler = paddle.amp.GradScaler(init_loss_scaling=8.0) if scaled else None
    if level is not None:
        for p in model.parameters():
            p.set_value(p.numpy() + dist.get_rank())  # all begin with the first rank's
        groups = {"group": dist.new_group([0, 1]) if group else None}
        options = {"segment_size": 20, **options}
        model, optimizer, scaler = group_sharded_parallel(model, optimizer, level, scaler, **groups, **options)
    rows = np.split(ROWS, ranks)[dist.get_rank()]

    def step(x):
        for part in x.split(passes):
            loss = model(part).square().mean() / passes
            (loss if scaler is None else scaler.scale(loss)).backward()
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        optimizer.clear_grad()
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if static else step
    losses = [float(run(paddle.to_tensor(rows))) for _ in range(STEPS)]
    if level == "p_g_os":
        split = {n: p._local_value().size / p.size for n, p in model.named_parameters()}
        assert sorted(set(split.values())) in ([0.5, 1.0], [0.4, 0.6, 1.0])
    accumulators = getattr(optimizer, "_inner_opt", optimizer)._accumulators
    held = sum(x._local_value().size if x.process_mesh else x.size for k in accumulators.values() for x in k.values())
    return losses, {name: p.numpy() for name, p in model.state_dict().items()}, held


@pytest.fixture(scope="module")
def expected():
    return run_ranks(train, 1)[0]


CASES = {
    "os": {}, "os_g": {}, "p_g_os": {}, "os_g captured": {"static": True}, "p_g_os captured": {"static": True},
    "os_g scaled": {"scaled": True}, "p_g_os scaled": {"scaled": True}, "os_g in two passes": {"passes": 2},
    "os_g in small buffers": {"buffer_max_size": 30}, "p_g_os in two passes": {"passes": 2},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_ranks_train_as_one_process_on_all_rows(expected, case):
    """Clipping by the norm of all gradients is on; each rank has about half of the states."""
    level = case.split()[0]
    results = run_ranks(lambda: train(level, **CASES[case]), 2)
    if "passes" not in CASES[case]:
        np.testing.assert_allclose(np.mean([mine for mine, *_ in results], 0), expected[0], rtol=1e-5)
    for _, held, states in results:
        assert held.keys() == expected[1].keys()
        for name, value in expected[1].items():
            np.testing.assert_allclose(held[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
        assert states < 0.7 * expected[2]


def test_parameters_are_gathered_where_they_are_used():
    """Each weight forward, and again what the backward pass needs; afterwards each rank has its part."""

    def program():
        model, optimizer = prepared()
        model, optimizer, _ = group_sharded_parallel(model, optimizer, "p_g_os", segment_size=20)
        x = paddle.to_tensor(np.split(ROWS, 2)[dist.get_rank()])
        with count_collectives() as forward:
            loss = model(x).sum()
        with count_collectives() as backward:
            loss.backward()
        return forward.calls, backward.calls

    forward, backward = run_ranks(program, 2)[0]
    assert forward == {"all_gather": 3}  # of one weight twice
    assert backward == {"all_gather": 2, "reduce_scatter": 3, "all_reduce": 4}  # the input wants no gradient


@pytest.mark.parametrize(("level", "static"), [("os_g", False), ("p_g_os", False), ("os_g", True), ("p_g_os", True)])
def test_copies_of_groups_and_members_of_some(expected, level, static):
    """Two groups that are copies of each other, eagerly and captured; buffers come from the first rank."""

    def program():
        rank = dist.get_rank()
        groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        copies = [dist.new_group([0, 2]), dist.new_group([1, 3])]
        model, optimizer = prepared()
        model.norm._mean.set_value(model.norm._mean.numpy() + rank)
        model, optimizer, _ = group_sharded_parallel(
            model, optimizer, level, group=groups[rank // 2], dp_group=copies[rank % 2], sync_buffers=True,
            segment_size=20,
        )  # fmt: skip

        def step(x):
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.clear_grad()

        run = paddle.jit.to_static(step, full_graph=True) if static else step
        for _ in range(STEPS):
            run(paddle.to_tensor(np.split(ROWS, 4)[rank]))
        if level == "p_g_os":
            assert {p._local_value().size / p.size for p in model.parameters()} == {0.5, 1.0}
        return {name: p.numpy() for name, p in model.state_dict().items()}

    for held in run_ranks(program, 4):
        for name, value in expected[1].items():
            np.testing.assert_allclose(held[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("level", ["os_g", "p_g_os"])
def test_a_model_and_its_states_are_written_whole(expected, level, tmp_path):
    def program():
        model, optimizer = prepared()
        model, optimizer, _ = group_sharded_parallel(model, optimizer, level, segment_size=20)
        for _ in range(STEPS):
            model(paddle.to_tensor(np.split(ROWS, 2)[dist.get_rank()])).square().mean().backward()
            optimizer.step()
            optimizer.clear_grad()
        save_group_sharded_model(model, str(tmp_path / "made"), optimizer)

    run_ranks(program, 2)
    written = paddle.load(str(tmp_path / "made" / "model.pdmodel"))
    for name, value in expected[1].items():
        np.testing.assert_allclose(written[name].numpy(), value, rtol=1e-4, atol=1e-5, err_msg=name)
    states = paddle.load(str(tmp_path / "made" / "model.pdopt"))
    assert sum(x.size for n, x in states.items() if "moment" in n) == 2 * sum(
        p.size for p in Tied().parameters() if not p.stop_gradient
    )


def test_a_rank_without_gradients_to_clip_takes_part():
    """One small parameter of two ranks: its owner clips it as one process does."""

    def program(level):
        layer = nn.Linear(2, 1, bias_attr=False)
        layer.weight.set_value(np.ones((2, 1), np.float32))
        clip = nn.ClipGradByGlobalNorm(0.1)
        optimizer = paddle.optimizer.SGD(1.0, parameters=layer.parameters(), grad_clip=clip)
        if level:
            layer, optimizer, _ = group_sharded_parallel(layer, optimizer, level)
        layer(paddle.ones([3, 2])).sum().backward()
        optimizer.step()
        return layer.state_dict()["weight"].numpy()

    expected = run_ranks(lambda: program(None), 1) * 2
    np.testing.assert_allclose(run_ranks(lambda: program("os_g"), 2), expected, rtol=1e-6)


def test_each_pipeline_publishes_by_its_own_owners():
    """An optimizer over the parameters of both gives every rank what their owners have."""

    def program():
        tensors = [[paddle.full([size], float(dist.get_rank() + 1)) for size in sizes] for sizes in ((3, 2), (2, 3))]
        pipelines = [ParameterOwners([], dist.get_group(0)) for _ in tensors]
        for owners, own in zip(pipelines, tensors, strict=True):
            owners.add(own)
            owners.publish_later()
        publish_updates([x for own in tensors for x in own])
        return [float(x[0]) for own in tensors for x in own]

    assert run_ranks(program, 2) == [[1.0, 2.0, 2.0, 1.0]] * 2


def test_copies_at_other_places_of_their_groups_are_refused():
    def program():
        rank = dist.get_rank()
        groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        crossed = [dist.new_group([0, 3]), dist.new_group([1, 2])]
        dp_group = crossed[rank in (1, 2)]
        group_sharded_parallel(*prepared(), "p_g_os", group=groups[rank // 2], dp_group=dp_group)

    with pytest.raises(ValueError, match="are no copies of a group in its order"):
        run_ranks(program, 4)


def test_what_does_not_fit_is_named(tmp_path):
    model, optimizer = prepared()
    with pytest.raises(ValueError, match="level is one of"):
        group_sharded_parallel(model, optimizer, "g")
    with pytest.raises(TypeError, match="a Layer and an Optimizer, not Tied and Tied"):
        group_sharded_parallel(model, model, "os")
    with pytest.raises(ValueError, match="not Tied"):
        save_group_sharded_model(model, str(tmp_path))


def test_processes_train_as_one_process_does(expected, tmp_path, mpiexec):
    """Two ranks over MPI, at each level."""
    script = tmp_path / "train.py"
    script.write_text(
        "import json, sys, pathlib\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import test_group_sharded as t\n"
        "losses = [t.train(level)[0] for level in ('os_g', 'p_g_os')]\n"
        f"pathlib.Path({str(tmp_path)!r}, str(t.dist.get_rank())).write_text(json.dumps(losses))\n"
    )
    run = subprocess.run([*mpiexec(2), sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    losses = [json.loads((tmp_path / rank).read_text()) for rank in "01"]
    np.testing.assert_allclose(np.mean(losses, 0), [expected[0]] * 2, rtol=1e-5)
