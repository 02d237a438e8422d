"""Blocks in which nobody gathers unasked: eagerly and in programs, whatever was partitioned before."""

import numpy as np
import pytest
from ranks import on_ranks

from argosy_autoparallel import ImplicitGatherError, ProcessMesh, Replicate, Shard, reshard, shard_tensor, strict
from argosy_phi_ops.declare.operator import get_operator


def test_an_operand_that_would_be_gathered_is_named():
    """With bytes and layouts; what was partitioned before the block is looked at, too."""

    def main(rank):
        mesh = ProcessMesh([0, 1], dim_names=["dp"])
        x = shard_tensor(np.arange(6, dtype=np.float32), mesh, [Shard(0)])
        turn, square = get_operator("flip"), get_operator("multiply")
        before = turn(x, 0).numpy()
        with strict():
            square(x, x)
            total = get_operator("sum")(x)  # a sum over ranks is no gather
            get_operator("sort")(x, 0)  # ranks merge their parts
            with pytest.raises(ImplicitGatherError, match=r"gathers float32\[6\], 24 bytes, from 'dp=2 on 0-1: S"):
                turn(x, 0)
            asked = turn(reshard(x, mesh, [Replicate()]), 0)
            with pytest.raises(ImplicitGatherError, match="nonzero: has no decomposition"):
                get_operator("nonzero")(x)
        np.testing.assert_array_equal(asked.numpy(), before)
        np.testing.assert_array_equal(turn(x, 0).numpy(), before)
        return float(total.numpy())

    assert on_ranks(main, 2) == [15.0, 15.0]
