"""Sums over ranks that partitioned programs make together: as few as may be, of the same bits, alike on all ranks."""

from functools import partial
from importlib import import_module

import numpy as np
import pytest
from lockstep import parts_of, run_together, whole_of

from argosy_autoparallel import Layout, Partial, ProcessMesh, ReduceType, Replicate, Shard, partition_program
from argosy_autoparallel.passes.combine_collectives import CombineCollectives
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Program, TensorType, verify_program

SHAPES = [(3, 2), (), (5,), (0, 4)]
SUM, LARGEST = Partial(), Partial(ReduceType.kRedMax)


def program(body, shapes=SHAPES, dtype="float32"):
    """A program of what ``body`` makes of inputs of these shapes."""
    made = Program("sums")
    inputs = [made.add_input(TensorType(shape, dtype)) for shape in shapes]
    with emit_at(Builder.at_end(made.block)):
        made.set_outputs(body(*inputs))
    return made


def partitioned(source, mesh, placements, wanted=()):
    """The ranks' programs, which are valid, and how many sums each of them makes."""
    layouts = [Layout(mesh, p) for p in placements]
    outputs = [Layout(mesh, p) for p in wanted]
    made = [partition_program(source, layouts, (), rank, outputs) for rank in mesh.process_ids]
    for each in made:
        verify_program(each.program)
    counts = {sum(op.name == "prim.all_reduce" for op in each.program.block) for each in made}
    assert len(counts) == 1, "ranks make different sums"
    return made, layouts, counts.pop()


def values(source, mesh, placements, wanted=()):
    """The outputs of the ranks' programs as whole tensors, and the number of sums."""
    made, layouts, count = partitioned(source, mesh, placements, wanted)
    arrays = [np.random.default_rng(i).standard_normal(x.shape).astype(x.dtype) for i, x in enumerate(source.inputs)]
    parts = [parts_of(np.asarray(a), layout) for a, layout in zip(arrays, layouts, strict=True)]
    outputs = run_together([m.program for m in made], list(zip(*parts, strict=True)), mesh.process_ids)
    wholes = [whole_of([o[i] for o in outputs], x) for i, x in enumerate(made[0].output_layouts)]
    return wholes, count


@pytest.fixture
def limited(monkeypatch):
    """A function that sets the size of buckets."""

    def limit(nbytes):
        made = partial(CombineCollectives, limit=nbytes, sums=nbytes)
        monkeypatch.setattr(import_module("argosy_autoparallel.partition"), "CombineCollectives", made)

    return limit


@pytest.mark.parametrize(("ranks", "count"), [([0, 1], 1), ([0, 1, 2], 1), ([[0, 1], [2, 3]], 2)])
def test_what_is_ready_is_summed_together(limited, ranks, count):
    """One sum for each mesh dimension, with the bits of sums alone; empty tensors and scalars included."""
    mesh = ProcessMesh(ranks)
    source = program(lambda *xs: [prim.exp(x) for x in xs])
    placements = [[SUM] * mesh.ndim] * len(SHAPES)
    together, few = values(source, mesh, placements)
    limited(0)
    alone, many = values(source, mesh, placements)
    assert (few, many) == (count, count * len(SHAPES))
    for x, y in zip(together, alone, strict=True):
        np.testing.assert_array_equal(x, y)


def test_what_depends_on_a_sum_comes_after_it():
    """A product with what was summed is a sum of its own; what was there before goes with the first."""

    def body(x, y, z):
        return [prim.exp(prim.mul(y, prim.exp(x))), prim.exp(z)]

    source = program(body, [(4,)] * 3)
    _, count = values(source, ProcessMesh([0, 1]), [[SUM]] * 3)
    assert count == 2


def test_kinds_dtypes_and_mesh_dimensions_do_not_mix():
    """A maximum is no sum, a float32 no float64, and lines of ranks differ."""
    source = program(lambda *xs: [prim.exp(x) for x in xs], [(4,)] * 4)
    mesh = ProcessMesh([[0, 1], [2, 3]])
    placements = [[SUM, Replicate()], [Replicate(), SUM], [LARGEST, Replicate()], [SUM, Replicate()]]
    assert partitioned(source, mesh, placements)[2] == 3
    wide = program(lambda x, y: [prim.exp(x), prim.exp(prim.cast(y, dtype="float64"))], [(4,)] * 2)
    assert partitioned(wide, mesh, [[SUM, Replicate()]] * 2)[2] == 2


