"""Operators on distributed tensors equal operators on one process, whatever the placements."""

import pytest
from prover import MESHES, prove

from argosy_phi_ops.index import MODULES

NAMES = sorted(MODULES)


@pytest.mark.parametrize("mesh", ["2", "2x2"])
@pytest.mark.parametrize("part", range(4))
def test_operators_do_not_depend_on_placements(mesh, part):
    """Some layouts by chance of every operator's samples; uneven and empty shards and partial operands included."""
    assert prove(NAMES[part::4], MESHES[mesh], limit=1, seed=part) > 50


@pytest.mark.soak
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", NAMES)
def test_all_placements(name, mesh):
    """The whole brute force: all placements on every mesh (up to 400 combinations a sample)."""
    prove([name], MESHES[mesh], limit=400)
