"""Saves that end at any moment, in a process of their own; run by ``test_interrupted_saves.py``.

    interrupted_saves.py KIND FOLDER          a child ends before its first, second, ... file operation
    interrupted_saves.py KIND FOLDER COUNT    children that save again and again are killed at random moments

After each, what loads has to be one version, whole; the next save has to work and to leave nothing else behind.
"""

import os
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

import argosy as paddle
import argosy.distributed as dist
from argosy import models, nn
from argosy.distributed import sharding
from argosy.distributed.debug import run_ranks
from argosy.models.configuration import ConfigFile
from argosy.models.loading import build
from argosy.static import InputSpec

SIZE = 40


class Methods(nn.Layer):
    """A layer with a captured method beside ``forward``, which both read the weight."""

    def __init__(self, version):
        super().__init__()
        self.weight = self.create_parameter([SIZE, SIZE], default_initializer=nn.initializer.Constant(version))
        self.version = version

    @paddle.jit.to_static(input_spec=[InputSpec([None, SIZE])])
    def forward(self, x):
        return x @ self.weight + self.version

    @paddle.jit.to_static(input_spec=[InputSpec([None, SIZE])])
    def encode(self, x):
        return x @ self.weight * 2 if self.version % 3 else x @ self.weight - self.version


def save_export(base, version):
    layer = nn.Linear(SIZE, SIZE)
    layer.set_state_dict({"weight": np.full((SIZE, SIZE), version, "f"), "bias": np.full(SIZE, version, "f")})
    changed = layer if version % 2 else nn.Sequential(layer, nn.ReLU())
    paddle.jit.save(changed, base, [InputSpec([None, SIZE])])


def load_export(base):
    found = paddle.jit.load(base)
    return [x.numpy() for x in found.parameters()]


def save_methods(base, version):
    paddle.jit.save(Methods(version), base)


def load_methods(base):
    found, ones = paddle.jit.load(base), paddle.ones([1, SIZE])
    (weight,) = found.parameters()
    version = int(weight.numpy().flat[0])
    np.testing.assert_allclose(found(ones).numpy(), version * SIZE + version)
    encoded = version * SIZE * 2 if version % 3 else version * SIZE - version
    np.testing.assert_allclose(found.encode(ones).numpy(), encoded)
    return [weight.numpy()]


def model(version):
    network = nn.Linear(SIZE, SIZE)
    optimizer = paddle.optimizer.Momentum(parameters=network.parameters())
    made = paddle.Model(network)
    made.prepare(optimizer)
    optimizer.make_states()
    for x in (*network.parameters(), *optimizer.state_dict().values()):
        x.set_value(paddle.full_like(x, version))
    return made


def save_model(base, version):
    paddle.utils.unique_name.switch()
    model(version).save(base)


def load_model(base):
    paddle.utils.unique_name.switch()
    made = model(-1)
    made.load(base)
    return [x.numpy() for x in (*made.network.parameters(), *made._optimizer.state_dict().values())]


def save_sharded(base, version):
    """The whole model, of one size whatever the version, beside the optimizer's states."""
    paddle.utils.unique_name.switch()
    made = model(version)
    network, optimizer, _ = sharding.group_sharded_parallel(made.network, made._optimizer, "os")
    sharding.save_group_sharded_model(network, base, optimizer)


def load_sharded(base):
    found = [paddle.load(os.path.join(base, name)) for name in ("model.pdmodel", "model.pdopt")]
    return [x.numpy() for state in found for x in state.values() if isinstance(x, paddle.Tensor)]


def checkpoint(version):
    mesh = dist.ProcessMesh([0, 1], ["x"])
    return {"a": dist.shard_tensor(np.full((4, SIZE), version, "f"), mesh, [dist.Shard(0)]), "version": version}


def save_checkpoint(base, version, background=False, number=0):
    def program():
        task = dist.save_state_dict(checkpoint(version), base, unique_id=number, async_save=background)
        if task is not None:
            task.wait()

    run_ranks(program, 2)


def load_checkpoint(base):
    found = dist.load_merged_state_dict(base)
    return [found["a"].numpy(), found["version"]]


