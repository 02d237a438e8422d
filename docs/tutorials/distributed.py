# %% [markdown]
# # Several ranks, first in a notebook, then as processes
#
# A rank has a part of the work. The script of several ranks is that of one; a few lines say how tensors are laid out,
# and the engine puts in the communication. In a notebook, ranks are threads of this process; later `argosy launch`
# starts them as processes.

# %%
import numpy as np

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed.debug import run_ranks

# %% [markdown]
# ## Ranks in this notebook
#
# `run_ranks` calls a function once for each rank, and gives what each returned.

# %%
run_ranks(lambda: f"rank {dist.get_rank()} of {dist.get_world_size()}", 3)


# %% [markdown]
# ## Tensors in parts
#
# A mesh lays out the ranks; a placement says what each of its axes does with a tensor. A distributed tensor has the
# shape of the whole.


# %%
def parts():
    mesh = dist.ProcessMesh([0, 1], dim_names=["dp"])
    x = dist.shard_tensor(paddle.arange(8, dtype="float32").reshape([4, 2]), mesh, [dist.Shard(0)])
    total = (x**2).sum()  # each rank sums its part; one all-reduce adds them up when the value is read
    return x.shape, x._local_value().shape, float(total)


run_ranks(parts, 2)

# %% [markdown]
# ## The same training on one rank and on two
#
# Parameters stand on every rank, the batch is split, the optimizer's moments are split as well (`ShardingStage1`).

# %%
rng = np.random.default_rng(0)
rows = rng.standard_normal((6, 32, 8)).astype("float32")


def train(ranks):
    paddle.seed(0)
    model = paddle.nn.Sequential(paddle.nn.Linear(8, 32), paddle.nn.GELU(), paddle.nn.Linear(32, 1))
    batches = [[paddle.to_tensor(x), paddle.to_tensor(x.sum(1, keepdims=True))] for x in rows]
    optimizer = paddle.optimizer.AdamW(1e-2, parameters=model.parameters())
    if ranks > 1:
        mesh = dist.ProcessMesh(list(range(ranks)), dim_names=["dp"])
        model = dist.shard_layer(model, mesh)
        optimizer = dist.shard_optimizer(optimizer, dist.ShardingStage1("dp"))
        batches = dist.shard_dataloader(batches, meshes=mesh, shard_dims="dp")

    @paddle.jit.to_static(full_graph=True)
    def step(x, y):
        loss = paddle.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return [float(step(x, y)) for x, y in batches]


alone = train(1)
first, second = run_ranks(lambda: train(2), 2)
for numbers in zip(alone, first, second, strict=True):
    print("  ".join(f"{loss:.6f}" for loss in numbers))

# %% [markdown]
# ## As processes
#
# The same as a script; `argosy launch` starts the ranks and keeps their output in `log/`. Where MPI is missing, `pip
# install 'argosy[mpi]'` brings one.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
(folder / "train.py").write_text(
    """
import argosy as paddle
import argosy.distributed as dist

mesh = dist.ProcessMesh(list(range(dist.get_world_size())), dim_names=["dp"])
x = dist.shard_tensor(paddle.arange(10, dtype="float32"), mesh, [dist.Shard(0)])
print(f"rank {dist.get_rank()} holds {x._local_value().shape[0]} of {x.shape[0]}, the sum is {float(x.sum())}")
"""
)


def launch(script):
    command = [sys.executable, "-m", "argosy.distributed.launch", "--nproc_per_node", "2", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    for log in sorted(folder.glob("log/workerlog.*")):
        print(f"{log.name}: {log.read_text().strip().splitlines()[-1]}")
    return done


print("exit code", launch("train.py").returncode)

# %% [markdown]
# ## Mistakes that people make here
#
# Ranks that do different things wait for each other for ever in other systems. Here they are named.


# %%
def attempt(call):
    """Print what a wrong call says."""
    try:
        call()
    except Exception as error:
        print(f"{type(error).__name__}: {error}\n")
    else:
        raise AssertionError("nothing was said")


def different_collectives():
    x = paddle.ones([2])
    if dist.get_rank() == 0:
        dist.all_reduce(x)
    else:
        dist.broadcast(x, src=0)


def one_leaves_early():
    if dist.get_rank() == 0:
        dist.barrier()


def one_fails():
    if dist.get_rank() == 1:
        raise ValueError("a file is missing on rank 1")
    dist.barrier()


def mesh_too_large():
    mesh = dist.ProcessMesh([0, 1, 2, 3], dim_names=["dp"])
    dist.shard_tensor(paddle.ones([4]), mesh, [dist.Shard(0)])


# %%
attempt(lambda: run_ranks(different_collectives, 2))

# %%
attempt(lambda: run_ranks(one_leaves_early, 2))

# %%
attempt(lambda: run_ranks(one_fails, 2))

# %%
attempt(lambda: run_ranks(mesh_too_large, 2))
