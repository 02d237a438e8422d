"""The pass ``overlap``: the bits of programs whose collectives block, alike on all ranks, and what is hidden."""

from functools import partial
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from lockstep import parts_of, run_together

from argosy_autoparallel import Layout, ProcessMesh, Replicate, Shard
from argosy_autoparallel.collective_report import report_collectives
from argosy_autoparallel.partition import partition
from argosy_autoparallel.passes.chunk_products import ChunkProducts
from argosy_autoparallel.passes.combine_collectives import CombineCollectives, _buckets, _by_readiness
from argosy_autoparallel.passes.overlap import Overlap, total_work
from argosy_autoparallel.passes.spmd_partition import SpmdPartition
from argosy_autoparallel.schedule import verify_programs
from argosy_autoparallel.tensor_layout import print_layout
from argosy_hwadapt.inproc import run_ranks
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType, verify_program
from argosy_pir.passes import PassManager

N, LAYERS = 32, 4


def collectives(program):
    return report_collectives(program).collectives


def matmul(a, b):
    return prim.dot_general(a, b, lhs_contract=(a.ndim - 1,), rhs_contract=(0,))


def step(layers=LAYERS):
    """Forward and backward through linear layers, then an update of each weight, the first first."""
    made = Program("step")
    x = made.add_input(TensorType((2 * N, N), "float32"))
    states = [made.add_state(f"w{i}", TensorType((N, N), "float32")).argument for i in range(layers)]
    with emit_at(Builder.at_end(made.block)):
        activations = [x]
        for w in states:
            activations.append(prim.tanh(matmul(activations[-1], w)))
        g, gradients = activations[-1], []
        for w, a in zip(reversed(states), reversed(activations[:-1]), strict=True):
            gradients.append(matmul(prim.transpose(a, permutation=(1, 0)), g))
            g = prim.mul(matmul(g, prim.transpose(w, permutation=(1, 0))), a)
        updates = [w - prim.tanh(g) for w, g in zip(states, reversed(gradients), strict=True)]
        made.set_outputs([g], updates)
    return made


MESHES = {
    "data parallel": (ProcessMesh([0, 1], ["dp"]), [Shard(0)], [Replicate()]),
    "split weights": (ProcessMesh([0, 1], ["dp"]), [Shard(0)], [Shard(0)]),
    "products split": (ProcessMesh([0, 1], ["mp"]), [Replicate()], [Shard(1)]),
    "both": (ProcessMesh([[0, 1], [2, 3]], ["dp", "mp"]), [Shard(0), Replicate()], [Replicate(), Shard(1)]),
}


def programs(case, overlap):
    mesh, x, w = MESHES[case]
    source, layout = step(), Layout(mesh, w)
    made = [partition(source, [Layout(mesh, x)], [layout] * LAYERS, r, (), overlap) for r in mesh.process_ids]
    for each in made:
        verify_program(each.program)
    return [each.program for each in made]


def arrays(case):
    mesh, x, w = MESHES[case]
    rng = np.random.default_rng(0)
    given = [(rng.standard_normal((2 * N, N)).astype(np.float32), x)]
    given += [(rng.standard_normal((N, N)).astype(np.float32) / N, w) for _ in range(LAYERS)]
    return list(zip(*[parts_of(a, Layout(mesh, p)) for a, p in given], strict=True))


def values(case, made):
    """Outputs and new states of each rank."""
    return run_together(made, arrays(case), MESHES[case][0].process_ids)


@pytest.fixture(autouse=True)
def small_buckets(monkeypatch):
    """Two of the gradients fill a bucket."""
    made = partial(CombineCollectives, limit=2 * 4 * N * N, sums=2 * 4 * N * N)
    monkeypatch.setattr(import_module("argosy_autoparallel.partition"), "CombineCollectives", made)


