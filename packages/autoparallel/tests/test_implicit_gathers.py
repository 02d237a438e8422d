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
        order, square = get_operator("sort"), get_operator("multiply")
        before = order(x, 0).numpy()
        with strict():
            square(x, x)
            total = get_operator("sum")(x)  # a sum over ranks is no gather
            with pytest.raises(ImplicitGatherError, match=r"gathers float32\[6\], 24 bytes, from 'dp=2 on 0-1: S"):
                order(x, 0)
            asked = order(reshard(x, mesh, [Replicate()]), 0)
            with pytest.raises(ImplicitGatherError, match="nonzero: has no decomposition"):
                get_operator("nonzero")(x)
        np.testing.assert_array_equal(asked.numpy(), before)
        np.testing.assert_array_equal(order(x, 0).numpy(), before)
        return float(total.numpy())

    assert on_ranks(main, 2) == [15.0, 15.0]
