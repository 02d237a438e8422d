"""The induction over steps: a sample of them in every run, and that a wrong step is found."""

import random

import numpy as np
import prove_all
import pytest
import steps as proof
from lockstep import parts_of, whole_of
from prover import MESHES, STEP_MESHES
from steps import (
    Application,
    Steps,
    Value,
    changes,
    kinds_of,
    prove_application,
    prove_changes,
    prove_transfers,
    steps_of,
)
from whole import prove_whole

from argosy_autoparallel import Layout, Partial, ProcessMesh, ReduceType, Replicate, Shard
from argosy_autoparallel.localize import emit_local
from argosy_autoparallel.resharding.path import layout_path
from argosy_autoparallel.resharding.steps import emit_step
from argosy_phi_ops import prim
from argosy_phi_ops.declare.index import MODULES
from argosy_pir import TensorType

SHORT = ["add", "cast", "cumsum", "exp", "flip", "matmul", "roll", "sum", "transpose", "where"]
"""Operators whose steps on eight ranks take seconds."""
ADDED = Application("prim.add", (), (TensorType((3,), "float32"),) * 2, (TensorType((3,), "float32"),))


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("mesh", STEP_MESHES)
def test_steps_of_some_operators_are_right(mesh):
    """Another sample in every run; what fails names the step, which says it all."""
    sizes = np.asarray(STEP_MESHES[mesh]).shape
    names = random.Random().sample(sorted(MODULES) if len(sizes) < 3 else SHORT, 12 // len(sizes) ** 2)
    proof = Steps(STEP_MESHES[mesh])
    for name in names:
        assert proof.prove(name) >= 0, name


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "bool", "bfloat16"])
def test_every_reduction_changes_rightly(dtype):
    """Sums, products, extrema and averages, with uneven and empty parts."""
    for shape in ((), (3,), (2, 3), (0, 2)):
        assert prove_changes(Value(shape, dtype), ProcessMesh([0, 1]), kinds_of(dtype), np.random.default_rng(0))


@pytest.mark.parametrize(("source", "target"), [
    ([0, 1], [2, 3]), ([0, 1], [2, 0, 1]), ([[0, 1], [2, 3]], [1, 4]), ([3, 0, 1], [[0, 1], [2, 3]]),
])  # fmt: skip
def test_values_go_from_every_layout_to_every_one_of_another_mesh(source, target):
    """Meshes apart, overlapping, one within the other; uneven parts, terms of sums."""
    array = np.arange(15.0, dtype=np.float32).reshape(3, 5)
    assert prove_transfers(array, ProcessMesh(source), ProcessMesh(target)) >= 16


def test_parts_make_the_whole_again():
    """Uneven nested parts and unequal terms."""
    mesh, x = ProcessMesh([[0, 1], [2, 3]]), np.arange(15.0).reshape(5, 3)
    for placements in ([Shard(0), Shard(0)], [Shard(1), Partial()], [Partial(ReduceType.kRedMax), Shard(0)]):
        parts = parts_of(x, Layout(mesh, placements))
        assert any(p.shape != x.shape or (p != x).any() for p in parts)
        np.testing.assert_array_equal(whole_of(parts, Layout(mesh, placements)), x)


def test_a_wrong_step_is_found(monkeypatch):
    """An application that forgets a term, and a change of layout that takes the wrong rows."""
    mesh, rng = ProcessMesh([0, 1]), np.random.default_rng(0)
    assert prove_application(ADDED, mesh, (ReduceType.kRedSum,), rng) == 3  # everywhere, split, terms of a sum
    monkeypatch.setattr(proof, "emit_local", lambda local: [prim.neg(x) for x in emit_local(local)])
    with pytest.raises(AssertionError):
        prove_application(ADDED, mesh, (), rng)
    monkeypatch.setattr(proof, "emit_step", lambda *given: prim.neg(emit_step(*given)))
    with pytest.raises(AssertionError):
        prove_changes(Value((3,), "float32"), mesh, (), rng)


def test_reductions_of_different_kinds_never_meet():
    """No way between layouts goes through terms of a sum of factors of a product: they have no order."""
    mesh = ProcessMesh([[0, 1], [2, 3]])
    total, product = Partial(), Partial(ReduceType.kRedProd)
    source, target = Layout(mesh, [total, Replicate()]), Layout(mesh, [Replicate(), product])
    at = source
    for dim, new in layout_path(source, target, (4,), 4):
        at = at.with_placement(dim, new)
        assert len({p for p in at.placements if p.is_partial()}) <= 1
    assert at == target
    kinds = [{p for p in x.placements if p.is_partial()} for x, _, _ in changes(Value((2,), "int64"), mesh, (0, 3))]
    assert max(map(len, kinds)) == 1


def test_all_layouts_in_step_are_those_of_threads():
    """The brute force on ranks in step counts what the one on threads does; opaque operators stay there."""
    relu, found = prove_whole("relu", MESHES["2x2"]), prove_whole("nonzero", MESHES["2"])
    assert relu.cases == relu.possible > relu.uneven > 0 < relu.partial
    assert found.cases == found.possible > 0


def test_every_operator_is_proven_on_every_mesh():
    """In all layouts, by its steps or one by one: operators without a program have no steps."""
    record = prove_all.read(prove_all.RECORD)
    for name, entry in record.items():
        for mesh in MESHES:
            found = prove_all.Recorded(*entry[mesh])
            assert entry[f"steps {mesh}"] > 0 or found.cases == found.possible, (name, mesh)
    assert steps_of("nonzero").applications == []