@pytest.mark.parametrize("case", MESHES)
def test_values_have_the_bits_of_blocking_programs(case):
    """And the check of all ranks' programs passes: collectives of a group come in one order."""
    blocking, overlapped = programs(case, False), programs(case, True)
    verify_programs(overlapped)
    for before, after in zip(values(case, blocking), values(case, overlapped), strict=True):
        for x, y in zip(before, after, strict=True):
            np.testing.assert_array_equal(x, y)


def test_gradients_are_summed_while_the_backward_pass_goes_on():
    """Two buckets of two gradients: the last layers' is on its way during the products of the first layers, the other
    during the one that is left."""
    for program in programs("data parallel", True):
        found = [each for each in collectives(program) if each.kind == "all_reduce"]
        assert [each.nbytes for each in found] == [2 * 4 * N * N] * 2
        products = [each.computed // N**3 for each in found]  # of a rank's N rows
        assert products == [5, 1]  # two for each of two layers and the input's gradient of the third; the first's


def test_what_blocks_is_exposed():
    """Without the pass nothing is computed meanwhile, and what is there to say of each collective is the same."""
    (first, *_), (second, *_) = programs("split weights", False), programs("split weights", True)
    assert not any(each.computed for each in collectives(first))
    key = lambda each: (each.kind, each.group, each.nbytes, each.line)  # noqa: E731
    assert sorted(map(key, collectives(first))) == sorted(map(key, collectives(second)))
    assert any(each.computed for each in collectives(second))


def test_parameters_are_gathered_ahead():
    """Parameters split over ranks: two layers' are on their way while the layers before them compute."""
    for program in programs("split weights", True):
        gathers = [each for each in collectives(program) if each.kind == "all_gather"]
        assert [each.computed > 0 for each in gathers] == [False, True]


def test_a_pipeline_of_passes_says_the_same():
    """The passes by name do what ``partition(overlap=True)`` does."""
    mesh, x, w = MESHES["data parallel"]
    texts = [print_layout(Layout(mesh, p)) for p in (x, w)]
    made = step()
    SpmdPartition((texts[0],), (texts[1],) * LAYERS).run(made)
    PassManager(f"combine-collectives{{early=true, limit={2 * 4 * N * N}}},overlap").run(made)
    found = [(each.kind, each.nbytes, each.computed) for each in collectives(made)]
    assert found == [(e.kind, e.nbytes, e.computed) for e in collectives(programs("data parallel", True)[0])]


def test_a_collective_of_what_another_gives_starts_after_it():
    """The first is waited for just before the second starts, wherever the program had the first."""
    made = Program("chained")
    x = made.add_input(TensorType((N, N), "float32"))
    with emit_at(Builder.at_end(made.block)):
        gathered, token = prim.all_gather(x, prim.create_token(), group=(0, 1), size=2, axis=0)
        meanwhile = matmul(matmul(x, x), x)
        total, token = prim.all_reduce(gathered, token, group=(0, 1), size=2, kind="sum")
        more = matmul(meanwhile, meanwhile)
        made.set_outputs([total, more])
    changed = made.clone()
    assert Overlap().run(changed)
    verify_program(changed)
    names = [op.kind for op in changed.block if op.kind in ("start", "wait", "dot_general")]
    assert names == ["start", "dot_general", "dot_general", "wait", "start", "dot_general", "wait"]
    given = [(np.full((N, N), rank + 1, np.float32),) for rank in range(2)]
    for before, after in zip(run_together([made] * 2, given, [0, 1]), run_together([changed] * 2, given, [0, 1]),
                             strict=True):  # fmt: skip
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)


