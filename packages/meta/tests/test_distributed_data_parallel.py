"""DataParallel: the gradients and steps of one process that has all the data, and names of the distributed face."""

import subprocess
import sys

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy_autoparallel.counting import count_collectives
from argosy_hwadapt.errors import CollectiveMismatch

ROWS = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)


def _model(seed):
    paddle.seed(seed)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1))


def _train(ranks, merge=False):
    """Weights after three steps; ``merge`` takes two backward passes a step, the first within no_sync()."""
    rank = dist.get_rank()
    inner = _model(rank)
    model = paddle.DataParallel(inner) if ranks > 1 else inner
    optimizer = paddle.optimizer.AdamW(0.05, parameters=model.parameters())
    rows = ROWS[rank * len(ROWS) // ranks : (rank + 1) * len(ROWS) // ranks]
    for _ in range(3):
        if merge and ranks > 1:
            half = len(rows) // 2
            with model.no_sync():
                (model(paddle.to_tensor(rows[:half])).square().mean() / 2).backward()
            (model(paddle.to_tensor(rows[half:])).square().mean() / 2).backward()
        else:
            model(paddle.to_tensor(rows)).square().mean().backward()
        optimizer.step()
        optimizer.clear_grad()
    return [(name, value.numpy()) for name, value in model.state_dict().items()]


@pytest.mark.parametrize("merge", [False, True], ids=["each pass", "merged"])
def test_ranks_train_as_one_process_on_all_rows(merge):
    """Ranks begin with rank 0's values, whatever their seeds, and stay equal to the run on the whole batch."""
    (expected,) = run_ranks(lambda: _train(1), 1)
    for found in run_ranks(lambda: _train(2, merge), 2):
        for (name, value), (wanted, whole) in zip(found, expected, strict=True):
            assert name == wanted
            np.testing.assert_allclose(value, whole, rtol=1e-5, atol=1e-6)


def test_a_group_averages_among_its_members():
    """Two groups of two ranks: gradients are means over the group alone."""

    def program():
        rank = dist.get_rank()
        groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        layer = paddle.DataParallel(nn.Linear(1, 1, bias_attr=False), group=groups[rank // 2])
        layer(paddle.to_tensor([[float(rank)]])).sum().backward()
        return layer.parameters()[0].grad.item()

    assert run_ranks(program, 4) == [0.5, 0.5, 2.5, 2.5]


@pytest.mark.parametrize("whole", [True, False])
def test_a_captured_step_averages_gradients(whole):
    """The compiled step has the gradients of eager execution, from one collective."""

    def program():
        model = paddle.DataParallel(_model(0))
        rows = paddle.to_tensor(ROWS[dist.get_rank() * 4 :][:4])

        def step(x):
            loss = model(x).square().mean()
            loss.backward()
            found = [p.grad * 1 for p in model.parameters()]
            for p in model.parameters():
                p.clear_gradient()
            return found

        run = paddle.jit.to_static(step, full_graph=whole)
        found = run(rows)
        with count_collectives() as counts:
            found = run(rows)
        return [g.numpy() for g in found], [g.numpy() for g in step(rows)], counts.calls

    for found, expected, calls in run_ranks(program, 2):
        assert calls == {"all_reduce": 1}
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-7)


def test_ranks_that_use_other_parameters_are_told():
    """Gradients of different parameters are an error, at the latest where sizes differ."""

    def program():
        layers = paddle.nn.LayerList([nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)])
        model = paddle.DataParallel(layers)
        used = layers[2 * dist.get_rank()]
        used(paddle.ones([1, 3])).sum().backward()
        return model

    with pytest.raises(CollectiveMismatch, match="ranks disagree"):
        run_ranks(program, 2)


def test_hooks_of_parameters_come_before_the_average():
    """A parameter's own hook sees and changes this rank's gradient; several backward passes add up means."""

    def program():
        layer = nn.Linear(1, 1, bias_attr=False)
        model = paddle.DataParallel(layer)
        seen = []
        layer.weight.register_hook(lambda g: seen.append(g.item()) or g * 10)
        for _ in range(2):
            model(paddle.to_tensor([[float(dist.get_rank() + 1)]])).sum().backward()
        return seen, layer.weight.grad.item()

    assert run_ranks(program, 2) == [([1.0, 1.0], 30.0), ([2.0, 2.0], 30.0)]


def test_one_process_needs_no_group():
    """Alone DataParallel is the layer."""
    layer = nn.Linear(2, 1)
    wrapped = paddle.DataParallel(layer)
    x = paddle.ones([3, 2])
    assert wrapped(x).tolist() == layer(x).tolist()
    assert list(wrapped.state_dict()) == ["weight", "bias"]
    assert wrapped.scale_loss(x) is x
    with pytest.raises(TypeError, match="takes a Layer, not int"):
        paddle.DataParallel(3)


def test_objects_travel_between_two_ranks():
    """send_object_list and recv_object_list: any picklable objects, in place, by number in the job or in the group."""

    def program():
        group = dist.new_group([0, 1])
        found = [None, None]
        if dist.get_rank() == 0:
            dist.send_object_list([{"a": 1}, "two"], dst=1)
            dist.send_object_list([3, 4], group=group, dst_in_group=1)
            return None
        first = list(found)
        dist.recv_object_list(first, src=0)
        dist.recv_object_list(found, group=group, src_in_group=0)
        return first, found

    assert run_ranks(program, 2)[1] == ([{"a": 1}, "two"], [3, 4])


def test_streams_communicate_like_the_functions():
    """communication.stream's functions are the collectives; asking for the stream of computation changes nothing."""

    def program():
        stream, rank = dist.communication.stream, dist.get_rank()
        x = paddle.to_tensor([1.0 + rank])
        stream.all_reduce(x, use_calc_stream=True)
        rows = [paddle.zeros([1]), paddle.zeros([1])]
        stream.all_gather(rows, paddle.to_tensor([float(rank)]))
        together = paddle.zeros([2])
        stream.all_gather(together, paddle.to_tensor([float(rank)]))
        part = paddle.zeros([1])
        stream.reduce_scatter(part, paddle.to_tensor([1.0, 2.0]))
        turned = paddle.zeros([2])
        stream.alltoall(turned, paddle.to_tensor([10.0 * rank, 10.0 * rank + 1]))
        mine = paddle.zeros([1])
        stream.scatter(mine, paddle.to_tensor([5.0, 6.0]) if rank == 0 else None)
        return x.item(), [r.item() for r in rows], together.tolist(), part.item(), turned.tolist(), mine.item()

    assert run_ranks(program, 2) == [
        (3.0, [0.0, 1.0], [0.0, 1.0], 2.0, [0.0, 10.0], 5.0),
        (3.0, [0.0, 1.0], [0.0, 1.0], 4.0, [1.0, 11.0], 6.0),
    ]


def test_every_tensor_says_whether_it_is_distributed():
    """is_dist(), placements and process_mesh answer for ordinary tensors in a process that never used a mesh."""
    code = "import argosy; x = argosy.ones([2]); print(x.is_dist(), x.placements, x.process_mesh)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False None None\n", "")
