"""Changes of layout, randomness, printing, programs with states, and what goes wrong."""

import itertools

import numpy as np
import pytest
from ranks import on_ranks

from argosy_autoparallel import (
    Layout,
    Partial,
    ProcessMesh,
    ReduceType,
    Replicate,
    Shard,
    count_collectives,
    dtensor_from_fn,
    dtensor_from_local,
    dtensor_to_local,
    layout_of,
    partition_program,
    reshard,
    shard_tensor,
    unshard_dtensor,
)
from argosy_autoparallel.resharding.path import path_cost
from argosy_phi_ops import prim
from argosy_phi_ops.context import context, emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.rng import Generator
from argosy_tensorcore.tensor import Tensor

X = np.arange(35, dtype=np.float32).reshape(5, 7)
KINDS = [Replicate(), Shard(0), Shard(1), Partial()]


@pytest.mark.parametrize("ranks", [[0, 1], [0, 1, 2, 3], [[0, 1], [2, 3]], [[3, 1], [0, 2]]])
def test_all_pairs_of_layouts(ranks):
    """Every layout becomes every other one, with uneven and empty shards, and keeps the global value."""
    mesh = ProcessMesh(ranks)
    layouts = list(itertools.product(KINDS, repeat=mesh.ndim))

    def main(rank):
        for source, target in itertools.product(layouts, layouts):
            x = shard_tensor(X, mesh, source)
            y = reshard(x, mesh, target)
            part = layout_of(y).local_slice(X.shape, rank)
            assert list(y.placements) == list(target)
            assert y._local_value().shape == list(part.shape)
            if not layout_of(y).is_partial:
                np.testing.assert_array_equal(y._local_value().numpy(), X[part.slices()])
            np.testing.assert_array_equal(y.numpy(), X)

    on_ranks(main, mesh.size)


@pytest.mark.parametrize("kind", [ReduceType.kRedMax, ReduceType.kRedMin, ReduceType.kRedAvg])
def test_other_reductions(kind):
    """Terms that combine by their extremum or average."""

    def main(rank):
        mesh = ProcessMesh([0, 1, 2])
        x = dtensor_from_local(Tensor(np.array([rank, 2.0 - rank], np.float32)), mesh, [Partial(kind)])
        return x.numpy(), reshard(x, mesh, [Shard(0)]).numpy()

    expected = {ReduceType.kRedMax: [2, 2], ReduceType.kRedMin: [0, 0], ReduceType.kRedAvg: [1, 1]}[kind]
    for whole, parts in on_ranks(main, 3):
        np.testing.assert_array_equal(whole, expected)
        np.testing.assert_array_equal(parts, expected)


def test_no_way_is_longer_than_by_way_of_replication():
    """Costs obey the triangle inequality, where a way makes no sum of what was none."""
    mesh = ProcessMesh([[0, 1], [2, 3]])
    layouts = [Layout(mesh, p) for p in itertools.product(KINDS, repeat=2)]
    for a, b, c in itertools.product(layouts, repeat=3):
        if not any(q.is_partial() and not p.is_partial() for p, q in zip(a.placements, b.placements, strict=True)):
            assert path_cost(a, c, X.shape, 4) <= path_cost(a, b, X.shape, 4) + path_cost(b, c, X.shape, 4) + 1e-6


@pytest.mark.parametrize(
    ("source", "target", "kind", "moved"),
    [
        (Shard(0), Replicate(), "all_gather", 3 / 4),
        (Partial(), Replicate(), "all_reduce", 6 / 4),
        (Partial(), Shard(0), "reduce_scatter", 3 / 4),
        (Shard(0), Shard(1), "all_to_all", 3 / 16),
    ],
)
def test_bytes_are_those_of_the_formula(source, target, kind, moved):
    """One collective each, of the size that the literature gives."""

    def main(rank):
        x = shard_tensor(np.ones((8, 4), np.float32), ProcessMesh([0, 1, 2, 3]), [source])
        with count_collectives() as counts:
            reshard(x, x.process_mesh, [target])
        return counts

    for counts in on_ranks(main, 4):
        assert counts.calls == {kind: 1}
        assert counts.total_bytes == 8 * 4 * 4 * moved