def test_messages_are_on_their_way_while_others_compute():
    """A receipt begins as soon as the message before it has gone, a permutation when its operand is there."""

    def exchange(rank):
        made = Program("exchange")
        x = made.add_input(TensorType((N, N), "float32"))
        with emit_at(Builder.at_end(made.block)):
            token = prim.send(x + x, prim.create_token(), peer=1 - rank)
            meanwhile = matmul(x, x)
            got, token = prim.recv(token, shape=(N, N), dtype="float32", peer=1 - rank)
            more = matmul(meanwhile, meanwhile)
            moved, token = prim.permute(meanwhile, token, pairs=((0, 1), (1, 0)))
            made.set_outputs([got, more, moved])
        return made

    plain = [exchange(rank) for rank in range(2)]
    changed = [program.clone() for program in plain]
    for program in changed:
        assert Overlap().run(program)
        verify_program(program)
    names = [op.kind for op in changed[0].block if op.kind in ("send", "start_recv", "start", "wait", "dot_general")]
    assert names == ["send", "start_recv", "dot_general", "start", "dot_general", "wait", "wait"]
    assert [(each.kind, each.computed > 0) for each in collectives(changed[0])] == [
        ("send", False),
        ("recv", True),
        ("permute", True),
    ]
    verify_programs(changed)

    def run(communicator):
        given = [np.full((N, N), communicator.rank + 1, np.float32)]
        return [interpret(which[communicator.rank], given, (), [communicator])[0] for which in (plain, changed)]

    for before, after in run_ranks(run, 2):
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)


def test_an_early_bucket_ends_where_a_member_is_wanted():
    """A sum whose terms come later begins another bucket, though there is room: else the first would wait for it."""
    times = ((0, 3), (1, 9), (4, 9), (5, 9))
    notes = [SimpleNamespace(key="sum", ready=ready, wanted=wanted, nbytes=1) for ready, wanted in times]
    assert _by_readiness(notes, range(4), 100) == [[0, 1], [2, 3]]
    assert _by_readiness(notes[1:], range(3), 100) == [[0, 1, 2]]


def test_gathers_for_products_that_are_divided_travel_alone():
    """Those of 64 bytes on two ranks together, while biases beside them are put in one bucket."""
    ops = [
        SimpleNamespace(kind="all_gather", attributes={"size": 2}, annotations={"needed_by": (name,)})
        for name in ("prim.dot_general", "prim.add", "prim.dot_general", "prim.add")
    ]
    notes = [SimpleNamespace(op=op, key="gather", ready=0, after=None, wanted=9, nbytes=32) for op in ops]
    for divided, buckets in ((65, [[0, 1, 2, 3]]), (64, [[0], [1, 3], [2]])):
        combine = CombineCollectives(early=True, divided=divided)
        alone = frozenset(i for i, n in enumerate(notes) if combine._is_divided(n))
        assert _buckets(notes, 1 << 20, frozenset(), alone) == buckets


