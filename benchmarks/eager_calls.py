"""What everyday eager calls on small tensors cost, when they have been made often: microseconds of each, beside torch
and Paddle. ``eager.py`` has the hottest ones.

``python benchmarks/eager_calls.py --peer-python PATH --paddle-python PATH`` runs each framework in a process of its
own, in turn, ``--rounds`` times, on one core, prints the medians and writes ``benchmarks/results/eager_calls.json``.
With ``--framework NAME`` it is one of these processes.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from eager_table import table_of

SETTLED, MEASURED = 20_000, 0.004
"""Calls before one is timed, and the seconds that a repetition takes about."""

CASES: dict[str, tuple[str, str]] = {
    "reshape": ("P.reshape(x, [8, 4])", "P.reshape(x, [8, 4])"),
    "transpose": ("P.transpose(x, [1, 0])", "P.permute(x, [1, 0])"),
    "squeeze": ("x.squeeze()", "x.squeeze()"),
    "unsqueeze": ("x.unsqueeze(0)", "x.unsqueeze(0)"),
    "x[1:3]": ("x[1:3]", "x[1:3]"),
    "x[:, 0]": ("x[:, 0]", "x[:, 0]"),
    "x[mask]": ("x[mask]", "x[mask]"),
    "x[indices]": ("x[i]", "x[i]"),
    "x[1] = 0": ("y.__setitem__(1, 0.0)", "y.__setitem__(1, 0.0)"),
    "y.add_(x)": ("y.add_(x)", "y.add_(x)"),
    "y.zero_()": ("y.zero_()", "y.zero_()"),
    "sum axis": ("x.sum(axis=1)", "x.sum(dim=1)"),
    "mean": ("P.mean(x)", "P.mean(x)"),
    "max": ("P.max(x)", "P.max(x)"),
    "argmax": ("x.argmax(axis=1)", "x.argmax(dim=1)"),
    "cumsum": ("P.cumsum(x, axis=1)", "P.cumsum(x, dim=1)"),
    "var": ("x.var()", "x.var()"),
    "norm": ("P.linalg.norm(x)", "P.linalg.norm(x)"),
    "topk": ("P.topk(x, 2)", "P.topk(x, 2)"),
    "sort": ("P.sort(x)", "P.sort(x)"),
    "exp": ("P.exp(x)", "P.exp(x)"),
    "x ** 2": ("x ** 2", "x ** 2"),
    "x > 0": ("x > 0", "x > 0"),
    "x == y": ("x == y", "x == y"),
    "clip": ("P.clip(x, -1.0, 1.0)", "P.clip(x, -1.0, 1.0)"),
    "where": ("P.where(grid, x, y)", "P.where(grid, x, y)"),
    "masked_fill": ("P.masked_fill(x, grid, 0.0)", "P.masked_fill(x, grid, 0.0)"),
    "cast": ("x.astype('float64')", "x.to(P.float64)"),
    "concat": ("P.concat([x, y], axis=1)", "P.concat([x, y], dim=1)"),
    "stack": ("P.stack([x, y])", "P.stack([x, y])"),
    "split": ("P.split(x, 2, axis=1)", "P.split(x, 4, dim=1)"),
    "tile": ("P.tile(x, [2, 1])", "P.tile(x, [2, 1])"),
    "gather": ("P.gather(x, i)", "P.index_select(x, 0, i)"),
    "x @ w": ("x @ w", "x @ w"),
    "einsum": ("P.einsum('ij,jk->ik', x, w)", "P.einsum('ij,jk->ik', x, w)"),
    "softmax": ("F.softmax(x)", "F.softmax(x, -1)"),
    "gelu": ("F.gelu(x)", "F.gelu(x)"),
    "linear": ("F.linear(x, w, b)", "F.linear(x, w, b)"),
    "layer_norm": ("F.layer_norm(x, [8], b, b)", "F.layer_norm(x, [8], b, b)"),
    "embedding": ("F.embedding(i, w)", "F.embedding(i, w)"),
    "one_hot": ("F.one_hot(i, 5)", "F.one_hot(i, 5)"),
    "dropout": ("F.dropout(x, 0.5)", "F.dropout(x, 0.5)"),
    "cross_entropy": ("F.cross_entropy(x, i)", "F.cross_entropy(x, i)"),
    "mse_loss": ("F.mse_loss(x, y)", "F.mse_loss(x, y)"),
    "conv2d": ("F.conv2d(image, kernel, padding=1)", "F.conv2d(image, kernel, padding=1)"),
    "zeros": ("P.zeros([4, 8])", "P.zeros([4, 8])"),
    "full": ("P.full([4, 8], 1.5)", "P.full([4, 8], 1.5)"),
    "arange": ("P.arange(8)", "P.arange(8)"),
    "rand": ("P.rand([4, 8])", "P.rand([4, 8])"),
    "randn": ("P.randn([4, 8])", "P.randn([4, 8])"),
    "uniform": ("P.uniform([4, 8], min=-1.0, max=1.0)", "P.empty([4, 8]).uniform_(-1.0, 1.0)"),
    "normal": ("P.normal(0.0, 1.0, [4, 8])", "P.normal(0.0, 1.0, [4, 8])"),
    "randint": ("P.randint(0, 10, [4, 8])", "P.randint(0, 10, [4, 8])"),
    "to_tensor": ("P.to_tensor(array)", "P.tensor(array)"),
    "item": ("scalar.item()", "scalar.item()"),
    "numpy": ("x.numpy()", "x.numpy()"),
    "Linear": ("linear(x)", "linear(x)"),
    "BatchNorm1D": ("norm(x)", "norm(x)"),
    "gradient of a sum": ("P.grad((v * v).sum(), v)", "P.autograd.grad((v * v).sum(), v)"),
    "network and back": ("F.cross_entropy(net(x), i).backward()", "F.cross_entropy(net(x), i).backward()"),
    "SGD step": ("sgd.step()", "sgd.step()"),
    "Adam step": ("adam.step()", "adam.step()"),
}
"""Name: the call in Paddle's words (argosy's, too), and in torch's."""


