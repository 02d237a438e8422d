"""Compiled functions on distributed tensors that are trained from outside: both passes are programs of the ranks."""

from functools import partial

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy_autoparallel.counting import count_collectives

pytestmark = pytest.mark.usefixtures("verified_passes")


def _columns_then_rows(name, layer, mesh, sizes=None):
    if isinstance(layer, nn.Linear):
        dist.shard_tensor(layer.weight, mesh, [dist.Replicate(), dist.Shard(1 if name == "0" else 0, sizes=sizes)])


def _train(on_mesh, static, rows=None, columns=None):
    """Losses and sums of the inputs' gradients of three steps, the last backward pass's collectives, the layouts; with
    so many ``rows`` of the batch and ``columns`` on each rank, where given."""
    paddle.seed(0)
    model = nn.Sequential(nn.Linear(5, 6), nn.GELU(), nn.Linear(6, 3))
    mesh = dist.ProcessMesh([[0, 1], [2, 3]], ["dp", "mp"]) if on_mesh else None
    if on_mesh:
        dist.shard_layer(model, mesh, partial(_columns_then_rows, sizes=columns))
    optimizer = dist.shard_optimizer(
        paddle.optimizer.AdamW(0.01, parameters=model.parameters()), dist.ShardingStage1("dp") if on_mesh else None
    )
    run = paddle.jit.to_static(model, full_graph=True) if static else model
    rng, losses, calls = np.random.default_rng(0), [], {}
    for _ in range(3):
        x = paddle.to_tensor(rng.standard_normal((7, 5)).astype(np.float32), stop_gradient=False)
        x = dist.shard_tensor(x, mesh, [dist.Shard(0, sizes=rows)]) if on_mesh else x
        loss = (run(x) ** 2).mean()
        with count_collectives() as counts:
            loss.backward()
        calls = counts.calls
        losses.append((float(loss), float(x.grad.sum())))
        layouts = [x.grad.placements, model[0].weight.grad.placements]
        optimizer.step()
        optimizer.clear_grad()
    return losses, calls, layouts


@pytest.fixture(scope="module")
def expected():
    """Losses and gradients of one process."""
    return run_ranks(lambda: _train(False, False)[0], 1)[0]


