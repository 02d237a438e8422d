"""A tensor of four rows and three columns over a mesh of six ranks."""

import argosy as paddle
import argosy.distributed as dist

mesh = dist.ProcessMesh([[0, 2, 4], [1, 3, 5]], dim_names=["x", "y"])
placements = [dist.Shard(0), dist.Shard(1)]

dense = paddle.to_tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]])
sharded = dist.shard_tensor(dense, mesh, placements)
