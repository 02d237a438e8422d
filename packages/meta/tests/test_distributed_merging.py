"""Gradients of several batches merged by compiled steps: on any meshes, each rank its part, summed over ranks once."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed import Strategy
from argosy.distributed.debug import run_ranks
from argosy_autoparallel import count_collectives

STEPS, ROUNDS = 3, 3


class Pair(nn.Layer):
    """Two layers, each on its mesh."""

    def __init__(self, meshes):
        super().__init__()
        self.first, self.second, self.meshes = nn.Linear(4, 4), nn.Linear(4, 4), meshes
        for layer, mesh in zip((self.first, self.second), meshes or (), strict=False):
            for parameter in layer.parameters():
                dist.shard_tensor(parameter, mesh, [dist.Replicate()])

    def forward(self, x):
        between = nn.functional.gelu(self.first(x))
        return self.second(dist.reshard(between, self.meshes[1], [dist.Replicate()]) if self.meshes else between)


def prepared(kind):
    """A model laid out in one of four ways, and what lays out inputs and labels."""
    paddle.seed(0)
    if kind == "one process":
        return Pair(None), paddle.to_tensor, paddle.to_tensor
    if kind == "two meshes":
        meshes = dist.ProcessMesh([0], ["x"]), dist.ProcessMesh([1], ["x"])
        return Pair(meshes), *(lambda x, mesh=mesh: dist.shard_tensor(x, mesh, [dist.Replicate()]) for mesh in meshes)
    model, mesh = Pair(None), dist.ProcessMesh([0, 1], ["d"])
    by_rows = kind == "data parallel"
    for parameter in model.parameters():
        dist.shard_tensor(parameter, mesh, [dist.Replicate() if by_rows else dist.Shard(0)])
    put = lambda x: dist.shard_tensor(x, mesh, [dist.Shard(0) if by_rows else dist.Replicate()])  # noqa: E731
    return model, put, put


def train(kind):
    """Losses, each call's collectives, how many programs there are, and the sum of each parameter in the end."""
    model, put, put_label = prepared(kind)
    optimizer = paddle.optimizer.AdamW(0.1, parameters=model.parameters())
    merging = {"gradient_merge": {"enable": True, "k_steps": STEPS}}
    step = dist.to_static(model, None, nn.MSELoss(), optimizer, Strategy(merging))
    losses, calls = [], []
    for x in np.random.default_rng(0).standard_normal((STEPS * ROUNDS, 6, 4)).astype(np.float32):
        with count_collectives() as counts:
            losses.append(step(put(x), put_label(np.ascontiguousarray(x[:, ::-1]))))
        calls.append(dict(counts.calls))
    held = [x for x in losses if x.process_mesh is None or x.payload.is_held]
    sums = [p.sum() for p in model.parameters()]
    programs = {mode: len(function.compiled) for mode, function in step._steps.items()}
    sums = [None if x.process_mesh is not None and not x.payload.is_held else float(x) for x in sums]
    return [float(x) for x in held], calls, programs, sums


@pytest.fixture(scope="module")
def expected():
    losses, _, _, sums = run_ranks(lambda: train("one process"), 1)[0]
    return losses, sums


@pytest.mark.parametrize("kind", ["data parallel", "split parameters", "two meshes"])
def test_merged_gradients_are_those_of_one_process(kind, expected):
    """Losses and what is learnt; two programs merge (into nothing, and into what is there) and one updates."""
    for losses, _, programs, sums in run_ranks(lambda: train(kind), 2):
        assert losses or kind == "two meshes"
        np.testing.assert_allclose(losses, expected[0][: len(losses)], rtol=1e-5)
        for found, wanted in zip(sums, expected[1], strict=True):
            if found is not None:
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        assert (programs["merge"], programs["train"]) == (2, 1)


def test_gradients_are_summed_over_ranks_once():
    """Data parallel, the calls that only merge communicate nothing; the one that updates sums."""
    for _, calls, _, _ in run_ranks(lambda: train("data parallel"), 2):
        assert calls == [{}, {}, {"all_reduce": 1}] * ROUNDS


def test_split_gradients_are_not_gathered():
    """A call that merges into what is there communicates what the one does that merges into nothing."""
    for _, calls, _, _ in run_ranks(lambda: train("split parameters"), 2):
        assert calls[0] == calls[1]
        assert len({tuple(sorted(c.items())) for i, c in enumerate(calls) if (i + 1) % STEPS}) == 1


