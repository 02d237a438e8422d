"""Transfers between meshes: each element goes to each rank that wants it, once, from a rank that has it."""

import sys
from itertools import product

import numpy as np
import pytest

from argosy_autoparallel import Partial, partition_program
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Replicate, Shard
from argosy_autoparallel.resharding.cross_mesh import plan_transfers
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.context import Context, bind_context
from argosy_pir import Program, TensorType

LINE, SQUARE = ProcessMesh([0, 1, 2]), ProcessMesh([[2, 3], [4, 5]])
PLACEMENTS = [Replicate(), Shard(0), Shard(1)]
LAYOUTS = [Layout(LINE, [p]) for p in PLACEMENTS] + [Layout(SQUARE, ps) for ps in product(PLACEMENTS, repeat=2)]


@pytest.mark.parametrize("shape", [(5, 3), (1, 7), (4, 4), (0, 2)])
def test_every_element_arrives_once_from_a_holder(shape):
    """All pairs of layouts, uneven and empty parts included; a rank takes from itself what it has."""
    whole = np.arange(np.prod(shape)).reshape(shape)
    for source, target in product(LAYOUTS, repeat=2):
        arrived = {rank: np.zeros(target.local_slice(shape, rank).shape, int) for rank in target.mesh.process_ids}
        for giver, taker, offset, size in plan_transfers(source, target, shape):
            held, mine = source.local_slice(shape, giver), target.local_slice(shape, taker)
            for o, n, h, m in zip(offset, size, held.offset, held.shape, strict=True):
                assert n > 0
                assert h <= o <= o + n <= h + m
            arrived[taker][
                tuple(slice(o - m, o - m + n) for o, n, m in zip(offset, size, mine.offset, strict=True))
            ] += 1
            own = source.local_slice(shape, taker) if source.mesh.contains(taker) else None
            assert giver == taker or own != held
        for rank, counts in arrived.items():
            assert (counts == 1).all()
            assert counts.shape == whole[target.local_slice(shape, rank).slices()].shape


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