def test_random_numbers_are_equal_on_any_mesh():
    """Dropout of a distributed tensor and initial values have the bits of one process."""

    def draw(mesh, placements):
        context().generator = Generator(11)
        x = np.ones((6, 5), np.float32)
        a = Tensor(x) if mesh is None else shard_tensor(x, mesh, placements)
        dropped = get_operator("dropout")(a, p=0.4)
        if mesh is None:
            return dropped.numpy(), get_operator("uniform")([5, 3]).numpy()
        made = dtensor_from_fn(lambda: get_operator("uniform")([5, 3]), mesh, placements)
        return dropped.numpy(), made.numpy()

    def main(rank):
        expected = draw(None, None)
        assert 0 < (expected[0] == 0).sum() < 30
        for ranks in ([0, 1, 2, 3], [[0, 1], [2, 3]]):
            mesh = ProcessMesh(ranks)
            for placements in itertools.product([Replicate(), Shard(0), Shard(1)], repeat=mesh.ndim):
                for a, b in zip(draw(mesh, placements), expected, strict=True):
                    np.testing.assert_array_equal(a, b)

    on_ranks(main, 4)


def test_between_meshes_and_outside_of_them():
    """The seeds' mesh of six ranks; a tensor moves to ranks that had nothing, and outsiders hold nothing."""

    def main(rank):
        mesh = ProcessMesh([[0, 2, 4], [1, 3, 5]], dim_names=["x", "y"])
        a = shard_tensor([[1, 2, 3], [5, 6, 7]], mesh, [Shard(0), Shard(1)])
        small = ProcessMesh([4, 1])
        b = reshard(a, small, [Shard(1)])
        c = reshard(get_operator("add")(b, b), mesh, [Replicate(), Shard(1)])
        if rank not in (4, 1):
            with pytest.raises(RuntimeError, match=f"rank {rank} holds nothing"):
                b.payload.to_host()
            assert b.numpy().shape == (2, 3, 0)
        return a._local_value().numpy(), c.numpy()

    for rank, (local, whole) in enumerate(on_ranks(main, 6)):
        np.testing.assert_array_equal(local, [[[[1, 2, 3], [5, 6, 7]][rank % 2][rank // 2]]])
        np.testing.assert_array_equal(whole, [[2, 4, 6], [10, 12, 14]])


def test_a_partial_value_is_reduced_before_it_is_squared():
    """Linear operators keep it partial; others never see a term of the sum."""

    def main(rank):
        mesh = ProcessMesh([0, 1])
        x = shard_tensor(X, mesh, [Shard(1)])
        s = get_operator("sum")(x, axis=1)
        doubled = get_operator("add")(s, s)
        squared = get_operator("multiply")(s, s)
        exponential = get_operator("tanh")(s)
        return s.placements, doubled.placements, squared.numpy(), exponential.placements

    for kept, linear, squared, other in on_ranks(main, 2):
        assert kept == linear == [Partial()]
        assert other == [Replicate()]
        np.testing.assert_allclose(squared, X.sum(1) ** 2)


def test_in_place_writes_keep_the_layout():
    """set_value and in-place operators write this rank's part."""

    def main(rank):
        x = shard_tensor(X, ProcessMesh([0, 1]), [Shard(0)])
        x.add_(Tensor(X))
        doubled = x.numpy()
        x.set_value(X + 1)
        return x.placements, doubled, x.numpy(), x._local_value().shape

    for rank, (placements, doubled, after, shape) in enumerate(on_ranks(main, 2)):
        assert placements == [Shard(0)]
        assert shape == [[3, 7], [2, 7]][rank]
        np.testing.assert_array_equal(doubled, 2 * X)
        np.testing.assert_array_equal(after, X + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_filling_broadcasts(kind):
    """A number, a row and a whole array fill the tensor in any layout, with uneven parts."""

    def main(rank):
        x = shard_tensor(X, ProcessMesh([0, 1]), [kind])
        found = []
        for source in (0, X[0], X + 1):
            x.payload.fill_from(source)
            found.append(x.numpy())
        return found

    for found in on_ranks(main, 2):
        for value, source in zip(found, (0, X[0], X + 1), strict=True):
            np.testing.assert_array_equal(value, np.broadcast_to(source, X.shape))


@pytest.mark.parametrize("rows", [Shard(0), Shard(1), Replicate()])
@pytest.mark.parametrize("indices", [Shard(0), Replicate()])
def test_indices_are_held_against_the_whole_axis(rows, indices):
    """What a rank has only a part of is addressed by its global index: the last one is right and the next one wrong."""

    def main(rank):
        mesh = ProcessMesh([0, 1])
        x = shard_tensor(X, mesh, [rows])
        right, wrong = (shard_tensor(np.array([i, i]), mesh, [indices]) for i in (4, 5))
        calls = [lambda i: get_operator("embedding")(i, x), lambda i: get_operator("gather")(x, i), lambda i: x[i]]
        for call in calls:
            np.testing.assert_array_equal(call(right).numpy(), X[[4, 4]])
            for _ in range(2):
                with pytest.raises(IndexError, match=r"index 5 is out of range; expected .* for an axis of 5"):
                    call(wrong)

    on_ranks(main, 2)


@pytest.mark.parametrize("indices", [Shard(0), Shard(1), Replicate()])
def test_addresses_are_held_against_their_axes(indices):
    """Each column of addresses has an axis of its own; where ranks have a column each, the one that has it looks."""

    def main(rank):
        mesh = ProcessMesh([0, 1])
        x = shard_tensor(X, mesh, [Shard(0)])
        right, *wrong = (shard_tensor(np.array([a, a]), mesh, [indices]) for a in ([4, 6], [5, 0], [0, 7]))
        np.testing.assert_array_equal(get_operator("gather_nd")(x, right).numpy(), [34, 34])
        for column, address in enumerate(wrong):
            if indices != Shard(1) or rank == column:
                with pytest.raises(IndexError, match=f"index {(5, 7)[column]} is out of range"):
                    get_operator("gather_nd")(x, address)

    on_ranks(main, 2)


def test_printing_names_mesh_and_placements():
    """Shape and values are global."""

    def main(rank):
        return repr(shard_tensor(X[:2, :2], ProcessMesh([0, 1], ["x"]), [Shard(0)]))

    for text in on_ranks(main, 2):
        assert "shape=[2, 2]" in text
        assert "process_mesh={shape: [2], process_ids: [0, 1], dim_names: [x]}, placements=[Shard(dim=0)]" in text
        assert "[7., 8.]" in text


def test_local_parts_and_back():
    """dtensor_from_local and dtensor_to_local are inverse; unsharding gives an ordinary tensor."""

    def main(rank):
        mesh = ProcessMesh([0, 1])
        x = dtensor_from_local(Tensor(np.full((2, 3), rank, np.float32)), mesh, [Shard(0)])
        return list(x.shape), dtensor_to_local(x).numpy(), unshard_dtensor(x).numpy()

    for rank, (shape, local, whole) in enumerate(on_ranks(main, 2)):
        assert shape == [4, 3]
        np.testing.assert_array_equal(local, np.full((2, 3), rank))
        np.testing.assert_array_equal(whole[:, 0], [0, 0, 1, 1])


@pytest.mark.parametrize("ranks", [[0, 1, 2, 3], [[0, 1], [2, 3]], [[3, 1], [0, 2]]])
def test_parts_of_any_layout_are_a_tensor_again(ranks):
    """The ranks find the global shape of uneven and empty parts, of an axis that two mesh dimensions split, too."""
    mesh = ProcessMesh(ranks)
    layouts = list(itertools.product(KINDS, repeat=mesh.ndim))

    def main(rank):
        parts = [dtensor_to_local(shard_tensor(X, mesh, layout)) for layout in layouts]
        return [dtensor_from_local(p, mesh, layout).numpy() for p, layout in zip(parts, layouts, strict=True)]

    for found in on_ranks(main, 4):
        for value in found:
            np.testing.assert_array_equal(value, X)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(2, 7), (3, 7)], r"'d0'.* have parts of shapes \[\[2, 7\], \[3, 7\]\]: 5 elements are cut into \[3, 2\]"),
        ([(3, 7), (2, 6)], r"parts of shapes \[\[3, 7\], \[2, 6\]\]: other axes must be equal"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(shapes, message):
    """Whatever else is communicated later: parts that no cut gives are an error at once, on all ranks."""

    def main(rank):
        with pytest.raises(ValueError, match=message):
            dtensor_from_local(Tensor(np.ones(shapes[rank], np.float32)), ProcessMesh([0, 1]), [Shard(0)])

    on_ranks(main, 2)


def test_a_program_with_states_is_partitioned():
    """States stay local from call to call; a deferred constant is made in the layout that is asked for."""
    program = Program("step")
    x = program.add_input(TensorType((4, 6), "float32"))
    w = program.add_state("w", TensorType((6, 5), "float32")).argument
    with emit_at(Builder.at_end(program.block)):
        y = prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))
        new = prim.add(w, 0.5)
    program.set_outputs([y], [new])
    mesh = ProcessMesh([0, 1, 2, 3])
    a, b = X[:4, :6], np.ones((6, 5), np.float32)

    def main(rank):
        from argosy_autoparallel import communicators, ensure_groups

        ensure_groups(mesh)
        layout = Layout(mesh, [Shard(1)])
        made = partition_program(program, [Layout.replicate(mesh)], [layout], rank, [Layout.replicate(mesh)])
        made.program.verify()
        part = layout.local_slice(b.shape, rank).slices()
        (out,), (state,) = interpret(made.program, [a], [b[part]], communicators())
        np.testing.assert_allclose(out, a @ b, rtol=1e-6)
        np.testing.assert_array_equal(state, (b + 0.5)[part])

    on_ranks(main, 4)


def test_errors_teach():
    """A mesh too large, placements that do not fit, reductions without an order, two meshes at once."""

    def main(rank):
        mesh = ProcessMesh([0, 1])
        with pytest.raises(ValueError, match="names rank 7, but 2 ranks were launched"):
            shard_tensor(X, ProcessMesh([0, 7]), [Shard(0)])
        with pytest.raises(ValueError, match="tensor of 2 dimensions does not have"):
            shard_tensor(X, mesh, [Shard(2)])
        with pytest.raises(ValueError, match="2 placements, but"):
            shard_tensor(X, mesh, [Shard(0), Shard(1)])
        with pytest.raises(TypeError, match="a placement is"):
            shard_tensor(X, mesh, ["x"])
        with pytest.raises(ValueError, match="different kinds"):
            shard_tensor(X, ProcessMesh([[0, 1]]), [Partial(), Partial(ReduceType.kRedMax)])
        x = shard_tensor(X, mesh, [Shard(0)])
        y = shard_tensor(X, ProcessMesh([1]), [Shard(0)])
        with pytest.raises(ValueError, match="different meshes"):
            get_operator("add")(x, y)

    on_ranks(main, 2)


def test_a_split_bias_moves_instead_of_the_activations():
    """Rows split over a batch plus a bias split over its width: the bias is gathered, 16 bytes, and the rows stay."""

    def main(rank):
        mesh = ProcessMesh([0, 1])
        x = shard_tensor(np.ones((64, 8), np.float32), mesh, [Shard(0)])
        bias = shard_tensor(np.arange(8, dtype=np.float32), mesh, [Shard(0)])
        with count_collectives() as counts:
            y = get_operator("add")(x, bias)
        return counts.log, y.placements, y.numpy()[5].tolist()

    assert on_ranks(main, 2) == [([("all_gather", 16)], [Shard(0)], [1.0 + i for i in range(8)])] * 2
