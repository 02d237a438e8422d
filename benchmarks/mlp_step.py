"""One SGD step of a 784-256-10 ReLU network with softmax cross-entropy on a batch of 64 (float32)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import arguments, run

BATCH, RATE = 64, 0.05
rng = np.random.default_rng(0)
X = rng.standard_normal((BATCH, 784), dtype=np.float32)
Y = rng.integers(0, 10, BATCH)
W1, W2 = ((rng.standard_normal(s) / math.sqrt(s[0])).astype(np.float32) for s in ((784, 256), (256, 10)))
B1, B2 = np.zeros(256, np.float32), np.zeros(10, np.float32)


def argosy_step(compiled: bool) -> Callable[[], Any]:
    import argosy as paddle

    F = paddle.nn.functional
    model = paddle.nn.Sequential(paddle.nn.Linear(784, 256), paddle.nn.ReLU(), paddle.nn.Linear(256, 10))
    for parameter, value in zip(model.parameters(), (W1, B1, W2, B2), strict=True):
        parameter.set_value(value)
    x, y = paddle.to_tensor(X), paddle.to_tensor(Y)
    optimizer = paddle.optimizer.SGD(RATE, parameters=model.parameters())

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    whole = paddle.jit.to_static(step, full_graph=True) if compiled else step
    return lambda: whole(x, y)


def torch_step(compiled: bool) -> Callable[[], Any]:
    import torch

    F = torch.nn.functional
    parameters = [torch.from_numpy(p.T.copy() if p.ndim == 2 else p.copy()).requires_grad_() for p in (W1, B1, W2, B2)]
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    optimizer = torch.optim.SGD(parameters, lr=RATE, fused=True)

    def loss_fn(x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = parameters
        return F.cross_entropy(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2), y)

    loss_of = torch.compile(loss_fn, dynamic=False) if compiled else loss_fn

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def jax_step() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    x, y = jnp.asarray(X), jnp.asarray(Y, jnp.int32)

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = parameters
        logits = jax.nn.relu(x @ w1 + b1) @ w2 + b2
        return (jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, y[:, None], -1)[:, 0]).mean()

    def update(parameters: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, x, y)
        return [p - RATE * g for p, g in zip(parameters, gradients, strict=True)], value

    jitted = jax.jit(update, donate_argnums=0)
    state = [[jnp.asarray(p) for p in (W1, B1, W2, B2)]]

    def step() -> Any:
        state[0], value = jitted(state[0], x, y)
        jax.block_until_ready(state)
        return value

    return step


if __name__ == "__main__":
    options = arguments(__doc__ or "", ("argosy", "argosy-eager", "torch", "torch-compile", "jax"))
    makers = {
        "argosy": lambda: argosy_step(True), "argosy-eager": lambda: argosy_step(False),
        "torch": lambda: torch_step(False), "torch-compile": lambda: torch_step(True), "jax": jax_step,
    }  # fmt: skip
    run(options, "mlp_step", makers[options.framework]())
