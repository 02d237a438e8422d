"""On a mesh every rank looks at its part of the indices, and holds them against the whole axis."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
import argosy.nn.functional as F
from argosy.distributed.debug import run_ranks

TABLE = np.arange(12, dtype=np.float32).reshape(6, 2)


def looked_up(table_placement, index_placement):
    """What a captured lookup gives, and what it says of indices that are out of range."""
    mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
    table = dist.shard_tensor(paddle.to_tensor(TABLE), mesh, [table_placement])
    look = paddle.jit.to_static(lambda i: F.embedding(i, table), full_graph=True)

    def ids(*values):
        return dist.shard_tensor(paddle.to_tensor(list(values)), mesh, [index_placement])

    found = look(ids(5, 0, 1, 4)).numpy()
    with pytest.raises(IndexError) as caught:
        look(ids(5, 6, 1, 6))
    return found, str(caught.value)


@pytest.mark.parametrize("index_placement", [dist.Shard(0), dist.Replicate()], ids=str)
@pytest.mark.parametrize("table_placement", [dist.Shard(0), dist.Shard(1), dist.Replicate()], ids=str)
def test_indices_of_a_split_table_are_those_of_the_whole(table_placement, index_placement):
    """An index in another rank's part is none of this rank's, and no error."""
    for found, said in run_ranks(lambda: looked_up(table_placement, index_placement), 2):
        np.testing.assert_array_equal(found, TABLE[[5, 0, 1, 4]])
        assert "embedding: index 6 is out of range; expected 0 to 5 for an axis of 6" in said


def test_a_rank_that_refuses_ends_the_job():
    def job():
        mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
        table = dist.shard_tensor(paddle.to_tensor(TABLE), mesh, [dist.Shard(0)])
        look = paddle.jit.to_static(lambda i: F.embedding(i, table).sum(), full_graph=True)
        return float(look(dist.shard_tensor(paddle.to_tensor([1, 2, 3, 6]), mesh, [dist.Shard(0)])).numpy())

    with pytest.raises(IndexError, match="index 6 is out of range"):
        run_ranks(job, 2)
