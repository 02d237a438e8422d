"""The n-th derivative of a tanh network 1-32x3-1 by its input, 1024 points, float32.

Ours, torch and ``paddle`` ask for gradients of gradients, as their users do; jax nests forward mode, its fastest way
here; ``jax-jet`` is its Taylor mode, ``jax-reverse`` nested reverse mode, ``torch-compile`` compiled nested gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from timing import arguments, run

SIZES, POINTS = [1, 32, 32, 32, 1], 1024
rng = np.random.default_rng(0)
LAYERS = [
    ((rng.standard_normal((i, o)) / math.sqrt(i)).astype(np.float32), (0.1 * rng.standard_normal(o)).astype(np.float32))
    for i, o in pairwise(SIZES)
]
X = rng.uniform(-1, 1, (POINTS, 1)).astype(np.float32)


def network(h: Any, layers: Any, tanh: Callable[[Any], Any]) -> Any:
    for w, b in layers[:-1]:
        h = tanh(h @ w + b)
    return h @ layers[-1][0] + layers[-1][1]


def argosy_step(order: int, compiled: bool) -> Callable[[], Any]:
    import argosy

    return paddle_step(argosy, order, compiled)


def real_paddle_step(order: int) -> Callable[[], Any]:
    import paddle

    return paddle_step(paddle, order, False)


def paddle_step(paddle: Any, order: int, compiled: bool) -> Callable[[], Any]:
    layers = [(paddle.to_tensor(w), paddle.to_tensor(b)) for w, b in LAYERS]
    x = paddle.to_tensor(X, stop_gradient=False)

    def step(x: Any) -> Any:
        y = network(x, layers, paddle.tanh)
        for k in range(order):
            (y,) = paddle.grad(y.sum(), x, create_graph=k < order - 1)
        return y

    whole = paddle.jit.to_static(step, full_graph=True) if compiled else step
    return lambda: whole(x)


def torch_step(order: int) -> Callable[[], Any]:
    import torch

    layers = [(torch.from_numpy(w), torch.from_numpy(b)) for w, b in LAYERS]
    x = torch.from_numpy(X).requires_grad_()

    def step() -> Any:
        y = network(x, layers, torch.tanh)
        for k in range(order):
            (y,) = torch.autograd.grad(y.sum(), x, create_graph=k < order - 1)
        return y

    return step


def compiled_torch_step(order: int) -> Callable[[], Any]:
    import torch

    layers = [(torch.from_numpy(w), torch.from_numpy(b)) for w, b in LAYERS]
    x = torch.from_numpy(X)

    def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return torch.func.grad(lambda q: f(q).sum())

    f: Callable[[Any], Any] = lambda q: network(q, layers, torch.tanh)  # noqa: E731
    for _ in range(order):
        f = total(f)
    compiled = torch.compile(f, dynamic=False)
    return lambda: compiled(x)


def jax_jet_step(order: int) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    from jax.experimental import jet

    layers, x = [(jnp.asarray(w), jnp.asarray(b)) for w, b in LAYERS], jnp.asarray(X)
    series = [jnp.ones_like(x)] + [jnp.zeros_like(x)] * (order - 1)

    def highest(x: Any, layers: Any) -> Any:
        return jet.jet(lambda q: network(q, layers, jnp.tanh), (x,), (series,))[1][-1]

    jitted = jax.jit(highest)
    return lambda: jitted(x, layers).block_until_ready()


def jax_reverse_step(order: int) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    layers, x = [(jnp.asarray(w), jnp.asarray(b)) for w, b in LAYERS], jnp.asarray(X)[:, 0]
    f: Callable[..., Any] = lambda q, layers: network(q[None], layers, jnp.tanh)[0]  # noqa: E731
    for _ in range(order):
        f = jax.grad(f)
    jitted = jax.jit(jax.vmap(f, (0, None)))
    return lambda: jitted(x, layers).block_until_ready()


def jax_step(order: int) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    layers = [(jnp.asarray(w), jnp.asarray(b)) for w, b in LAYERS]
    x, one = jnp.asarray(X), jnp.ones_like(X)

    def along(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda q, layers: jax.jvp(lambda z: f(z, layers), (q,), (one,))[1]

    f: Callable[..., Any] = lambda q, layers: network(q, layers, jnp.tanh)  # noqa: E731
    for _ in range(order):
        f = along(f)
    jitted = jax.jit(f)
    return lambda: jitted(x, layers).block_until_ready()


if __name__ == "__main__":
    makers = {
        "argosy": lambda: argosy_step(order, True), "argosy-eager": lambda: argosy_step(order, False),
        "torch": lambda: torch_step(order), "torch-compile": lambda: compiled_torch_step(order),
        "jax": lambda: jax_step(order), "jax-jet": lambda: jax_jet_step(order),
        "jax-reverse": lambda: jax_reverse_step(order), "paddle": lambda: real_paddle_step(order),
    }  # fmt: skip
    options = arguments(__doc__ or "", tuple(makers), ("2", "4", "6", "1", "3", "5", "8"))
    order = int(options.case)
    run(options, "nth_derivative", makers[options.framework]())
