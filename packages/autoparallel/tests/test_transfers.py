"""Transfers between meshes: each element goes to each rank that wants it, once, from a rank that has it."""

import sys
from itertools import product

import numpy as np
import pytest
from ranks import on_ranks

from argosy_autoparallel import Partial, count_collectives, partition_program, reshard, shard_tensor
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Replicate, Shard
from argosy_autoparallel.resharding.cross_mesh import plan_transfers
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.context import Context, bind_context
from argosy_pir import Program, TensorType

LINE, SQUARE = ProcessMesh([0, 1, 2]), ProcessMesh([[2, 3], [4, 5]])
PLACEMENTS = [Replicate(), Shard(0), Shard(1)]
LAYOUTS = [Layout(LINE, [p]) for p in PLACEMENTS] + [Layout(SQUARE, ps) for ps in product(PLACEMENTS, repeat=2)]
LAYOUTS += [
    Layout(LINE, [Shard(0, 2)]), Layout(LINE, [Shard(1, 3)]), Layout(SQUARE, [Shard(1, 2), Shard(1)]),
    Layout(SQUARE, [Shard(0), Shard(1, 2)]), Layout(LINE, [Shard(0, sizes=[2, 0, 3])]),
    Layout(SQUARE, [Shard(1, sizes=[1, 2]), Shard(0)]), Layout(LINE, [Shard(1, 2, sizes=[0, 1, 1])]),
]  # fmt: skip


def held(layout, shape, rank):
    """Which elements a rank has; none outside of the mesh."""
    found = np.zeros(shape, bool)
    for offset, size, _ in layout.local_boxes(shape, rank) if layout.mesh.contains(rank) else ():
        assert not found[box(offset, size)].any()
        found[box(offset, size)] = True
    return found


def box(offset, size):
    return tuple(slice(o, o + n) for o, n in zip(offset, size, strict=True))


@pytest.mark.parametrize("shape", [(5, 3), (6, 6), (1, 7), (4, 4), (0, 2)])
def test_every_element_arrives_once_from_a_holder(shape):
    """All pairs of layouts, uneven and empty parts, blocks and given sizes included; a rank takes from itself what it
    has."""
    for source, target in product([layout for layout in LAYOUTS if layout.fits(shape)], repeat=2):
        arrived = {rank: np.zeros(shape, int) for rank in target.mesh.process_ids}
        for giver, taker, offset, size in plan_transfers(source, target, shape):
            assert held(source, shape, giver)[box(offset, size)].all()
            assert giver == taker or not held(source, shape, taker)[box(offset, size)].any()
            assert 0 not in size
            arrived[taker][box(offset, size)] += 1
        for rank, counts in arrived.items():
            np.testing.assert_array_equal(counts, held(target, shape, rank))


def test_a_number_goes_to_every_rank():
    """A tensor without axes is one part."""
    plan = plan_transfers(Layout(LINE, [Replicate()]), Layout(SQUARE, [Replicate()] * 2), ())
    assert [(t.target, t.offset, t.shape) for t in plan] == [(rank, (), ()) for rank in (2, 3, 4, 5)]
    assert {t.source for t in plan} <= {0, 1, 2}
    assert plan[0].source == 2


def calls_while_planning(ranks):
    """How many functions a plan calls that regroups an even split of rows, and how many transfers it has."""
    half = [Shard(0), Replicate()]
    source = Layout(ProcessMesh(np.arange(ranks).reshape(-1, 2)), half)
    target = Layout(ProcessMesh(np.arange(ranks, 2 * ranks)), [Shard(0)])
    calls = [0]

    def count(frame, event, argument):
        calls[0] += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        plan = plan_transfers(source, target, (3 * ranks, 2))
    finally:
        sys.setprofile(None)
    return calls[0], len(plan)


def test_the_work_grows_with_the_transfers():
    """Not with pairs of ranks: 2,048 ranks to 2,048 others cost eight times what 256 to 256 cost."""
    (few, short), (many, long) = calls_while_planning(256), calls_while_planning(2048)
    assert long == 8 * short == 2048
    assert many <= 9 * few


@pytest.mark.parametrize(("n", "most"), [(1, 4), (3000, 12)])
def test_blocks_are_sent_as_far_as_they_lack(n, most):
    """Between meshes that share a rank, eagerly: the value stays, nobody sends what the target has, and small boxes of
    a pair of ranks are one message."""
    x, shape = np.arange(72.0 * n, dtype=np.float32).reshape(6 * n, 12), (6 * n, 12)
    square = ProcessMesh([[1, 2], [3, 4]])
    layouts = [
        Layout(LINE, [Shard(1, 3)]), Layout(square, [Shard(0), Shard(1, 2)]), Layout(square, [Shard(1, 3), Shard(1)]),
        Layout(LINE, [Shard(0, sizes=[n, 0, 5 * n])]), Layout(square, [Replicate(), Shard(1, 3, sizes=[1, 3])]),
    ]  # fmt: skip

    def main(rank):
        sent, messages = [], [0]
        for a, b in product(layouts, repeat=2):
            given = shard_tensor(x, a.mesh, a.placements)
            with count_collectives() as counts:
                made = reshard(given, b.mesh, b.placements)
            sent.append(counts.total_bytes)
            messages += [counts.calls.get("send", 0)] * (a.mesh != b.mesh)
            if made.payload.is_held:
                np.testing.assert_array_equal(made.numpy(), x)
        return sent, max(messages)

    sents, messages = zip(*on_ranks(main, 5), strict=True)
    assert max(messages) == most
    sent = np.sum(sents, axis=0)
    for (a, b), nbytes in zip(product(layouts, repeat=2), sent, strict=True):
        if a.mesh != b.mesh:
            lacks = [held(b, shape, rank) & ~held(a, shape, rank) for rank in b.mesh.process_ids]
            assert nbytes == 4 * np.sum(lacks)


@pytest.mark.parametrize("shape", [(8, 6), (2, 7), (1, 1), ()])
def test_sums_leave_their_mesh_scattered(shape):
    """Along two axes of two mesh dimensions, each rank sends a part; a number is summed whole."""
    program, source = Program("leave"), Layout(ProcessMesh([[0, 1], [2, 3]]), [Partial(), Partial()])
    program.set_outputs([program.add_input(TensorType(shape, "float32"))])
    target = Layout(ProcessMesh([4, 5]), [Shard(1) if len(shape) > 1 else Replicate()])
    with bind_context(Context(0, 6)):
        made = partition_program(program, [source], (), 0, [target]).program
    kinds = [op.kind for op in made.block if op.kind in ("all_reduce", "reduce_scatter")]
    scattered = sum(n > 1 for n in shape)
    assert sorted(kinds) == ["all_reduce"] * (2 - scattered) + ["reduce_scatter"] * scattered