def test_an_argument_is_written_and_given_gradients_where_it_lies():
    """Each rank its part: nothing is gathered, and ranks outside of the mesh have nothing to do."""

    def program():
        found = []
        for mesh in (dist.ProcessMesh([0, 1], ["x"]), dist.ProcessMesh([1], ["x"])):
            x, w = (dist.shard_tensor(paddle.ones([4, 2]), mesh, [dist.Shard(0)]) for _ in range(2))
            w.stop_gradient = False

            @paddle.jit.to_static(full_graph=True)
            def f(x, w):
                (x * w * 3).sum().backward()
                with paddle.no_grad():
                    x.add_(w)

            with count_collectives() as counts:
                f(x, w)
                f(x, w)
            assert counts.calls == {}
            assert w.grad.placements == [dist.Shard(0)]
            found.append((x._local_value().tolist(), w.grad._local_value().tolist()))
        return found

    half, whole = [[3.0, 3.0]] * 2, [[3.0, 3.0]] * 4
    gradients = [[9.0, 9.0]] * 2, [[9.0, 9.0]] * 4  # 3, then 6 of what was written by then
    assert run_ranks(program, 2)[1] == [(half, gradients[0]), (whole, gradients[1])]


def train_scaled(kind):
    """Losses of a captured step whose losses are scaled, the sums of parameters, the scale, and how many captures."""
    model, put, put_label = prepared(kind)
    optimizer = paddle.optimizer.AdamW(0.1, parameters=model.parameters())
    scaler = paddle.amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=2, decr_every_n_nan_or_inf=1)

    @paddle.jit.to_static(full_graph=True)
    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        return loss

    losses = []
    for number, x in enumerate(np.random.default_rng(0).standard_normal((5, 2, 4)).astype(np.float32)):
        x[0, 0] = np.inf if number == 2 else x[0, 0]
        losses.append(step(put(x), put_label(np.ones((2, 4), np.float32))))
    losses = [float(x) for x in losses if x.process_mesh is None or x.payload.is_held]
    sums = [float(p.sum()) if p.process_mesh is None else float(p._local_value().sum()) for p in model.parameters()
            if p.process_mesh is None or p.payload.is_held]  # fmt: skip
    return losses, sums, scaler.state_dict()["scale"].item(), len(step.compiled)


def test_captured_steps_on_meshes_that_lack_ranks_skip_what_overflows():
    """On every rank: of the third batch an element is infinite, and the scale has grown, shrunk, and grown."""
    losses, sums, scale, captures = run_ranks(lambda: train_scaled("one process"), 1)[0]
    assert (scale, captures) == (16.0, 1)
    first, second = run_ranks(lambda: train_scaled("two meshes"), 2)
    assert first[2:] == second[2:] == (scale, captures)
    np.testing.assert_allclose(second[0], losses, rtol=1e-5)
    np.testing.assert_allclose([*first[1], *second[1]], sums, rtol=1e-4, atol=1e-5)


def lists_of_steps():
    """By mode the lists of a model whose batches are halves of ranks, as text, and the rows that the inputs have."""
    model, put, put_label = prepared("data parallel")
    optimizer = paddle.optimizer.AdamW(0.1, parameters=model.parameters())
    step = dist.to_static(
        model, None, nn.MSELoss(), optimizer, Strategy({"gradient_merge": {"enable": True, "k_steps": 2}})
    )
    for _ in range(2):
        step(put(np.ones((6, 4), np.float32)), put_label(np.ones((6, 4), np.float32)))
    found = {mode: [made.executable.local for made in step._steps[mode].compiled] for mode in ("merge", "train")}
    lists = {mode: [one for each in made for one in each.lists.values()] for mode, made in found.items()}
    rows = {type.shape[0] for each in lists.values() for one in each for type in one.given.values()}
    return {mode: list(map(str, each)) for mode, each in lists.items()}, rows


def test_a_step_is_a_list_that_runs_one_piece():
    """Backward pass and update are one program, of each rank's rows."""
    assert run_ranks(lists_of_steps, 2) == [({"merge": ["run merge[0, 0]"], "train": ["run train[0, 0]"]}, {3})] * 2


def test_what_a_step_raises_names_its_instruction():
    """The error is that of the step, with the rank and the instruction beside it."""
    step = dist.to_static(nn.Embedding(4, 2))
    with pytest.raises(IndexError) as raised:
        step(paddle.to_tensor([7]))
    assert raised.value.__notes__[-1] == "in rank 0, instruction 0: run predict[0, 0]"
