"""Process meshes: layout, names, parts, equality and errors."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_autoparallel import ProcessMesh


@pytest.fixture
def mesh():
    return ProcessMesh([[2, 4, 5], [0, 1, 3]], dim_names=["x", "y"])


def test_properties(mesh):
    """Shape, ranks, names and sizes are those of the array given."""
    assert (mesh.shape, mesh.ndim, mesh.size) == ([2, 3], 2, 6)
    assert mesh.process_ids == [2, 4, 5, 0, 1, 3]
    assert mesh.dim_names == ["x", "y"]
    assert [mesh.get_dim_size(name) for name in "xy"] == [2, 3]
    assert ProcessMesh(np.arange(8).reshape(2, 2, 2)).dim_names == ["d0", "d1", "d2"]


def test_shape_and_process_ids_are_another_spelling(mesh):
    """A mesh may be given flat."""
    assert ProcessMesh(shape=[2, 3], process_ids=[2, 4, 5, 0, 1, 3]) == mesh


def test_a_mesh_cannot_be_changed(mesh):
    """Neither its array nor its lists lead back into it."""
    mesh.dim_names.append("z")
    mesh.process_ids.clear()
    with pytest.raises(ValueError, match="read-only"):
        mesh.mesh[0, 0] = 9
    assert (mesh.dim_names, mesh.size) == (["x", "y"], 6)


@pytest.mark.parametrize(
    ("index", "ranks", "names"),
    [
        (0, [2, 4, 5], ["y"]),
        (-1, [0, 1, 3], ["y"]),
        (slice(1, 2), [[0, 1, 3]], ["x", "y"]),
        ((slice(None), 1), [4, 1], ["x"]),
        ((slice(None), slice(0, 2)), [[2, 4], [0, 1]], ["x", "y"]),
        ((1,), [0, 1, 3], ["y"]),
        ((1, 2), [3], ["d0"]),
    ],
)
def test_indexing_keeps_the_names_of_sliced_dimensions(mesh, index, ranks, names):
    """Integers drop a dimension, slices and unmentioned dimensions stay; one rank is a mesh of one
    dimension.
    """
    part = mesh[index]
    assert (part.mesh.tolist(), part.dim_names) == (ranks, names)


def test_mesh_with_dim_moves_a_dimension_to_the_front(mesh):
    """The named dimension comes first, or is cut at an index."""
    moved = mesh.get_mesh_with_dim("y")
    assert (moved.mesh.tolist(), moved.dim_names) == ([[2, 0], [4, 1], [5, 3]], ["y", "x"])
    assert (mesh.get_mesh_with_dim("y", 2).mesh.tolist(), mesh.get_mesh_with_dim("y", 2).dim_names) == (
        [5, 3],
        ["x"],
    )
    assert ProcessMesh([7, 8], ["x"]).get_mesh_with_dim("x", 1).process_ids == [8]
    with pytest.raises(IndexError, match="index 3 is outside dimension 'y' of size 3"):
        mesh.get_mesh_with_dim("y", 3)


def test_coordinates_and_lines(mesh):
    """A rank has a coordinate, and a line of ranks along each dimension goes through it."""
    assert mesh.coordinate(1) == (1, 1)
    assert mesh.get_rank_by_dim_and_process_id("y", 3) == 2
    assert mesh.get_rank_by_dim_and_process_id("y", 9) == -1
    assert mesh.get_submesh_with_dim("x", 3).process_ids == [5, 3]
    assert mesh.get_submesh_with_dim("y", 3).process_ids == [0, 1, 3]
    assert mesh.get_submesh_with_dim("y") == mesh.get_submesh_with_dim("y", 0)  # through this rank
    assert ProcessMesh([1, 2], ["x"]).get_submesh_with_dim("x") is None
    assert mesh.contains(4)
    assert 4 in mesh
    assert 9 not in mesh


@given(st.permutations(range(6)))
@settings(deadline=None)
def test_every_rank_is_found_where_it_is(ranks):
    """coordinate is the inverse of indexing."""
    mesh = ProcessMesh(np.reshape(ranks, (3, 2)))
    for rank in ranks:
        assert mesh[mesh.coordinate(rank)].process_ids == [rank]


def test_equality_ignores_names_but_not_layout(mesh):
    """Equal meshes hash alike; other shapes, orders and objects differ."""
    same = ProcessMesh([[2, 4, 5], [0, 1, 3]], ["a", "b"])
    assert mesh == same
    assert hash(mesh) == hash(same)
    assert mesh != ProcessMesh([2, 4, 5, 0, 1, 3])
    assert mesh != ProcessMesh([[2, 4, 5], [0, 3, 1]])
    assert mesh != [[2, 4, 5], [0, 1, 3]]


def test_repr_and_pickle_give_the_mesh_back(mesh):
    """The printed form is Python, and meshes travel between processes."""
    assert repr(mesh) == "ProcessMesh([[2, 4, 5], [0, 1, 3]], dim_names=['x', 'y'])"
    for copy in (eval(repr(mesh)), pickle.loads(pickle.dumps(mesh))):
        assert copy == mesh
        assert copy.dim_names == mesh.dim_names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1], [1, 2]],), r"ranks \[1\] appear more than once"),
        (([0, -1],), "rank -1 is negative"),
        (([0.5, 1],), "nested lists of integers"),
        (([],), "nested lists of integers"),
        ((3,), "nested lists of integers"),
        (([[0, 1]], ["x"]), r"1 dim_names \['x'\] for 2 dimensions"),
        (([[0, 1]], ["x", "x"]), "must differ"),
        ((), "needs the ranks"),
        ((None, None, [2, 2], [0, 1, 2]), r"3 process_ids do not fill shape \[2, 2\]"),
    ],
)
def test_impossible_meshes_are_refused_with_reasons(arguments, message):
    """The error says which rank or name is wrong."""
    with pytest.raises(ValueError, match=message):
        ProcessMesh(*arguments)


def test_unknown_dimensions_and_ranks_are_named(mesh):
    """The error lists what there is."""
    with pytest.raises(ValueError, match=r"'z' is not one of \['x', 'y'\]"):
        mesh.get_dim_size("z")
    with pytest.raises(ValueError, match=r"rank 9 is not part of ProcessMesh"):
        mesh.coordinate(9)
    with pytest.raises(IndexError, match="3 indices for the 2 dimensions"):
        mesh[0, 0, 0]
