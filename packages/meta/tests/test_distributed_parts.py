"""Parts of distributed tensors as ordinary tensors: gradients through them, functions on them, groups of mesh lines."""

import copy

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed.debug import run_ranks

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def _mesh(names=("x",)):
    return dist.ProcessMesh(list(range(dist.get_world_size())), list(names))


@pytest.mark.parametrize("placement", [dist.Shard(0), dist.Shard(1), dist.Replicate(), dist.Partial()])
def test_gradients_come_back_to_parts(placement):
    """The gradient of a part is that part of the whole gradient, and of a term of a sum the whole of it."""

    def program():
        part = paddle.to_tensor(ROWS[:2] + dist.get_rank(), stop_gradient=False)
        whole = dist.dtensor_from_local(part * 2, _mesh(), [placement])
        weights = paddle.arange(whole.size, dtype="float32").reshape(whole.shape)
        (whole * weights).sum().backward()
        return part.grad.numpy(), weights.numpy()

    for rank, (grad, weights) in enumerate(run_ranks(program, 2)):
        axis = placement.get_dim() if placement.is_shard() else None
        mine = weights if axis is None else np.split(weights, 2, axis)[rank]
        np.testing.assert_array_equal(grad, 2 * mine)


@pytest.mark.parametrize("captured", [False, True])
def test_uneven_parts_are_the_tensor_again(captured):
    """What ranks made of uneven parts has the shape that the tensor had: its mean counts every element once."""

    def program():
        double = dist.local_map(lambda part: 2 * part, [[dist.Shard(0)]], [[dist.Shard(0)]], _mesh())

        def mean(x):
            y = double(x)
            return y.mean(), y

        x = dist.shard_tensor(ROWS[:3], _mesh(), [dist.Shard(0)])
        found, whole = (paddle.jit.to_static(mean, full_graph=True) if captured else mean)(x)
        return found.item(), whole.numpy()

    for found, whole in run_ranks(program, 2):
        assert found == 2 * ROWS[:3].mean()
        np.testing.assert_array_equal(whole, 2 * ROWS[:3])


@pytest.mark.parametrize("rows", [4, 3])
def test_gradients_come_back_from_parts(rows):
    """What ranks do to their parts (uneven ones, too) is differentiated into the distributed tensor."""

    def program():
        x = dist.shard_tensor(ROWS[:rows], _mesh(), [dist.Shard(0)], stop_gradient=False)
        part = dist.dtensor_to_local(x * 3)
        (part * part).sum().backward()
        return x.grad.placements, x.grad.numpy()

    for placements, grad in run_ranks(program, 2):
        assert placements == [dist.Shard(0)]
        np.testing.assert_array_equal(grad, 18 * ROWS[:rows])


