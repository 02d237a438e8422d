"""What ranks do each for itself within captured functions: collectives, parts of tensors and functions on them."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed.debug import run_ranks
from argosy_autoparallel.counting import count_collectives
from argosy_hwadapt.errors import CollectiveMismatch, RankFailure

ROWS = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
WEIGHT = np.random.default_rng(1).standard_normal((3, 2)).astype(np.float32)


def in_place(x, group):
    """Collectives that overwrite."""
    rank = dist.get_rank()
    total, largest, first, reduced = x * 2, x * 1, x + rank, x * 3
    dist.all_reduce(total, group=group)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    dist.broadcast(first, 1)
    dist.reduce(reduced, 2)
    part, given = paddle.zeros([2]), paddle.zeros_like(x)
    dist.reduce_scatter(part, [x[:2] * (i + 1) for i in range(3)])
    dist.scatter(given, [x, x + 10, x + 20] if rank == 0 else None, src=0)
    dist.barrier()
    return total, largest, first, reduced, part, given


def between_lists(x, group):
    """Collectives that give lists."""
    gathered, there, exchanged = [], [], [paddle.zeros_like(x) for _ in range(3)]
    dist.all_gather(gathered, x, group=group)
    dist.gather(x, there, dst=1)
    dist.alltoall(exchanged, [x, x * 10, x * 100])
    return *gathered, *there, *exchanged


def messages(x, group):
    """Parts of uneven sizes, and messages round a ring, asked for before they are sent."""
    rank, size = dist.get_rank(), dist.get_world_size()
    equal, uneven = paddle.zeros_like(x), paddle.zeros([3 * (rank + 1)])
    dist.alltoall_single(equal, x)
    dist.alltoall_single(uneven, paddle.concat([x, x]), [1, 2, 3], [rank + 1] * 3)
    left, right = paddle.zeros_like(x), paddle.zeros_like(x)
    ring = [dist.P2POp(dist.irecv, left, (rank - 1) % size), dist.P2POp(dist.isend, x, (rank + 1) % size)]
    for task in dist.batch_isend_irecv(ring):
        task.wait()
    dist.send(x * 5, (rank - 1) % size)
    dist.recv(right, (rank + 1) % size)
    return equal, uneven, left, right


@pytest.mark.parametrize("function", [in_place, between_lists, messages])
def test_collectives_are_captured(function):
    """Compiled programs communicate what eager execution does, again at each call; groups as well."""

    def program():
        pair, alone = dist.new_group([0, 2]), dist.new_group([1])
        group = pair if pair.is_member() else alone
        compiled = [paddle.jit.to_static(function, full_graph=whole) for whole in (True, False)]
        for step in range(2):
            x = paddle.arange(3, dtype="float32") * (dist.get_rank() + 1) + step
            expected = function(x, group)
            for run in compiled:
                for found, wanted in zip(run(x, group), expected, strict=True):
                    np.testing.assert_array_equal(found.numpy(), wanted.numpy())
        return paddle.jit.report()

    paddle.jit.clear_report()
    assert run_ranks(program, 3) == [[]] * 3


def reduced(weight, x):
    """A loss of terms that ranks have: the gradient passes the sum as it is."""
    term = (weight * x).sum()
    dist.all_reduce(term)
    return term * term


def trained(weight, x):
    """The same, trained within."""
    (found,) = paddle.grad(reduced(weight, x), [weight])
    return found


def test_gradients_pass_collectives_as_eagerly():
    """Within a captured step, and by a backward() outside of the captured part."""

    def program():
        x = paddle.to_tensor([1.0, 3.0]) * (dist.get_rank() + 1)
        found = []
        for function in (reduced, paddle.jit.to_static(reduced, full_graph=True)):
            weight = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
            function(weight, x).backward()
            found.append(weight.grad.tolist())
        weight = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        return *found, paddle.jit.to_static(trained, full_graph=True)(weight, x).tolist()

    for rank, found in enumerate(run_ranks(program, 2)):
        assert found == ([42.0 * (rank + 1), 126.0 * (rank + 1)],) * 3


def test_a_graph_breaks_after_communication():
    """What was communicated before a break is not communicated again."""

    def stepped(x):
        dist.all_reduce(x)
        return x * 2 if x.sum().item() > 10 else x * 3

    def program():
        run = paddle.jit.to_static(stepped)
        with count_collectives() as counts:
            first = run(paddle.ones([2])).tolist()
        second = run(paddle.ones([2]) * 10).tolist()
        return first, second, counts.calls

    assert run_ranks(program, 2) == [([6.0, 6.0], [40.0, 40.0], {"all_reduce": 1})] * 2


def disagree(x):
    """A sum on one rank, lists of all on the other."""
    if dist.get_rank() == 0:
        dist.all_reduce(x)
    else:
        dist.all_gather([], x)
    return x


def test_captured_calls_that_differ_name_their_line():
    """Besides both ranks' calls, the line within the captured function."""
    with pytest.raises(CollectiveMismatch, match=r"rank 0 calls all_reduce.* rank 1 calls all_gather") as caught:
        run_ranks(lambda: paddle.jit.to_static(disagree, full_graph=True)(paddle.ones([2])), 2)
    line = disagree.__code__.co_firstlineno + 3
    assert f"'prim.all_reduce' at {__file__}:{line}" in "".join(caught.value.__notes__)


