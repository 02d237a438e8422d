"""Operators on distributed tensors equal operators on one process, whatever the placements."""

import pytest
from prover import MESHES, prove, samples, tensor_operands

from argosy_phi_ops.index import MODULES

NAMES = sorted(MODULES)
LONGEST = {"2": 1500, "2x2": 250}  # in primitives; the brute force below takes all
MAKERS = {
    "arange", "empty", "eye", "full", "gaussian", "linspace", "logspace", "ones", "rand", "randint", "randn",
    "randperm", "tril_indices", "triu_indices", "uniform", "zeros",
}  # fmt: skip


@pytest.mark.parametrize("mesh", ["2", "2x2"])
@pytest.mark.parametrize("part", range(4))
def test_operators_do_not_depend_on_placements(mesh, part):
    """Some layouts by chance of every operator's samples; uneven and empty shards and partial operands included."""
    assert prove(NAMES[part::4], MESHES[mesh], limit=1, seed=part, longest=LONGEST[mesh]) > 50


def test_only_operators_without_tensors_have_nothing_to_prove():
    """Every operator has samples, and what is not proven takes no tensor: it makes one, which shard_tensor lays out."""
    assert all(samples(name) for name in NAMES)
    assert {name for name in NAMES if not any(tensor_operands(name, sample) for sample in samples(name))} == MAKERS


@pytest.mark.soak
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", NAMES)
def test_all_placements(name, mesh):
    """The whole brute force: all placements on every mesh (up to 400 combinations a sample)."""
    prove([name], MESHES[mesh], limit=400)