def test_buckets_are_bounded(limited):
    """By the bytes of a rank's terms; a larger one travels alone. The order is that in which they are wanted."""
    source = program(lambda *xs: [prim.exp(x) for x in xs], [(4,), (4,), (100,), (4,), (4,)])
    limited(40)
    mesh = ProcessMesh([0, 1])
    made, _, count = partitioned(source, mesh, [[SUM]] * 5)
    sums = [op.operand(0).shape for op in made[0].program.block if op.name == "prim.all_reduce"]
    assert sums == [(8,), (100,), (8,)]
    assert count == 3


def test_uneven_parts_come_to_the_same_buckets(limited):
    """What a rank happens to hold does not decide: some hold nothing of the tensors that others do."""
    mesh = ProcessMesh([[0, 1], [2, 3]])
    source = program(lambda *xs: [prim.exp(x) for x in xs], [(3, 1), (1, 5), (3, 3)])
    placements = [[SUM, Shard(0)], [SUM, Shard(0)], [SUM, Shard(1)]]
    alone, counts = None, []
    for limit in (0, 20, 40, 1 << 20):
        limited(limit)
        together, count = values(source, mesh, placements)  # which checks that all ranks make as many sums
        counts.append(count)
        alone = alone or together
        for x, y in zip(together, alone, strict=True):
            np.testing.assert_array_equal(x, y)
    assert counts[0] == 3
    assert counts[-1] == 1
    assert counts == sorted(counts, reverse=True)


SPLIT, WHOLE = [Shard(0)], [Replicate()]
LARGE = [(64, 128), (128, 64), (8,), (2, 3), ()]


def communicated(source, placements, wanted):
    """What rank 0 of two communicates: kinds, with the shapes of their tensors."""
    made = partitioned(source, ProcessMesh([0, 1]), placements, wanted)[0][0].program
    found = [op for op in made.block if op.dialect == "prim" and "group" in op.attributes]
    return [(op.kind, [x.shape for x in op.operands[:-1]]) for op in found]


@pytest.mark.parametrize("scalar", [SUM, Replicate()], ids=["summed", "known"])
def test_large_sums_are_scattered_as_they_are(scalar):
    """Only small ones are put together, along other axes parts are brought behind each other, and a scalar that is
    summed is in every rank's part."""
    source = program(lambda *xs: [prim.neg(x) for x in xs], LARGE)
    wanted = [SPLIT, [Shard(1)], SPLIT, SPLIT, WHOLE]
    (found,) = communicated(source, [*[[SUM]] * 4, [scalar]], wanted)
    small = 4 + 3 + (scalar is SUM)
    assert found == ("reduce_scatter_coalesced", [(64, 128), (2 * 64 * 64,), (2 * small,)])


@pytest.mark.parametrize("ranks", [[0, 1], [[0, 1], [2, 3]]])
@pytest.mark.parametrize("scattered", [True, False], ids=["scattered", "gathered"])
def test_several_tensors_have_the_bits_of_each_alone(limited, ranks, scattered):
    """Scattered with a scalar, or gathered along some axis."""
    mesh = ProcessMesh(ranks)
    source = program(lambda *xs: [prim.neg(x) for x in xs], LARGE)
    parts = [[p] * mesh.ndim for p in (Shard(0), Shard(1), Shard(0), Replicate(), Replicate())]
    first = [[SUM] * mesh.ndim] * 5 if scattered else parts
    wanted = parts if scattered else [[Replicate()] * mesh.ndim] * 5
    together, _ = values(source, mesh, first, wanted)
    limited(0)
    alone, _ = values(source, mesh, first, wanted)
    for x, y in zip(together, alone, strict=True):
        np.testing.assert_array_equal(x, y)


def test_what_several_places_ask_for_is_gathered_in_small_buckets():
    """What one place asks for, as new states, comes together, however large it is."""
    shapes = [(64, 128), (64, 128), (64, 128)]
    states = program(lambda *xs: [prim.neg(x) for x in xs], shapes)
    (found,) = communicated(states, [SPLIT] * 3, [WHOLE] * 3)
    assert found == ("all_gather_coalesced", [(32, 128)] * 3)

    def chain(x, *weights):
        for w in weights:
            x = prim.exp(prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(1,)))
        return [x]

    weights = program(chain, [(256, 128), (128, 128), (128, 128)])
    assert communicated(weights, [SPLIT] * 3, [SPLIT]) == [("all_gather", [(64, 128)])] * 2