def save_state(base, version, extension):
    paddle.save({"a": paddle.full([SIZE, SIZE], version)}, base + extension)


def load_state(base, extension):
    return [paddle.load(base + extension)["a"].numpy()]


def save_folder(base, version):
    """A language model whose sizes depend on the version: its configuration fits no other version's weights."""
    width = 32 if version % 2 else 64
    config = {"model_type": "llama", "vocab_size": 8, "hidden_size": width, "intermediate_size": 16,
              "num_hidden_layers": 1, "num_attention_heads": 2, "tie_word_embeddings": True,
              "max_position_embeddings": 16, "rms_norm_eps": 1e-6, "rope_theta": float(version)}  # fmt: skip
    made = build(ConfigFile(config))
    made.set_state_dict({name: np.full(x.shape, version, "f") for name, x in made.state_dict().items()})
    models.save(made, base)


def load_folder(base):
    found = models.load_model(base)
    version = ConfigFile.read(base).number("rope_theta")
    return [np.float32(version), *(x.numpy() for x in found.parameters())]


KINDS = {
    "folder": (save_folder, load_folder),
    "export": (save_export, load_export),
    "methods": (save_methods, load_methods),
    "model": (save_model, load_model),
    "sharded": (save_sharded, load_sharded),
    "checkpoint": (save_checkpoint, load_checkpoint),
    "background": (partial(save_checkpoint, background=True), load_checkpoint),
    "numbered": (partial(save_checkpoint, number=None), load_checkpoint),
    "pickle": (partial(save_state, extension=".pdparams"), partial(load_state, extension=".pdparams")),
    "safetensors": (partial(save_state, extension=".safetensors"), partial(load_state, extension=".safetensors")),
}
OPERATIONS = ("open", "fsync", "replace", "unlink", "listdir", "mkdir", "rename", "rmdir")


def end_before(count):
    """End this process before its file operation of that number."""
    left = [count]

    def counted(operation, *args, **kwargs):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return operation(*args, **kwargs)

    for name in OPERATIONS:
        setattr(os, name, partial(counted, getattr(os, name)))


def version_of(load, base):
    """The only version that is loaded."""
    values = {float(v) for x in load(base) for v in np.unique(x)}
    assert len(values) == 1, values
    return int(values.pop())


def in_child(work, *arguments):
    child = os.fork()
    if child == 0:
        work(*arguments)
        os._exit(0)
    return child


def ended_save(save, base, version, count):
    """A save that ends before its operation of that number."""
    end_before(count)
    save(base, version)


def newer_saves(save, base, version):
    """Saves until somebody ends them."""
    for newer in range(version, version + 100_000):
        save(base, newer)


def operations(save, load, base):
    """Interrupt saves before each of their operations; returns how many there are."""
    save(base, 1)
    version, count = 1, 0
    while True:
        child = in_child(ended_save, save, base, version + 1, count)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended in (0, -signal.SIGKILL), ended
        found = version_of(load, base)
        assert found in (version, version + 1), (count, version, found)
        if ended == 0:
            assert found == version + 1
            return count
        version, count = version + 2, count + 1
        if count % 3 == 0:  # else the next one is interrupted, too, on top of what this one left
            save(base, version)
        else:
            version = found


def randomly(save, load, base, count):
    """Kill children that save ever newer versions."""
    save(base, 1)
    version = 1
    for _ in range(count):
        child = in_child(newer_saves, save, base, version)
        time.sleep(random.uniform(0, 0.08))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = version_of(load, base)
        assert found >= version, (found, version)
        version = found
    return count


def main(kind, folder, count=None):
    save, load = KINDS[kind]
    base = os.path.join(folder, "m")
    done = operations(save, load, base) if count is None else randomly(save, load, base, int(count))
    save(base, 5000)
    in_child(save, base, 5001)
    os.wait()
    assert version_of(load, base) == 5001
    hidden = [str(path) for path in Path(folder).rglob(".*")]
    parts = [path.name for path in Path(folder).rglob("*_*.safetensors")]
    assert not hidden, hidden
    assert kind == "numbered" or len(parts) in (0, 2), parts
    sys.stdout.write(f"{done}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