def test_objects_are_not_captured():
    """Python's objects are no part of a program: an error, or a break of the graph."""

    def listing(x):
        found = []
        dist.all_gather_object(found, dist.get_rank())
        return x + len(found)

    def program():
        with pytest.raises(NotImplementedError, match="all_gather_object within a captured function"):
            paddle.jit.to_static(listing, full_graph=True)(paddle.ones([1]))
        return paddle.jit.to_static(listing)(paddle.ones([1])).tolist()

    assert run_ranks(program, 2) == [[3.0]] * 2


# ---- parts


def mesh():
    """All ranks in a line."""
    return dist.ProcessMesh(list(range(dist.get_world_size())), ["x"])


def on_parts(x, weight):
    """A function on uneven parts between operators on the whole; its second result is a term of a sum."""
    rows, total = dist.local_map(
        lambda part, w: (paddle.tanh(part @ w), (part @ w).sum()),
        [[dist.Shard(0)], [dist.Partial()]], [[dist.Shard(0)], None],
    )(x * 2, weight)  # fmt: skip
    assert rows.is_dist()
    assert (rows.process_mesh, rows.placements) == (mesh(), [dist.Shard(0)])
    return (rows * rows).sum() + total * total


def there_and_back(x, weight):
    """Parts with a factor of the rank's own, in another layout than the tensor has."""
    part = dist.dtensor_to_local(x @ weight, mesh(), [dist.Shard(1)])
    return (dist.dtensor_from_local(part * (dist.get_rank() + 1), mesh(), [dist.Shard(1)]) ** 2).sum()


class Terms(dist.LocalLayer):
    """The parts' sums; the layer's gradient is laid out like the input."""

    def __init__(self):
        super().__init__([(mesh(), [dist.Partial()])], [(mesh(), [dist.Shard(0)])])

    def forward(self, part):
        """A term of the sum."""
        return (part * (dist.get_rank() + 1)).sum()


def by_layer(x, weight):
    """A LocalLayer in the middle."""
    return Terms()(x * 3) ** 2 + weight.sum()


@pytest.mark.parametrize("function", [on_parts, there_and_back, by_layer])
def test_parts_are_captured(function):
    """Losses, gradients and their layouts, and collectives are those of eager execution."""

    def run(function, trained_within):
        x = dist.shard_tensor(ROWS, mesh(), [dist.Shard(0)], stop_gradient=False)
        weight = dist.shard_tensor(WEIGHT, mesh(), [dist.Replicate()], stop_gradient=False)
        with count_collectives() as counts:
            if trained_within:
                loss, *grads = function(x, weight)
            else:
                loss = function(x, weight)
                loss.backward()
                grads = [x.grad, weight.grad]
        return [loss.numpy(), *(g.numpy() for g in grads)], [g.placements for g in grads], counts.calls

    def stepped(x, weight):
        loss = function(x, weight)
        return loss.detach(), *paddle.grad(loss, [x, weight])

    def program():
        return (
            run(function, False),
            run(paddle.jit.to_static(function, full_graph=True), False),
            run(paddle.jit.to_static(stepped, full_graph=True), True),
        )

    for eager, compiled, step in run_ranks(program, 2):
        for found in (compiled, step):
            for value, expected in zip(found[0], eager[0], strict=True):
                np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)
        assert compiled[1] == eager[1]
        assert sum(step[2].values()) <= sum(eager[2].values())


def test_layouts_are_known_while_capturing():
    """Placements of traced tensors are those that the compiled program gives them; bad ones are refused as eagerly."""

    def seen(x, weight):
        y = x @ weight
        z = dist.reshard(paddle.tanh(y), y.process_mesh, y.placements)
        assert not paddle.ones([2]).is_dist()
        return y.placements, z

    def program():
        x = dist.shard_tensor(ROWS, mesh(), [dist.Shard(1)])
        weight = dist.shard_tensor(WEIGHT, mesh(), [dist.Shard(0)])
        placements, z = paddle.jit.to_static(seen, full_graph=True)(x, weight)
        unfit = dist.local_map(lambda part: part, [[dist.Shard(0)]], [[dist.Shard(0)]])
        with pytest.raises(ValueError, match=r"argument 0 lies as .* give reshard_inputs=True"):
            paddle.jit.to_static(unfit, full_graph=True)(x)
        return placements, z.placements

    for placements, after in run_ranks(program, 2):
        assert (placements, after) == ([dist.Partial()], [dist.Partial()])


