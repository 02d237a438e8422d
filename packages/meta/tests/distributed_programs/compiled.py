"""The compiled loop: two layers on two meshes, converted by ``dist.to_static``; every rank prints the loss."""

import numpy as np

import argosy as paddle
import argosy.distributed as dist
from argosy.io import DataLoader, TensorDataset

mesh0 = dist.ProcessMesh([0, 1], dim_names=["x"])
mesh1 = dist.ProcessMesh([2, 3], dim_names=["x"])


class MyModel(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.w0 = dist.shard_tensor(self.create_parameter([6, 8]), mesh0, [dist.Shard(1)])
        self.w1 = dist.shard_tensor(self.create_parameter([8, 6]), mesh1, [dist.Shard(0)])

    def forward(self, x):
        y = dist.reshard(paddle.matmul(x, self.w0), mesh1, [dist.Shard(1)])
        return paddle.matmul(y, self.w1)


rows = np.random.default_rng(0).standard_normal((12, 6)).astype("float32")
dataloader = DataLoader(TensorDataset([paddle.to_tensor(rows)]), batch_size=4)
dataloader = dist.shard_dataloader(dataloader, meshes=mesh0, shard_dims=None)

paddle.seed(3)
model = MyModel()
optimizer = dist.shard_optimizer(paddle.optimizer.AdamW(learning_rate=0.1, parameters=model.parameters()))
printed = []

# Convert to static for optimized execution
static_model = dist.to_static(model, dataloader, paddle.mean, optimizer)
static_model.train()
for step, batch in enumerate(dataloader):
    loss = static_model(batch)
    printed.append(f"{step} {loss}")
