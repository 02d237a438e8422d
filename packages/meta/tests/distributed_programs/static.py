"""The loop over a compiled model, its parameters split over the ranks; without a launcher the same model alone."""

import sys

import numpy as np

import argosy as paddle
import argosy.distributed as dist
from argosy.io import DataLoader, TensorDataset

mesh = dist.ProcessMesh(list(range(dist.get_world_size())), dim_names=["x"])
paddle.seed(11)


class MyModel(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.w0 = dist.shard_tensor(self.create_parameter([6, 8]), mesh, [dist.Shard(1)])
        self.w1 = dist.shard_tensor(self.create_parameter([8, 4]), mesh, [dist.Shard(0)])
        self.dropout = paddle.nn.Dropout(0.2)

    def forward(self, x):
        return paddle.matmul(self.dropout(paddle.nn.functional.gelu(paddle.matmul(x, self.w0))), self.w1)


model = MyModel()
rows = paddle.to_tensor(np.random.default_rng(3).standard_normal((12, 6), np.float32))
dataloader = dist.shard_dataloader(DataLoader(TensorDataset([rows]), batch_size=4), mesh)
optimizer = paddle.optimizer.AdamW(0.01, parameters=model.parameters())

static_model = dist.to_static(model, dataloader, paddle.mean, optimizer)
static_model.train()
for _ in range(2):
    for step, batch in enumerate(dataloader):
        loss = static_model(batch)
        print(step, loss)  # noqa: T201
        sys.stderr.write(f"{float(loss):.9g}\n")
