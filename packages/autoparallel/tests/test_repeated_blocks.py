"""Equal blocks are partitioned once: the local program is to the letter that of a walk over each operation."""

import pytest

from argosy_autoparallel import Layout, ProcessMesh, Replicate, Shard
from argosy_autoparallel import partition as partitioning
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir import Builder, Program, TensorType
from argosy_pir.text.printer import print_program

MESH = ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "mp"])
R = Replicate()


def layers(depth, layouts_of_layer):
    """Dropout, two products with a spread bias between them, a norm's mean, and back again through what was made on the
    way; the layouts of the inputs."""
    program, product = Program("layers"), get_operator("matmul")
    x, seed = program.add_input(TensorType((4, 6), "float32")), program.add_input(TensorType((2,), "uint64"))
    layouts, made, gradients = [Layout(MESH, [Shard(0), R]), None], [], []
    with emit_at(Builder.at_end(program.block)):
        for number in range(depth):
            placed = layouts_of_layer(number)
            w, b, v = (program.add_input(TensorType(s, "float32")) for s in ((6, 8), (8,), (8, 6)))
            layouts += [Layout(MESH, p) for p in placed]
            bits = prim.rng_bits(seed, shape=(4, 6), counter=number)
            kept = prim.select(prim.lt(bits, prim.constant(1 << 31, "uint32", (4, 6))), x, prim.neg(x))
            hidden = prim.tanh(prim.add(product(kept, w), prim.broadcast(b, shape=(4, 8), axes=(1,))))
            x = prim.add(x, product(hidden, v))
            mean = prim.reduce_sum(x, axes=(1,))
            x = prim.sub(x, prim.broadcast(mean, shape=(4, 6), axes=(0,)))
            made.append((kept, hidden, w, v))
        for kept, hidden, w, v in reversed(made):
            inward = prim.mul(product(x, prim.transpose(v, permutation=(1, 0))), hidden)
            gradients.append(product(prim.transpose(kept, permutation=(1, 0)), inward))
            x = prim.add(product(inward, prim.transpose(w, permutation=(1, 0))), x)
    program.set_outputs([x, *gradients])
    return program, layouts


def both(monkeypatch, program, layouts, rank):
    """The local program, and the one of a walk over each operation; how many operations were walked over for each."""
    walked, made = [], []
    step = partitioning.Partitioner._operation
    monkeypatch.setattr(partitioning.Partitioner, "_operation", lambda *given: walked.append(given) or step(*given))
    for walk_blocks in (partitioning.walk_blocks, lambda walk, ops: walk.walk(ops)):
        with monkeypatch.context() as patch:
            patch.setattr(partitioning, "walk_blocks", walk_blocks)
            local = partitioning.partition(program, layouts, rank=rank)
        made.append((print_program(local.program, locations=True), len(walked)))
        walked.clear()
    return zip(*made, strict=True)


EQUAL = ([R, Shard(1)], [R, Shard(0)], [R, Shard(0)])
OTHER = ([Shard(0), R], [R, R], [Shard(0), Shard(1)])


@pytest.mark.parametrize("rank", [0, 3])
def test_equal_layers_are_walked_over_once(rank, monkeypatch):
    """Any further layer takes no step of the partitioner; text, counters of random numbers and lines are the same."""
    steps = []
    for depth in (3, 7):
        (once, each), counts = both(monkeypatch, *layers(depth, lambda _: EQUAL), rank)
        assert once == each
        assert f"counter = {depth - 1}" in once
        steps.append(counts[0])
        assert counts[0] < counts[1]
    assert steps[0] == steps[1]


def test_layers_that_lie_otherwise_are_walked_over(monkeypatch):
    """One of six has its parameters split over other ranks; what comes behind it is repeated again."""
    program, layouts = layers(6, lambda number: OTHER if number == 2 else EQUAL)
    (once, each), counts = both(monkeypatch, program, layouts, 1)
    assert once == each
    (_, _), equal = both(monkeypatch, *layers(6, lambda _: EQUAL), 1)
    assert equal[0] < counts[0] < counts[1] == equal[1]
