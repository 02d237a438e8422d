"""What training steps of small models cost eagerly, when many have been made: microseconds of each, beside torch and
Paddle. Nothing is captured or compiled by the user. ``eager_calls.py`` has single calls.

``python benchmarks/eager_models.py --peer-python PATH --paddle-python PATH`` runs each framework in a process of its
own, in turn, ``--rounds`` times, on one core, prints the medians and writes ``benchmarks/results/eager_models.json``.
With ``--framework NAME`` it is one of these processes.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from eager_table import table_of

SETTLED, MEASURED = 2.0, 0.6
"""Seconds of steps before one is timed, and seconds of those that are."""

Step = Callable[[], Any]


class Words:
    """What torch and Paddle call differently."""

    def __init__(self, framework: str) -> None:
        self.P = importlib.import_module(framework)
        self.is_torch = framework == "torch"
        self.F, self.nn = self.P.nn.functional, self.P.nn
        self.rng = np.random.default_rng(0)
        if self.is_torch:
            self.P.set_num_threads(1)

    def tensor(self, a: Any) -> Any:
        return self.P.tensor(a) if self.is_torch else self.P.to_tensor(a)

    def normal(self, *shape: int) -> Any:
        return self.tensor(self.rng.standard_normal(shape).astype("float32"))

    def labels(self, count: int, *shape: int) -> Any:
        return self.tensor(self.rng.integers(0, count, shape))

    def optimizer(self, name: str, parameters: Any) -> Any:
        if self.is_torch:
            return getattr(self.P.optim, name)(parameters, lr=1e-3)
        return getattr(self.P.optimizer, name)(learning_rate=1e-3, parameters=parameters)

    def training(self, net: Any, loss: Callable[[], Any], optimizer: str) -> Step:
        """Forward, backward and an update."""
        chosen = self.optimizer(optimizer, net.parameters())
        clear = chosen.zero_grad if self.is_torch else chosen.clear_grad

        def step() -> Any:
            value = loss()
            value.backward()
            chosen.step()
            clear()
            return value

        return step


def mlp(w: Words) -> Step:
    net = w.nn.Sequential(w.nn.Linear(784, 256), w.nn.ReLU(), w.nn.Linear(256, 10))
    x, y = w.normal(64, 784), w.labels(10, 64)
    return w.training(net, lambda: w.F.cross_entropy(net(x), y), "SGD")


def small_mlp(w: Words) -> Step:
    net = w.nn.Sequential(w.nn.Linear(8, 32), w.nn.Tanh(), w.nn.Linear(32, 32), w.nn.Tanh(), w.nn.Linear(32, 1))
    x, y = w.normal(16, 8), w.normal(16, 1)
    return w.training(net, lambda: w.F.mse_loss(net(x), y), "Adam")


def cnn(w: Words) -> Step:
    nn = w.nn
    conv, norm, pool = (
        (nn.Conv2d, nn.BatchNorm2d, nn.MaxPool2d) if w.is_torch else (nn.Conv2D, nn.BatchNorm2D, nn.MaxPool2D)
    )
    net = nn.Sequential(
        conv(1, 8, 3, padding=1), norm(8), nn.ReLU(), pool(2), conv(8, 16, 3, padding=1), norm(16), nn.ReLU(), pool(2),
        nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    x, y = w.normal(16, 1, 8, 8), w.labels(10, 16)
    return w.training(net, lambda: w.F.cross_entropy(net(x), y), "Adam")


def half_cnn(w: Words) -> Step:
    """Digits in mixed precision: what ``auto_cast`` converts is bfloat16."""
    nn = w.nn
    conv, pool = (nn.Conv2d, nn.MaxPool2d) if w.is_torch else (nn.Conv2D, nn.MaxPool2D)
    net = nn.Sequential(
        conv(1, 16, 3, padding=1), nn.ReLU(), pool(2), conv(16, 32, 3, padding=1), nn.ReLU(), pool(2), nn.Flatten(),
        nn.Linear(1568, 10),
    )  # fmt: skip
    x, y = w.normal(64, 1, 28, 28), w.labels(10, 64)

    def loss() -> Any:
        with w.P.autocast("cpu", dtype=w.P.bfloat16) if w.is_torch else w.P.amp.auto_cast(dtype="bfloat16"):
            return w.F.cross_entropy(net(x), y)

    return w.training(net, loss, "Adam")


def lstm(w: Words) -> Step:
    net = w.nn.LSTM(16, 32, batch_first=True) if w.is_torch else w.nn.LSTM(16, 32)
    x = w.normal(8, 10, 16)
    return w.training(net, lambda: net(x)[0].mean(), "Adam")


def lstm_cell(w: Words) -> Step:
    """Ten steps of a cell, one by one."""
    cell = w.nn.LSTMCell(16, 32)
    x = [w.normal(8, 16) for _ in range(10)]

    def loss() -> Any:
        state = None
        for each in x:
            made = cell(each, state)
            state = made if w.is_torch else made[1]
        return state[0].mean()

    return w.training(cell, loss, "SGD")


def encoder(w: Words) -> Step:
    """A Transformer layer with dropout."""
    options = {"batch_first": True} if w.is_torch else {}
    net = w.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, **options)
    x = w.normal(4, 16, 32)
    return w.training(net, lambda: net(x).mean(), "AdamW")


def gpt_block(w: Words) -> Step:
    """Attention and a network written by hand, as people do."""
    nn, F = w.nn, w.F
    width, heads = 64, 4
    parts = [nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width)]
    parts += [nn.Linear(width, 4 * width), nn.Linear(4 * width, width)]
    first, qkv, out, second, up, down = parts
    net, x = nn.Sequential(*parts), w.normal(2, 32, width)

    def loss() -> Any:
        b, t, _ = x.shape
        joint = qkv(first(x)).reshape([b, t, 3, heads, width // heads])
        order = (2, 0, 3, 1, 4)
        q, k, v = (joint.permute(order) if w.is_torch else joint.transpose(order)).unbind(0)
        scores = (q @ k.swapaxes(-1, -2)) * (width // heads) ** -0.5
        mixed = F.softmax(scores + mask, -1) @ v
        back = mixed.swapaxes(1, 2).reshape([b, t, width])
        y = x + out(back)
        return ((y + down(F.gelu(up(second(y))))) ** 2).mean()

    mask = w.tensor(np.triu(np.full((32, 32), -1e9, "float32"), 1))
    return w.training(net, loss, "AdamW")


def hundred(name: str) -> Callable[[Words], Step]:
    """An update of 100 parameters of 16x16."""

    def make(w: Words) -> Step:
        made = [w.normal(16, 16) for _ in range(100)]
        if w.is_torch:
            parameters = [w.nn.Parameter(each) for each in made]
        else:
            parameters = [w.P.create_parameter([16, 16], "float32") for _ in made]
        optimizer = w.optimizer(name, parameters)
        sum((p * p).sum() for p in parameters).backward()
        step: Step = optimizer.step
        return step

    return make


def physics(w: Words) -> Step:
    """The residual of u'' = u at 32 points: derivatives of derivatives."""
    net = w.nn.Sequential(w.nn.Linear(1, 16), w.nn.Tanh(), w.nn.Linear(16, 16), w.nn.Tanh(), w.nn.Linear(16, 1))
    x = w.normal(32, 1)
    if w.is_torch:
        x.requires_grad_()
    else:
        x.stop_gradient = False
    grad = w.P.autograd.grad if w.is_torch else w.P.grad

    def loss() -> Any:
        u = net(x)
        first = grad(u.sum(), x, create_graph=True)[0]
        second = grad(first.sum(), x, create_graph=True)[0]
        return ((second - u) ** 2).mean()

    return w.training(net, loss, "Adam")


def inference(w: Words) -> Step:
    """A network of three layers on one row, nothing recorded."""
    net = w.nn.Sequential(w.nn.Linear(16, 64), w.nn.GELU(), w.nn.Linear(64, 64), w.nn.GELU(), w.nn.Linear(64, 4))
    net.eval()
    x = w.normal(1, 16)

    def step() -> Any:
        with w.P.no_grad():
            return w.F.softmax(net(x), -1)

    return step


def images(w: Words) -> Step:
    """Normalising and flipping a batch of images, and a crop of it."""
    x, mean, spread = w.normal(8, 3, 16, 16), w.normal(1, 3, 1, 1), w.normal(1, 3, 1, 1)

    def step() -> Any:
        y = (x - mean) / (spread + 1.0)
        y = w.P.flip(y, [3])
        return w.F.pad(y[:, :, 2:14, 2:14], [2, 2, 2, 2]).clip(-1.0, 1.0)

    return step


CASES: dict[str, Callable[[Words], Step]] = {
    "MLP 784-256-10": mlp, "MLP 8-32-32-1": small_mlp, "CNN with BatchNorm": cnn, "LSTM": lstm,
    "CNN, auto_cast": half_cnn, "LSTM cell, 10 steps": lstm_cell, "Transformer layer": encoder, "GPT block": gpt_block,
    "second derivatives": physics, "SGD, 100 parameters": hundred("SGD"), "Adam, 100 parameters": hundred("Adam"),
    "AdamW, 100 parameters": hundred("AdamW"), "inference": inference, "images": images,
}  # fmt: skip


def microseconds(step: Step, settled: float) -> float:
    """What a step costs at best, after many."""
    end = time.perf_counter() + settled
    while time.perf_counter() < end:
        step()
    found = []
    end = time.perf_counter() + MEASURED
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        found.append(time.perf_counter() - start)
    return round(min(found) * 1e6, 2)


def measured(options: argparse.Namespace) -> dict[str, float]:
    """The figures of one framework."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {options.core})
    words = Words(options.framework)
    chosen = options.only or CASES
    return {name: microseconds(make(words), options.settled) for name, make in CASES.items() if name in chosen}


if __name__ == "__main__":
    table_of("eager_models", "steps", __doc__, CASES, SETTLED, measured)