def test_a_pylayer_takes_distributed_tensors():
    """Its backward gets and gives distributed gradients; hooks see them, too."""

    class Square(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensor()
            return 2 * x * g

    def program():
        x = dist.shard_tensor(ROWS, _mesh(), [dist.Shard(0)], stop_gradient=False)
        y, seen = Square.apply(x), []
        y.register_hook(lambda g: seen.append(g.placements))
        y.sum().backward()
        return seen, x.grad.placements, x.grad.numpy()

    for seen, placements, grad in run_ranks(program, 2):
        assert seen in ([[dist.Replicate()]], [[dist.Shard(0)]])
        assert placements == [dist.Shard(0)]
        np.testing.assert_array_equal(grad, 2 * ROWS)


def test_copies_keep_their_layout():
    """A deep copy of a layer has parameters of its own, laid out alike."""

    def program():
        layer = paddle.nn.Linear(3, 2)
        dist.shard_tensor(layer.weight, _mesh(), [dist.Shard(0)])
        twin = copy.deepcopy(layer)
        before = layer.weight.numpy()
        layer.weight.set_value(np.zeros((3, 2), np.float32))
        return twin.weight.placements, twin.weight.is_parameter, np.array_equal(twin.weight.numpy(), before)

    assert run_ranks(program, 2) == [([dist.Shard(0)], True, True)] * 2


def test_local_map_runs_a_function_on_parts():
    """Results are put together as out_placements says, and gradients flow through."""

    def program():
        mesh = _mesh()
        x = dist.shard_tensor(ROWS, mesh, [dist.Shard(0)], stop_gradient=False)
        mapped = dist.local_map(
            lambda part, scale: ((part * scale).sum(), part.shape),
            out_placements=[[dist.Partial()], None, None], in_placements=[[dist.Shard(0)], None],
        )  # fmt: skip
        total, shape = mapped(x, 2.0)
        total.backward()
        whole = dist.reshard(x, mesh, [dist.Replicate()])
        moved = dist.local_map(lambda p: p + 1, [[dist.Shard(0)]], [[dist.Shard(0)]], mesh, reshard_inputs=True)(whole)
        return total.placements, float(total), shape, x.grad.numpy(), moved.placements, moved.numpy()

    for placements, total, shape, grad, moved, value in run_ranks(program, 2):
        assert (placements, total, shape) == ([dist.Partial()], 2 * ROWS.sum(), [2, 3])
        np.testing.assert_array_equal(grad, np.full((4, 3), 2))
        assert moved == [dist.Shard(0)]
        np.testing.assert_array_equal(value, ROWS + 1)


@pytest.mark.parametrize(
    ("out_placements", "in_placements", "message"),
    [
        ([[dist.Shard(0)]], [[dist.Shard(1)]], "argument 0 lies as .* give reshard_inputs=True"),
        ([[dist.Shard(0)]], [], "0 in_placements for 1 arguments"),
        ([], None, "0 out_placements for 1 results"),
        ([None], None, "result 0 is a tensor without placements"),
    ],
)
def test_local_map_says_what_does_not_fit(out_placements, in_placements, message):
    """Placements that fit neither arguments nor results are named."""
    x = dist.shard_tensor(ROWS, _mesh(), [dist.Shard(0)])
    with pytest.raises(ValueError, match=message):
        dist.local_map(lambda part: part, out_placements, in_placements)(x)


def test_lines_of_a_mesh_are_groups():
    """get_group gives this rank's line along a dimension, the same one each time, fit for collectives."""

    def program():
        mesh = dist.ProcessMesh([[0, 1], [2, 3]], ["a", "b"])
        group = mesh.get_group("a")
        x = paddle.full([2], float(dist.get_rank()))
        dist.all_reduce(x, group=group)
        outside = dist.ProcessMesh([1, 2]).get_group()
        return group.ranks, x.tolist(), mesh.get_group("a") is group, outside.is_member(), outside.rank

    got = run_ranks(program, 4)
    assert [g[0] for g in got] == [[0, 2], [1, 3], [0, 2], [1, 3]]
    assert [g[1] for g in got] == [[2.0] * 2, [4.0] * 2, [2.0] * 2, [4.0] * 2]
    assert all(g[2] for g in got)
    assert [g[3:] for g in got] == [(False, -1), (True, 0), (True, 1), (False, -1)]
    with pytest.raises(ValueError, match="name one of the dimensions"):
        dist.ProcessMesh([[0]]).get_group()


def test_ranks_skip_a_step_together():
    """With shard_scaler an overflow on one rank stops the step of every rank."""

    def program(shared):
        layer = paddle.nn.Linear(2, 1, bias_attr=False)
        layer.weight.set_value(np.ones((2, 1), np.float32))
        optimizer = paddle.optimizer.SGD(1.0, parameters=layer.parameters())
        scaler = paddle.amp.GradScaler(init_loss_scaling=4.0)
        if shared:
            scaler = dist.shard_scaler(scaler)
        x = paddle.full([1, 2], float("inf") if dist.get_rank() else 1.0)
        scaler.scale(layer(x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        return layer.weight.tolist(), scaler.state_dict()["scale"]

    kept, stepped = [[1.0], [1.0]], [[0.0], [0.0]]
    assert run_ranks(lambda: program(True), 2) == [(kept, 2.0)] * 2
    assert [weight for weight, _ in run_ranks(lambda: program(False), 2)] == [stepped, kept]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x, m: dist.shard_tensor(x, [0], []), TypeError, "needs a ProcessMesh, got list"),
        (lambda x, m: dist.dtensor_from_local(dist.shard_tensor(x, m, []), m, []), TypeError, "an ordinary tensor"),
        (lambda x, m: dist.shard_scaler(x), TypeError, "takes a GradScaler, not Tensor"),
    ],
)
def test_wrong_calls_teach(call, error, message):
    """What is no mesh, no part, no scaler is said to be none."""
    with pytest.raises(error, match=message):
        call(paddle.ones([2]), _mesh())


def test_a_local_layer_computes_on_parts():
    """Paddle's example, each rank's masked mean, summed; gradients of a shared weight are terms of a sum."""

    class Masked(dist.LocalLayer):
        def forward(self, x, w):
            kept = x[:2] if dist.get_rank() == 0 else x[1:]
            return (kept * w).mean()

    def program():
        mesh = dist.ProcessMesh([0, 1], ["x"])
        layer = Masked([(mesh, [dist.Partial()])], [None, (mesh, [dist.Partial()])])
        x = dist.shard_tensor(paddle.arange(6, dtype="float32"), mesh, [dist.Shard(0)], stop_gradient=False)
        w = dist.shard_tensor(paddle.to_tensor([2.0], stop_gradient=False), mesh, [])
        total = layer(x, w)
        total.backward()
        layer.out_dist_attrs = []
        with pytest.raises(ValueError, match="0 out_dist_attrs for 1 results"):
            layer(x, w)
        return total.item(), w.grad.tolist(), x.grad.tolist()

    for total, weight, gradient in run_ranks(program, 2):
        assert (total, weight) == (10.0, [5.0])  # (0 + 1) / 2 + (4 + 5) / 2, times two
        assert gradient == [1, 1, 0, 0, 1, 1]


def test_a_tensor_keeps_the_names_of_its_own_mesh():
    """Meshes of the same ranks are equal whatever their dimensions are called; what is remembered of one tensor must
    not rename those of another.
    """

    def names():
        kept = []
        for name in ("dp", "x"):
            mesh = dist.ProcessMesh([0, 1], dim_names=[name])
            x = dist.shard_tensor(paddle.ones([4, 4]), mesh, [dist.Shard(0)])
            kept += [x, x + x]
        return [x.process_mesh.dim_names for x in kept]

    assert run_ranks(names, 2) == [[["dp"], ["dp"], ["x"], ["x"]]] * 2
