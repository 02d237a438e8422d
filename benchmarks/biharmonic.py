"""The biharmonic operator, the Laplacian of the Laplacian, of a tanh network d-64-64-1 at 256 points, float32.

Ours is ``autograd.biharmonic``; torch and jax do what their users write: the Laplacian twice, coordinate by coordinate
(reverse mode; forward over forward, vectorised over the coordinates).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from timing import arguments, run

POINTS, WIDTH = 256, 64


def data(dimensions: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    sizes = [dimensions, WIDTH, WIDTH, 1]
    weights = [(rng.standard_normal((i, o)) / math.sqrt(i)).astype(np.float32) for i, o in pairwise(sizes)]
    return weights, rng.uniform(-1, 1, (POINTS, dimensions)).astype(np.float32)


def network(h: Any, weights: Any, tanh: Callable[[Any], Any]) -> Any:
    for w in weights[:-1]:
        h = tanh(h @ w)
    return h @ weights[-1]


def argosy_step(dimensions: int) -> Callable[[], Any]:
    import argosy as paddle

    weights, points = data(dimensions)
    tensors = [paddle.to_tensor(w) for w in weights]
    x = paddle.to_tensor(points, stop_gradient=False)
    step = lambda x: paddle.autograd.biharmonic(network(x, tensors, paddle.tanh)[:, 0], x)  # noqa: E731
    whole = paddle.jit.to_static(step, full_graph=True)
    return lambda: whole(x)


def torch_step(dimensions: int) -> Callable[[], Any]:
    import torch

    weights, points = data(dimensions)
    tensors = [torch.from_numpy(w) for w in weights]
    x = torch.from_numpy(points).requires_grad_()

    def laplacian(u: Any, last: bool) -> Any:
        (g,) = torch.autograd.grad(u.sum(), x, create_graph=True)
        second = (
            torch.autograd.grad(g[:, i].sum(), x, retain_graph=True, create_graph=not last)[0][:, i]
            for i in range(dimensions)
        )
        return sum(second)

    return lambda: laplacian(laplacian(network(x, tensors, torch.tanh), False), True)


def jax_step(dimensions: int) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    weights, points = data(dimensions)
    tensors = [jnp.asarray(w) for w in weights]
    x, eye = jnp.asarray(points), jnp.eye(dimensions)

    def laplacian(u: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def at(q: Any) -> Any:
            second = lambda e: jax.jvp(lambda z: jax.jvp(u, (z,), (e,))[1], (q,), (e,))[1]  # noqa: E731
            return jax.vmap(second)(eye).sum()

        return at

    def at_point(q: Any, tensors: Any) -> Any:
        return laplacian(laplacian(lambda z: network(z, tensors, jnp.tanh)[0]))(q)

    jitted = jax.jit(jax.vmap(at_point, (0, None)))
    return lambda: jitted(x, tensors).block_until_ready()


if __name__ == "__main__":
    makers = {"argosy": argosy_step, "torch": torch_step, "jax": jax_step}
    options = arguments(__doc__ or "", tuple(makers), ("2", "5", "10"))
    run(options, "biharmonic", makers[options.framework](int(options.case)))
