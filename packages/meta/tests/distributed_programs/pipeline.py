"""A GPT of two stages, trained by the schedule that the environment names; prints each loss with all its digits."""

import os
import sys

import numpy as np

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.models import GPT, GPTConfig

ROWS, COUNT, STEPS = 8, 4, 2


class Decoder(GPT):
    def forward(self, ids):
        return super().forward(ids)


def loss_of(logits, labels):
    return nn.functional.cross_entropy(logits.reshape([-1, logits.shape[-1]]), labels.reshape([-1]))


paddle.seed(0)
model = Decoder(GPTConfig(64, 16, 32, 4, 2, dropout=0.1, tied=True))
optimizer = paddle.optimizer.AdamW(0.01, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.5))
stages = dist.get_world_size()
rng = np.random.default_rng(0)
batches = [[paddle.to_tensor(rng.integers(0, 64, (ROWS, 16))) for _ in range(2)] for _ in range(STEPS)]

if stages > 1:
    mesh = dist.ProcessMesh(list(range(stages)), ["pp"])
    model, optimizer = dist.parallelize(model, optimizer, mesh, {"pp_config": {"split_spec": "blocks"}})
    pipeline = {"enable": True, "schedule_mode": os.environ["SCHEDULE"], "accumulate_steps": COUNT}
    step = dist.to_static(model, None, loss_of, optimizer, dist.Strategy({"pipeline": pipeline}))
    losses = [float(step(x, y)) for x, y in batches]
else:
    losses = []
    for x, y in batches:
        total = 0.0
        for i in range(COUNT):
            rows = slice(i * ROWS // COUNT, (i + 1) * ROWS // COUNT)
            loss = loss_of(model(x[rows]), y[rows])
            (loss / COUNT).backward()
            total += float(loss) / COUNT
        optimizer.step()
        optimizer.clear_grad()
        losses.append(total)
sys.stdout.write("".join(f"{loss:.9g}\n" for loss in losses))