@pytest.mark.parametrize("static", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(("rows", "columns"), [(None, None), ([2, 5], [5, 1])], ids=["usual sizes", "given sizes"])
def test_a_compiled_model_is_trained_from_outside(expected, static, rows, columns):
    """Uneven rows: losses and gradients are those of one process, and gradients lie like what they belong to."""
    for losses, calls, layouts in run_ranks(lambda: _train(True, static, rows, columns), 4):
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        assert sum(calls.values()) <= 6
        split = dist.Shard(0, sizes=rows), dist.Shard(1, sizes=columns)
        assert layouts == [[split[0], dist.Replicate()], [dist.Replicate(), split[1]]]


def test_a_result_between_meshes_is_trained_through():
    """The compiled part lives on one mesh, the loss on another: the gradient finds its way back."""

    def program():
        first, second = dist.ProcessMesh([0], ["x"]), dist.ProcessMesh([1], ["x"])
        w = dist.shard_tensor(paddle.to_tensor([[1.0, 2.0]], stop_gradient=False), first, [])
        double = paddle.jit.to_static(lambda x: x * w * 2, full_graph=True)
        x = dist.shard_tensor(paddle.to_tensor([[3.0, 4.0]], stop_gradient=False), first, [])
        dist.reshard(double(x), second, []).sum().backward()
        return w.grad._local_value().tolist(), x.grad._local_value().tolist()

    assert run_ranks(program, 2)[0] == ([[6, 8]], [[2, 4]])


def test_tensors_are_sharded_within_a_captured_function():
    """Ordinary arguments, a layout within: the result is distributed as it says, as when run eagerly."""

    def program():
        mesh = dist.ProcessMesh([0, 1], ["x"])
        shard = paddle.jit.to_static(lambda x: dist.shard_tensor(x * 2, mesh, [dist.Shard(0)]), full_graph=True)
        made = shard(paddle.ones([3, 2]))
        return made.placements, made._local_value().shape, made.tolist()

    (_, _, whole), (placements, part, _) = run_ranks(program, 2)
    assert (whole, placements, part) == ([[2, 2]] * 3, [dist.Shard(0)], [1, 2])


def test_tensors_are_unsharded_within_a_captured_step():
    """unshard_dtensor gives an ordinary tensor there, too, and passes its gradient on."""

    def program(mesh):
        w = dist.shard_tensor(paddle.to_tensor([[1.0], [2.0], [3.0]], stop_gradient=False), mesh, [dist.Shard(0)])

        @paddle.jit.to_static(full_graph=True)
        def step(x):
            whole = dist.unshard_dtensor(w * x)
            (whole * whole).sum().backward()
            return whole

        made = step(paddle.to_tensor(2.0))
        return made.is_dist(), made.tolist(), w.grad.placements, w.grad.tolist()

    for found in run_ranks(lambda: program(dist.ProcessMesh([0, 1], ["x"])), 2):
        assert found == (False, [[2], [4], [6]], [dist.Shard(0)], [[8], [16], [24]])
    with pytest.raises(ValueError, match="the mesh should have all ranks"):
        run_ranks(lambda: program(dist.ProcessMesh([0], ["x"])), 2)


@pytest.mark.parametrize("level", [None, 3], ids=["data parallel", "ZeRO 3"])
def test_steps_that_overlap_communication_have_the_bits_of_others(level):
    """``dp_optimization`` and ``sharding.enable_overlap``: collectives are started, and nothing else changes."""

    def program(overlap):
        paddle.seed(0)
        model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(96, 96), nn.GELU())])
        mesh = dist.ProcessMesh([0, 1], ["dp"])
        dist.shard_layer(model, mesh)
        optimizer = paddle.optimizer.AdamW(0.01, parameters=model.parameters())
        strategy = dist.Strategy({"dp_optimization": {"enable": overlap}})
        if level:
            sharding = {"enable": True, "stage": level, "degree": 2, "enable_overlap": overlap}
            strategy = dist.Strategy({"sharding": sharding})
        step = dist.to_static(model, None, nn.MSELoss(), optimizer, strategy)
        rng, losses = np.random.default_rng(0), []
        for _ in range(3):
            x = dist.shard_tensor(rng.standard_normal((64, 96)).astype(np.float32), mesh, [dist.Shard(0)])
            losses.append(float(step(x, x)))
        names = [op.name for op in step.dist_main_program().walk()]
        return losses, names.count("prim.start"), names.count("prim.wait")

    (losses, started, _), *_ = run_ranks(lambda: program(False), 2)
    assert started == 0
    for mine, started, waited in run_ranks(lambda: program(True), 2):
        assert mine == losses
        assert started == waited > 0


@pytest.mark.parametrize("static", [False, True], ids=["eager", "compiled"])
def test_gradients_of_the_largest_elements_move_those_alone(static):
    """A captured program runs the rule of ``topk`` and its derivative; none gathers what is split."""
    values = np.random.default_rng(0).standard_normal((4, 40)).astype(np.float32)

    def largest(x):
        y = x * 1
        y.stop_gradient = False
        (gradient,) = paddle.grad([paddle.topk(y, 2)[0].square().sum()], [y])
        return gradient

    def program():
        run = paddle.jit.to_static(largest, full_graph=True) if static else largest
        with dist.strict(), count_collectives() as counts:
            made = run(dist.shard_tensor(values, dist.ProcessMesh([0, 1]), [dist.Shard(1)]))
        return made.numpy(), counts.calls

    expected = largest(paddle.to_tensor(values)).numpy()
    for gradient, calls in run_ranks(program, 2):
        np.testing.assert_array_equal(gradient, expected)
        assert calls["all_gather"] == 2
        assert static is (calls.keys() == {"all_gather"})


