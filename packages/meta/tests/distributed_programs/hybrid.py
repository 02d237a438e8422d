"""Data, tensor and pipeline parallelism by annotation: two layers on two meshes of four ranks each."""

import numpy as np

import argosy as paddle
import argosy.distributed as dist
from argosy.io import BatchSampler, DataLoader, Dataset

mesh0 = dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])
mesh1 = dist.ProcessMesh([[4, 5], [6, 7]], dim_names=["x", "y"])


class RandomDataset(Dataset):
    def __init__(self, seq_len, hidden, num_samples=100):
        self.seq_len = seq_len
        self.hidden = hidden
        self.num_samples = num_samples

    def __getitem__(self, idx):
        input = np.random.uniform(size=[self.seq_len, self.hidden]).astype("float32")
        label = np.random.uniform(size=[self.seq_len, self.hidden]).astype("float32")
        return input, label

    def __len__(self):
        return self.num_samples


class MlpModel(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.w0 = dist.shard_tensor(self.create_parameter([1024, 4096]), mesh0, [dist.Replicate(), dist.Shard(1)])
        self.w1 = dist.shard_tensor(self.create_parameter([4096, 1024]), mesh1, [dist.Replicate(), dist.Shard(0)])

    def forward(self, x):
        y = paddle.matmul(x, self.w0)
        y = dist.reshard(y, mesh1, [dist.Shard(0), dist.Shard(2)])  # pipeline transfer
        z = paddle.matmul(y, self.w1)
        return z


model = MlpModel()

dataset = RandomDataset(128, 1024)
sampler = BatchSampler(dataset, batch_size=2)
dataloader = DataLoader(dataset, batch_sampler=sampler)
dataloader = dist.shard_dataloader(dataloader, meshes=[mesh0, mesh1], shard_dims="x")

opt = paddle.optimizer.AdamW(learning_rate=0.001, parameters=model.parameters())
opt = dist.shard_optimizer(opt)

for step, (data, _) in enumerate(dataloader):  # noqa: B007
    logits = model(data)
    loss = paddle.mean(logits)
    loss.backward()
    opt.step()
    opt.clear_grad()
