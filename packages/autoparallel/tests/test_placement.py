"""Placements and the parts of tensors they give to ranks."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy_autoparallel import Partial, ProcessMesh, ReduceType, Replicate, Shard
from argosy_autoparallel.local_slice import chunk, largest_local_shape, local_slice


def test_placements_print_as_their_constructors():
    """The printed forms are those that users know."""
    assert [repr(p) for p in (Replicate(), Shard(0), Partial(), Partial(ReduceType.kRedMax))] == [
        "Replicate()",
        "Shard(dim=0)",
        "Partial(reduce_type=SUM)",
        "Partial(reduce_type=MAX)",
    ]


def test_each_placement_knows_its_kind():
    """Exactly one of the three questions is answered yes."""
    for placement, kind in ((Shard(1), "shard"), (Replicate(), "replicate"), (Partial(), "partial")):
        answers = {name: getattr(placement, f"is_{name}")() for name in ("shard", "replicate", "partial")}
        assert [name for name, yes in answers.items() if yes] == [kind]
        assert placement.is_replicated() == placement.is_replicate()
    assert Shard(1).is_shard(1)
    assert not Shard(1).is_shard(0)
    assert Shard(-2).get_dim() == -2
    assert Partial(ReduceType.kRedMin).reduce_type() is ReduceType.kRedMin


def test_placements_compare_by_value():
    """Equal placements are one element of a set."""
    assert len({Shard(0), Shard(0), Shard(1), Replicate(), Replicate(), Partial()}) == 4
    assert Shard(0) != Replicate()
    assert Partial() == Partial(ReduceType.kRedSum) != Partial(ReduceType.kRedAvg)


@pytest.mark.parametrize("dim", ["0", 0.0, True, None])
def test_shard_takes_a_dimension_number(dim):
    """Anything but an integer is a TypeError."""
    with pytest.raises(TypeError, match="number of a tensor dimension"):
        Shard(dim)


@pytest.mark.parametrize(
    ("size", "parts", "lengths"),
    [(5, 2, [3, 2]), (7, 3, [3, 3, 1]), (5, 4, [2, 2, 1, 0]), (0, 2, [0, 0]), (6, 3, [2, 2, 2])],
)
def test_first_ranks_get_the_ceiling(size, parts, lengths):
    """Uneven dimensions fill from the front; the last ranks may hold nothing."""
    assert [chunk(size, parts, part)[1] for part in range(parts)] == lengths


placements = st.lists(
    st.one_of(st.just(Replicate()), st.just(Partial()), st.integers(-2, 1).map(Shard)), min_size=2, max_size=2
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.tuples(st.integers(0, 9), st.integers(0, 9)), st.integers(1, 4), st.integers(1, 4), placements)
def test_parts_tile_the_tensor(shape, rows, columns, chosen):
    """Every element is held once per combination of ranks that do not split it, and parts fit together."""
    mesh = ProcessMesh(np.arange(rows * columns).reshape(rows, columns))
    held = np.zeros(shape, int)
    for rank in mesh.process_ids:
        part = local_slice(shape, mesh, chosen, rank)
        assert held[part.slices()].shape == part.shape
        held[part.slices()] += 1
    copies = [n for n, p in zip(mesh.shape, chosen, strict=True) if not p.is_shard()]
    assert (held == np.prod(copies, dtype=int)).all()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.tuples(st.integers(0, 9), st.integers(0, 9)), placements)
def test_the_first_rank_holds_the_largest_part(shape, chosen):
    """Memory plans may look at one rank only."""
    mesh = ProcessMesh([[0, 1, 2], [3, 4, 5]])
    largest = largest_local_shape(shape, mesh, chosen)
    for rank in mesh.process_ids:
        assert all(n <= m for n, m in zip(local_slice(shape, mesh, chosen, rank).shape, largest, strict=True))


def test_one_dimension_split_twice_nests_in_mesh_order():
    """The second mesh dimension cuts the chunks of the first."""
    mesh = ProcessMesh([[0, 1], [2, 3]])
    parts = [local_slice((5,), mesh, [Shard(0), Shard(0)], rank) for rank in range(4)]
    assert [(p.offset[0], p.shape[0]) for p in parts] == [(0, 2), (2, 1), (3, 1), (4, 1)]


def test_impossible_layouts_are_refused():
    """Wrong numbers of placements, missing dimensions and foreign ranks are named."""
    mesh = ProcessMesh([0, 1], ["mp"])
    with pytest.raises(ValueError, match="2 placements for the 1 of ProcessMesh"):
        local_slice((4,), mesh, [Shard(0), Shard(0)], 0)
    with pytest.raises(ValueError, match=r"Shard\(dim=1\) along mesh dimension 'mp': .* 1 dimensions"):
        local_slice((4,), mesh, [Shard(1)], 0)
    with pytest.raises(ValueError, match="rank 2 is not part"):
        local_slice((4,), mesh, [Shard(0)], 2)