def _train_open_sizes(ranks, placement):
    """Losses of a step whose batch is open, for several sizes, and the shapes for which it was captured."""
    paddle.seed(0)
    mesh = dist.ProcessMesh(list(range(ranks)), ["x"])
    model = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Dropout(0.5), nn.Linear(6, 3))
    for name, axis in (("0", 1), ("3", 0)):
        dist.shard_tensor(getattr(model, name).weight, mesh, [dist.Shard(axis)])
    dist.shard_layer(model, mesh)
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
    shapes, losses = [], []

    @paddle.jit.to_static(
        full_graph=True, input_spec=[paddle.static.InputSpec([None, 4]), paddle.static.InputSpec([None], "int64")]
    )
    def train(x, y):
        shapes.append([str(n) for n in x.shape])
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    rng = np.random.default_rng(0)
    for size in (4, 6, 5):
        batch = rng.standard_normal((size, 4)).astype(np.float32), rng.integers(0, 3, size)
        losses.append(float(train(*[dist.shard_tensor(a, mesh, [placement]) for a in batch])))
    return losses, shapes


@pytest.mark.parametrize("placement", [dist.Replicate(), dist.Shard(0)], ids=str)
def test_one_program_serves_batches_of_several_sizes(placement):
    """Its batch is a symbol on a mesh, too; sizes that ranks cannot have equal parts of get a program of their own."""
    losses, _ = run_ranks(lambda: _train_open_sizes(1, placement), 1)[0]
    for found, shapes in run_ranks(lambda: _train_open_sizes(2, placement), 2):
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        assert shapes[1:] == ([["5", "4"]] if placement.is_shard() else [])


def test_loops_whose_weights_are_split_communicate_within():
    """A recurrent layer's weights stay split, forward and back."""

    def main(ranks):
        paddle.seed(0)
        mesh, model = dist.ProcessMesh(list(range(ranks)), ["x"]), nn.SimpleRNN(4, 6)
        for p in model.parameters():
            dist.shard_tensor(p, mesh, [dist.Shard(0)])
        x = dist.shard_tensor(np.random.default_rng(0).standard_normal((2, 5, 4), np.float32), mesh, [])
        run = paddle.jit.to_static(lambda x: model(x)[0].square().sum(), full_graph=True)
        run(x).backward()
        return float(run(x)), [p.grad.numpy() for p in model.parameters()], dist.report_collectives(run).collectives

    loss, gradients, _ = run_ranks(lambda: main(1), 1)[0]
    for found, grads, collectives in run_ranks(lambda: main(2), 2):
        np.testing.assert_allclose(found, loss, rtol=1e-5)
        for a, b in zip(grads, gradients, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        assert any(c.repeated for c in collectives)


def test_the_loss_of_a_step_is_summed_with_the_gradients():
    """One collective brings both; afterwards a rank reads the loss while others do not. A forward pass alone that is
    trained from outside keeps its terms, and so does what is reduced in another way than gradients."""

    def program():
        paddle.seed(0)
        mesh = dist.ProcessMesh([0, 1], ["dp"])
        model = dist.shard_layer(nn.Linear(4, 3), mesh)
        optimizer = dist.shard_optimizer(paddle.optimizer.SGD(0.1, parameters=model.parameters()))
        (x,) = dist.shard_dataloader([paddle.arange(24.0).reshape([6, 4]) / 24], mesh, shard_dims="dp")
        terms = paddle.jit.to_static(lambda x: (model(x) ** 2).mean(), full_graph=True)(x)

        @paddle.jit.to_static(full_graph=True)
        def step(x):
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss, loss.astype("float64"), x.max()

        with count_collectives() as counts:
            loss, wide, largest = step(x)
        read = loss.item() if dist.get_rank() == 0 else None
        placed = [each.placements for each in (loss, terms, wide, largest)]
        return counts.calls, placed, read, float(terms), float(largest)

    (calls, placed, read, alone, largest), _ = run_ranks(program, 2)
    one, *others = placed
    assert (calls, one) == ({"all_reduce": 1}, [dist.Replicate()])
    assert others == [[dist.Partial()], [dist.Partial()], [dist.Partial(dist.ReduceType.kRedMax)]]
    assert (read, largest) == (pytest.approx(alone, rel=1e-6), np.float32(23 / 24))