def test_collectives_within_branches_and_loops():
    """All ranks take the same way, since the condition is the same for all of them."""

    def branch(x, flag):
        if flag.sum() > 0:
            y = x * 2
            dist.all_reduce(y)
        else:
            y = x
        return y

    def loop(x, count):
        i = paddle.zeros([], "int64")
        while i < count:
            y = x * 1.0
            dist.all_reduce(y)
            x = x + y
            i = i + 1
        return x

    def program():
        x = paddle.ones([2]) * (dist.get_rank() + 1)
        branched = [paddle.jit.to_static(branch, full_graph=True)(x, paddle.ones([1]) * s) for s in (1, -1)]
        with count_collectives() as counts:
            looped = paddle.jit.to_static(loop, full_graph=True)(x, paddle.to_tensor(3))
        return [y.tolist() for y in (*branched, looped)], counts.calls

    assert run_ranks(program, 2) == [
        ([[6.0, 6.0], [rank + 1.0] * 2, [40.0 + rank] * 2], {"all_reduce": 3}) for rank in range(2)
    ]


def test_parts_within_a_branch_are_refused():
    """By name, with what to do instead; ranks that take different ways to a collective are told so."""

    def parts(x, flag):
        if flag.sum() > 0:
            return dist.local_map(lambda part: part + 1, [[dist.Shard(0)]])(x * 2)
        return x

    def program():
        x = dist.shard_tensor(ROWS, mesh(), [dist.Shard(0)])
        with pytest.raises(NotImplementedError, match=r"within a captured branch .* before it or after it"):
            paddle.jit.to_static(parts, full_graph=True)(x, paddle.ones([1]))
        return True

    def apart(x):
        y = x * 1.0
        if x.sum() > 1:
            dist.all_reduce(y)
        return y

    assert run_ranks(program, 2) == [True, True]
    with pytest.raises(RankFailure, match=r"rank 1 waits in all_reduce.* rank 0 has already finished"):
        run_ranks(lambda: paddle.jit.to_static(apart, full_graph=True)(paddle.ones([1]) * dist.get_rank() * 2), 2)


def exchange(x, group, peer):
    """Every way to communicate in a group and once among all, for ranks 0 and 2 of three."""
    total, shared, part, swapped = x * 1, x * 1, paddle.zeros([1, 3]), paddle.zeros([2, 3])
    dist.all_reduce(total, group=group)
    dist.broadcast(shared, 0, group=group)
    dist.all_gather([], x, group=group)
    dist.reduce_scatter(part, [x[:1], x[1:]], group=group)
    dist.alltoall_single(swapped, x, group=group)
    pair = [dist.P2POp(dist.isend, x, peer, group), dist.P2POp(dist.irecv, swapped, peer, group)]
    for task in dist.batch_isend_irecv(pair):
        task.wait()
    dist.send(x, peer, group)
    dist.recv(swapped, peer, group)
    dist.all_reduce(total)
    return total, swapped


def test_the_report_has_what_groups_of_ranks_communicate():
    """Eagerly and in programs, with ranks, bytes and lines; of groups that were closed and opened again, too."""

    def program():
        group, rank = dist.new_group([0, 2]), dist.get_rank()
        dist.shutdown_process_group(group)
        dist.restart_process_group(group)
        captured = paddle.jit.to_static(exchange, full_graph=True)
        found = []
        for step in (exchange, captured):
            with dist.count_collectives() as counts:
                step(paddle.ones([2, 3]), group, 2 - rank) if rank != 1 else dist.all_reduce(paddle.ones([2, 3]))
            found.append(counts.report)
        return found if rank == 1 else [*found, dist.report_collectives(captured)]

    eager, run, planned = ([c for c in report.collectives if c.kind != "recv"] for report in run_ranks(program, 3)[0])
    first = exchange.__code__.co_firstlineno
    expected = [
        ("all_reduce", (0, 2), 24, 3), ("broadcast", (0, 2), 24, 4), ("all_gather", (0, 2), 24, 5),
        ("reduce_scatter", (0, 2), 12, 6), ("all_to_all", (0, 2), 12, 7), ("send", None, 24, 9), ("send", None, 24, 11),
        ("all_reduce", (), 32, 13),
    ]  # fmt: skip
    for report in (eager, run, planned):
        told = [(c.kind.removesuffix("_rank"), c.group, c.nbytes, c.line.partition(" ")[0]) for c in report]
        assert told == [(kind, ranks, size, f"{__file__}:{first + line}") for kind, ranks, size, line in expected]
        assert not any(c.implicit for c in report)
