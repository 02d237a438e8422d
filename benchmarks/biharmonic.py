"""The biharmonic operator, the Laplacian of the Laplacian, of a tanh network d-64-64-1 at 256 points, float32.

Ours is ``autograd.biharmonic``, compiled or eager; torch and jax do what their users write: the Laplacian twice,
coordinate by coordinate (reverse mode; forward over forward, vectorised over the coordinates).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from networks import argosy_step, data, network, second_derivatives
from timing import arguments, run

POINTS, WIDTH = 256, 64


def sizes(dimensions: int) -> list[int]:
    return [dimensions, WIDTH, WIDTH, 1]


def torch_step(dimensions: int) -> Callable[[], Any]:
    import torch

    weights, points = data(sizes(dimensions), POINTS)
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

    weights, points = data(sizes(dimensions), POINTS)
    tensors, x = [jnp.asarray(w) for w in weights], jnp.asarray(points)

    def at_point(q: Any, tensors: Any) -> Any:
        once = second_derivatives(lambda z: network(z, tensors, jnp.tanh)[0], dimensions)
        return second_derivatives(once, dimensions)(q)

    jitted = jax.jit(jax.vmap(at_point, (0, None)))
    return lambda: jitted(x, tensors).block_until_ready()


if __name__ == "__main__":
    makers = {
        "argosy": lambda d: argosy_step("biharmonic", sizes(d), POINTS),
        "argosy-eager": lambda d: argosy_step("biharmonic", sizes(d), POINTS, compiled=False),
        "torch": torch_step, "jax": jax_step,
    }  # fmt: skip
    options = arguments(__doc__ or "", tuple(makers), ("2", "10", "20", "50", "100"))
    run(options, "biharmonic", makers[options.framework](int(options.case)))
