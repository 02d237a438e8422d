"""``placements`` while capturing: those of the partitioned program, and each operation is partitioned once for them."""

import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy_autoparallel import partition
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.context import context

LAYERS = 8


class Stack(nn.Layer):
    """Pairs of a wide and a narrow layer, with the placements that are seen between them."""

    def __init__(self, pairs):
        super().__init__()
        self.wide = nn.LayerList([nn.Linear(4, 8) for _ in range(pairs)])
        self.narrow = nn.LayerList([nn.Linear(8, 4) for _ in range(pairs)])
        self.seen = []

    def forward(self, x):
        for wide, narrow in zip(self.wide, self.narrow, strict=True):
            x = x + narrow(nn.functional.gelu(wide(x)))
            self.seen.append((x, x.placements, x.process_mesh))
        return x


def whole_partition(value):
    """How the value lies by a partition of all of the program that there is."""
    tracer, mapping = active_tracer(), {}
    program = tracer.program.clone(mapping)
    program.set_outputs([mapping[value]])
    layouts = [[getattr(t.payload, "layout", None) for t in tensors] for tensors in (tracer.given, tracer.states())]
    return partition.partition(program, *layouts, context().rank).output_layouts[0]


def runs_while_capturing(monkeypatch):
    """The ranks that partition a program whole within a capture from now on."""
    runs, run = [], partition.Partitioner.run

    def counted(self, *wanted):
        runs.extend([] if active_tracer() is None else [context().rank])
        return run(self, *wanted)

    monkeypatch.setattr(partition.Partitioner, "run", counted)
    return runs


def prepared(mesh, plan):
    paddle.seed(0)
    model = Stack(LAYERS)
    dist.parallelize(model, None, mesh, {"mp_config": {"parallelize_plan": plan}})
    return model, dist.shard_tensor(paddle.ones([4, 6, 4]), mesh, [dist.Shard(0), dist.Replicate()])


PLANS = {
    "columns and rows": lambda: {"wide.*": dist.ColWiseParallel(), "narrow.*": dist.RowWiseParallel()},
    "gathered": lambda: {"wide.*": dist.ColWiseParallel(gather_output=True), "narrow.*": dist.RowWiseParallel(False)},
    "sequences": lambda: {
        **{f"wide.{i}": [dist.ColWiseParallel(), dist.SequenceParallelEnd(False)] for i in range(LAYERS)},
        **{f"narrow.{i}": [dist.RowWiseParallel(), dist.SequenceParallelBegin(False)] for i in range(LAYERS)},
    },
}


@pytest.mark.parametrize("name", PLANS)
def test_each_operation_is_partitioned_once(name, monkeypatch):
    """The hooks of eight pairs of layers ask for more than sixteen placements; the program is partitioned whole when
    it is done."""
    runs, walked = runs_while_capturing(monkeypatch), []
    walk = partition.Partitioner._operation
    monkeypatch.setattr(partition.Partitioner, "_operation", lambda self, op: walked.append(op) or walk(self, op))

    def program():
        model, x = prepared(dist.ProcessMesh([[0], [1]], ["dp", "mp"]), PLANS[name]())
        f = paddle.jit.to_static(model.forward, full_graph=True)
        f(x)
        return len(list(f.main_program.block)) if context().rank == 0 else 0

    length = sum(run_ranks(program, 2))
    assert runs == []
    assert len(walked) < 40 * length


@pytest.mark.parametrize("name", PLANS)
def test_placements_are_those_of_a_whole_partition(name):
    """Operation by operation or all at once, values lie alike."""

    def program():
        model, x = prepared(dist.ProcessMesh([[0, 1]], ["dp", "mp"]), PLANS[name]())

        def f(x):
            model.seen.clear()
            y = model(x)
            expected = [whole_partition(value.payload.value) for value, _, _ in model.seen]
            assert [(list(e.placements), e.mesh) for e in expected] == [found[1:] for found in model.seen]
            return y.sum()

        def again(x):  # what is asked late is what is asked at once
            y = f(x)
            assert [v.placements for v, _, _ in reversed(model.seen)] == [p for _, p, _ in reversed(model.seen)]
            return y

        return float(paddle.jit.to_static(again, full_graph=True)(x))

    assert len(set(run_ranks(program, 2))) == 1


def test_gradients_are_looked_at_together(monkeypatch):
    """What lies behind a gradient request takes a whole partition, once for all gradients."""
    runs = runs_while_capturing(monkeypatch)

    def program():
        mesh = dist.ProcessMesh([0, 1], ["mp"])
        layers = [nn.Linear(4, 4) for _ in range(LAYERS)]
        for layer in layers:
            dist.shard_tensor(layer.weight, mesh, [dist.Shard(1)])
        found = []

        def f(x):
            for layer in layers:
                x = layer(x)
            x.sum().backward()
            found[:] = [layer.weight.grad.placements for layer in layers]
            return x

        paddle.jit.to_static(f, full_graph=True)(dist.shard_tensor(paddle.ones([2, 4]), mesh, [dist.Replicate()]))
        return found

    for found in run_ranks(program, 2):
        assert len(found) == LAYERS
        assert all(len(placements) == 1 for placements in found)
    assert sorted(runs) == [0, 1]


def test_a_state_that_is_first_read_later_is_followed():
    """Inputs and states come as the program grows, between questions."""

    def program():
        mesh = dist.ProcessMesh([0, 1], ["mp"])
        first, second = (dist.shard_tensor(paddle.ones([4, 4]), mesh, [dist.Shard(axis)]) for axis in (0, 1))

        def f(x):
            y = x @ second
            before = y.placements
            z = first + y
            return z, before, z.placements, (z @ second).placements

        captured = paddle.jit.to_static(f, full_graph=True)
        _, before, after, last = captured(dist.shard_tensor(paddle.ones([4, 4]), mesh, [dist.Replicate()]))
        return before, after, last

    for before, after, last in run_ranks(program, 2):
        assert before == [dist.Shard(1)]
        assert after in ([dist.Shard(0)], [dist.Shard(1)])
        assert len(last) == 1
