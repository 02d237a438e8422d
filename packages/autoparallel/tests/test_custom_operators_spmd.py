"""Operators that users declare are sharded like all others: on whole tensors, or along the axes that they name."""

import numpy as np
import pytest
from prover import MESHES, prove
from ranks import on_ranks

from argosy_autoparallel import Partial, ProcessMesh, Replicate, Shard, count_collectives, shard_tensor
from argosy_phi_ops.custom_ops.declaration import custom_op
from argosy_phi_ops.custom_ops.host_functions import HOSTS
from argosy_phi_ops.declare.operator import OPERATORS, Sample, get_operator
from argosy_tensorcore.tensor import Tensor


def _declare():
    @custom_op("spmdtest.whole")
    def whole(x: Tensor) -> Tensor:
        """A rank needs everything."""
        return np.sort(x, axis=None).reshape(x.shape)

    @custom_op("spmdtest.each", axes="... -> ...")
    def each(x: Tensor, factor: float = 2.0) -> Tensor:
        """Elementwise, and not linear."""
        return np.tanh(x) * factor

    @custom_op("spmdtest.rows", axes="b !n -> b n, b")
    def rows(x: Tensor) -> tuple[Tensor, Tensor]:
        """Whole rows, two results."""
        norm = np.sqrt((x * x).sum(1))
        return x / norm[:, None], norm

    @rows.types
    def _(x):
        return [x, ((x.shape[0],), x.dtype)]

    @custom_op("spmdtest.pair", axes="b n, n -> b n")
    def pair(x: Tensor, w: Tensor) -> Tensor:
        """Two operands that share an axis."""
        return np.maximum(x, w)

    @custom_op("spmdtest.written", on_tensors=True)
    def written(x: Tensor, w: Tensor) -> Tensor:
        """A body of tensors: sharded as its primitives are."""
        return (x * w).sum(axis=0)

    return whole, each, rows, pair, written


@pytest.fixture(autouse=True)
def operators():
    """Declared for a test, with samples of sizes that no mesh divides evenly."""
    made = _declare()
    for op in made:

        @op.samples
        def _(rng, op=op):
            yield Sample(*[rng.standard_normal(s) for s in ((5, 3), (3,))[: len(op.signature.operands)]])

    yield [op.name for op in made]
    for op in made:
        del OPERATORS[op.name]
        HOSTS.pop(op.name, None)


@pytest.mark.parametrize("mesh", MESHES)
def test_custom_operators_do_not_depend_on_placements(operators, mesh):
    """All placements of all operands on every mesh, terms of sums and uneven parts included."""
    for found in prove(operators, MESHES[mesh], limit=400).values():
        assert found.cases == found.possible > 0
        assert found.uneven
        assert found.partial


@pytest.mark.parametrize(
    ("name", "given", "expected", "calls"),
    [
        ("whole", Shard(0), Replicate(), {"all_gather": 1}),
        ("each", Shard(1), Shard(1), {}),
        ("each", Partial(), Replicate(), {"all_reduce": 1}),
        ("rows", Shard(0), Shard(0), {}),
    ],
)
def test_axes_decide_what_is_communicated(name, given, expected, calls):
    """Without axes the operand is gathered; along an axis that is named nothing moves; a sum is made first."""

    def main(rank):
        x = shard_tensor(np.ones((4, 6), np.float32), ProcessMesh([0, 1]), [given])
        with count_collectives() as counts:
            result = get_operator(f"spmdtest.{name}")(x)
        return (result[0] if isinstance(result, tuple) else result).placements, counts.calls

    assert on_ranks(main, 2) == [([expected], calls)] * 2