def names(framework: str) -> dict[str, Any]:
    """What the calls are made of."""
    P = importlib.import_module(framework)
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.standard_normal((4, 8)), "y": rng.standard_normal((4, 8)), "w": rng.standard_normal((8, 8)),
        "b": rng.standard_normal(8), "image": rng.standard_normal((1, 3, 8, 8)), "v": rng.standard_normal((4, 8)),
        "kernel": rng.standard_normal((4, 3, 3, 3)), "scalar": np.array(1.5),
    }  # fmt: skip
    make = P.tensor if framework == "torch" else P.to_tensor
    found = {name: make(a.astype("float32")) for name, a in arrays.items()}
    found |= {"P": P, "F": P.nn.functional, "array": arrays["x"].astype("float32"), "grid": found["x"] > 0}
    found |= {"i": make(np.array([0, 2, 1, 3])), "mask": make(np.array([True, False, True, True]))}
    if framework == "torch":
        P.set_num_threads(1)
        found["v"].requires_grad_()
        optimizers, given, norm = P.optim, "params", P.nn.BatchNorm1d(8)
    else:
        found["v"].stop_gradient = False
        optimizers, given, norm = P.optimizer, "parameters", P.nn.BatchNorm1D(8)
    net = P.nn.Sequential(P.nn.Linear(8, 16), P.nn.ReLU(), P.nn.Linear(16, 4))
    found |= {"norm": norm, "linear": P.nn.Linear(8, 8), "net": net}
    rate = "lr" if framework == "torch" else "learning_rate"
    for name, chosen in (("sgd", optimizers.SGD), ("adam", optimizers.Adam)):
        found[name] = chosen(**{rate: 1e-3, given: net.parameters()})
    found["F"].cross_entropy(net(found["x"]), found["i"]).backward()
    return found


def microseconds(call: Callable[[], Any], settled: int) -> float:
    """What a call costs at best, after many."""
    for _ in range(settled):
        call()
    start = time.perf_counter()
    call()
    count = max(3, min(2000, int(MEASURED / max(time.perf_counter() - start, 1e-7))))
    found = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(count):
            call()
        found.append((time.perf_counter() - start) / count)
    return round(min(found) * 1e6, 3)


def measured(options: argparse.Namespace) -> dict[str, float]:
    """The figures of one framework."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {options.core})
    known = names(options.framework)
    gc.disable()
    which = options.framework == "torch"
    return {
        name: microseconds(eval(f"lambda: {texts[which]}", known), options.settled)
        for name, texts in CASES.items()
        if options.only is None or name in options.only
    }


if __name__ == "__main__":
    table_of("eager_calls", "calls", __doc__, CASES, SETTLED, measured)