def block_of_products(last, dtype):
    """A rank's part gathered for a product, whose result goes into one that is summed; the gathered rows are read
    again. Products in another ``dtype`` are of casts, of another shape than what is communicated."""
    made = Program("block")
    x, w, v = (made.add_input(TensorType(shape, "float32")) for shape in ((N // 2 + 1, N), (N, N), (N, N)))
    narrow = dtype != "float32"
    with emit_at(Builder.at_end(made.block)):
        rows, token = prim.all_gather(x, prim.create_token(), group=(0, 1), size=2, axis=0)
        read = prim.cast(prim.reshape(rows, shape=(1, *rows.shape)), dtype=dtype) if narrow else rows
        hidden = prim.tanh(matmul(read, prim.cast(w, dtype=dtype) if narrow else w))
        product = matmul(hidden, prim.cast(v, dtype=dtype) if narrow else v)
        product = prim.cast(prim.reshape(product, shape=rows.shape), dtype="float32") if narrow else product
        scatter = {"axis": 0} if last == "reduce_scatter" else {}
        total, _ = getattr(prim, last)(product, token, group=(0, 1), size=2, kind="sum", **scatter)
        hidden = prim.cast(prim.reshape(hidden, shape=rows.shape), dtype="float32") if narrow else hidden
        made.set_outputs([total, matmul(prim.transpose(rows, permutation=(1, 0)), hidden)])
    return made


def modelled_time(program):
    """Of a rank that computes a number a tick, on a link that takes 64 for an element: a gather takes a product."""
    now = free = 0
    arrival = {}
    reports = iter(collectives(program))
    for op in program.block:
        now += total_work([op])
        if op.kind in ("start", "all_gather", "all_reduce", "reduce_scatter"):
            free = max(free, now) + 64 * next(reports).nbytes / 4
            arrival[op.results[1] if op.kind == "start" else op] = free
            now = now if op.kind == "start" else free
        elif op.kind == "wait":
            now = max(now, arrival[op.operand(1)])
    return now


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("last", ["reduce_scatter", "all_reduce"])
def test_products_are_made_in_chunks_with_what_they_communicate(last, dtype):
    """Values and bytes stay; all chunks but the first that is gathered are on their way
    while others are computed, and the step ends earlier."""
    plain = block_of_products(last, dtype)
    overlapped, chunked = plain.clone(), plain.clone()
    Overlap(least=1).run(overlapped)
    assert ChunkProducts(chunks=3, least=1).run(chunked)
    Overlap(least=1).run(chunked)
    verify_program(chunked)
    verify_programs([chunked] * 2)
    rng = np.random.default_rng(0)
    given = [[rng.standard_normal(x.shape).astype(np.float32) for x in plain.inputs] for _ in range(2)]
    for before, after in zip(run_together([plain] * 2, given, [0, 1]), run_together([chunked] * 2, given, [0, 1]),
                             strict=True):  # fmt: skip
        for a, b in zip(before, after, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-4)
    found = collectives(chunked)
    assert [each.computed > 0 for each in found][1:] == [True] * 5
    assert sum(each.nbytes for each in found) == sum(each.nbytes for each in collectives(plain))
    assert modelled_time(chunked) < 0.85 * modelled_time(overlapped)


@pytest.mark.parametrize("groups", [((0, 1), (0, 1)), ((0, 1), (1, 0))], ids=["one group", "two groups"])
@pytest.mark.parametrize("larger_first", [True, False])
def test_of_two_gathered_operands_the_larger_comes_in_chunks(larger_first, groups):
    """The smaller one comes whole, before it: products begin with the first chunk."""
    plain = Program("two")
    x, w = (plain.add_input(TensorType(shape, "float32")) for shape in ((N // 2, N), (N, N // 8)))
    with emit_at(Builder.at_end(plain.block)):
        token, made = prim.create_token(), {}
        for name in ("x", "w") if larger_first else ("w", "x"):
            part, axis, group = (x, 0, groups[0]) if name == "x" else (w, 1, groups[1])
            made[name], token = prim.all_gather(part, token, group=group, size=2, axis=axis)
        plain.set_outputs([prim.tanh(matmul(made["x"], made["w"]))])
    overlapped, chunked = plain.clone(), plain.clone()
    Overlap(least=1).run(overlapped)
    assert ChunkProducts(least=1).run(chunked)
    verify_program(chunked)
    found = [op for op in chunked.block if op.kind in ("all_gather", "dot_general")]
    if groups[0] == groups[1]:
        gathers = [op.operand(0).type.shape for op in found if op.kind == "all_gather"]
        assert gathers == [(N, N // 8), *[(N // 8, N)] * 4]
    assert sum(op.kind == "dot_general" for op in found) == 4
    Overlap(least=1).run(chunked)
    verify_programs([chunked] * 2)
    rng = np.random.default_rng(0)
    given = [[rng.standard_normal(x.shape).astype(np.float32) for x in plain.inputs] for _ in range(2)]
    for before, after in zip(run_together([plain] * 2, given, [0, 1]), run_together([chunked] * 2, given, [0, 1]),
                             strict=True):  # fmt: skip
        np.testing.assert_allclose(after[0], before[0], rtol=1e-5, atol=1e-5)
    if groups[0] == groups[1]:
        assert modelled_time(chunked) < 0.9 * modelled_time(overlapped)
