"""Operators on distributed tensors equal operators on one process, whatever the placements."""

import pytest
from prover import MESHES, calls, prove, samples

from argosy_phi_ops.declare.index import MODULES

NAMES = sorted(MODULES)
LONGEST = {"2": 1500, "2x2": 100}  # in primitives; of operators that have none so short, the shortest sample
HUGE = 1000  # primitives of the shortest sample: such operators are proven on two ranks here, and by the brute force
MAKERS = {
    "arange", "empty", "eye", "full", "gaussian", "linspace", "logspace", "ones", "rand", "randint", "randn",
    "randperm", "tril_indices", "triu_indices", "uniform", "zeros",
}  # fmt: skip


def is_huge(name):
    return any(primitives > HUGE for *_, primitives in calls(name, longest=0))


PARTS = [("2", 0), ("2", 1), ("2", 2), ("2x2", 3)]
EXHAUSTIVE = [pytest.param(mesh, part, marks=pytest.mark.exhaustive) for mesh in LONGEST for part in range(4)
              if (mesh, part) not in PARTS]  # fmt: skip


@pytest.mark.parametrize(("mesh", "part"), PARTS + EXHAUSTIVE)
def test_operators_do_not_depend_on_placements(mesh, part):
    """A layout by chance of every operator's samples; uneven and empty shards and partial operands included."""
    names = [name for name in NAMES[part::4] if mesh == "2" or not is_huge(name)]
    proven = prove(names, MESHES[mesh], limit=1, seed=part, longest=LONGEST[mesh])
    assert {name for name, found in proven.items() if not found.cases} <= MAKERS
    assert sum(found.uneven for found in proven.values()) > 50
    assert sum(found.partial for found in proven.values()) > 30


def test_only_operators_without_tensors_have_nothing_to_prove():
    """Every operator has samples, and what is not proven takes no tensor: it makes one, which shard_tensor lays out."""
    assert all(samples(name) for name in NAMES)
    assert {name for name in NAMES if not calls(name)} == MAKERS


@pytest.mark.soak
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", NAMES)
def test_all_placements(name, mesh):
    """The whole brute force: all placements on every mesh (up to 400 combinations a sample)."""
    prove([name], MESHES[mesh], limit=400)
