"""A tanh network and points, for the benchmarks of differential operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np


def data(sizes: Sequence[int], points: int) -> tuple[Any, Any]:
    """Weights of a network of these widths, and points [points, sizes[0]], in float32."""
    rng = np.random.default_rng(0)
    weights = [(rng.standard_normal((i, o)) / math.sqrt(i)).astype(np.float32) for i, o in pairwise(sizes)]
    return weights, rng.uniform(-1, 1, (points, sizes[0])).astype(np.float32)


def network(h: Any, weights: Any, tanh: Callable[[Any], Any]) -> Any:
    """The network in any framework."""
    for w in weights[:-1]:
        h = tanh(h @ w)
    return h @ weights[-1]


def argosy_step(operator: str, sizes: Sequence[int], points: int, compiled: bool = True) -> Callable[[], Any]:
    """``autograd.laplacian`` or another of that kind, as a captured step or eager."""
    import argosy as paddle

    weights, where = data(sizes, points)
    tensors = [paddle.to_tensor(w) for w in weights]
    x = paddle.to_tensor(where, stop_gradient=False)
    apply = getattr(paddle.autograd, operator)

    def step(x: Any) -> Any:
        return apply(network(x, tensors, paddle.tanh)[:, 0], x)

    whole = paddle.jit.to_static(step, full_graph=True) if compiled else step
    return lambda: whole(x)


def second_derivatives(u: Callable[[Any], Any], dimensions: int) -> Callable[[Any], Any]:
    """The Laplacian of a jax function of one point: forward over forward, vectorised over the coordinates."""
    import jax
    import jax.numpy as jnp

    def at(q: Any) -> Any:
        def second(e: Any) -> Any:
            return jax.jvp(lambda z: jax.jvp(u, (z,), (e,))[1], (q,), (e,))[1]

        return jax.vmap(second)(jnp.eye(dimensions, dtype=q.dtype)).sum()

    return at
