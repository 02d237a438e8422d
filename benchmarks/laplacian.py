"""The Laplacian of a tanh network d-128-128-128-1 at 256 points, float32.

Ours is ``autograd.laplacian``, compiled or eager; torch and jax do what their users write: second derivatives
coordinate by coordinate (reverse mode twice; forward over forward, vectorised over the coordinates), ``torch-compile``
the diagonal of ``torch.func.hessian``. ``torch-forward`` and ``jax-forward`` are the forward Laplacian (Li et al.,
2024) written by hand for this network, ``torch-forward-compile`` the first of them compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from networks import argosy_step, data, network, second_derivatives
from timing import arguments, run

POINTS, WIDTH = 256, 128


def sizes(dimensions: int) -> list[int]:
    return [dimensions, WIDTH, WIDTH, WIDTH, 1]


def torch_step(dimensions: int) -> Callable[[], Any]:
    import torch

    weights, points = data(sizes(dimensions), POINTS)
    tensors = [torch.from_numpy(w) for w in weights]
    x = torch.from_numpy(points).requires_grad_()

    def step() -> Any:
        (g,) = torch.autograd.grad(network(x, tensors, torch.tanh).sum(), x, create_graph=True)
        total: Any = 0
        for i in range(dimensions):
            total = total + torch.autograd.grad(g[:, i].sum(), x, retain_graph=True)[0][:, i]
        return total

    return step


def compiled_torch_step(dimensions: int) -> Callable[[], Any]:
    import torch

    weights, points = data(sizes(dimensions), POINTS)
    tensors, x = [torch.from_numpy(w) for w in weights], torch.from_numpy(points)

    def at_point(q: Any) -> Any:
        return torch.func.hessian(lambda z: network(z, tensors, torch.tanh)[0])(q).diagonal().sum()

    compiled = torch.compile(torch.func.vmap(at_point), dynamic=False)
    return lambda: compiled(x)


def jax_step(dimensions: int) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    weights, points = data(sizes(dimensions), POINTS)
    tensors = [jnp.asarray(w) for w in weights]
    x = jnp.asarray(points)

    def at_point(q: Any, tensors: Any) -> Any:
        return second_derivatives(lambda z: network(z, tensors, jnp.tanh)[0], dimensions)(q)

    jitted = jax.jit(jax.vmap(at_point, (0, None)))
    return lambda: jitted(x, tensors).block_until_ready()


def forward_laplacian(x: Any, weights: Any, eye: Any, tanh: Callable[[Any], Any]) -> Any:
    """Values [n, w], slopes [d, n, w] and Laplacians [n, w], layer by layer."""
    h, slopes, total = x, eye[:, None, :], 0 * x
    for w in weights[:-1]:
        y = tanh(h @ w)
        factor = 1 - y * y
        moved = slopes @ w
        total = factor * (total @ w) - 2 * y * factor * (moved * moved).sum(0)
        h, slopes = y, factor * moved
    return (total @ weights[-1])[:, 0]


def torch_forward_step(dimensions: int, compiled: bool) -> Callable[[], Any]:
    import torch

    weights, points = data(sizes(dimensions), POINTS)
    tensors, x = [torch.from_numpy(w) for w in weights], torch.from_numpy(points)
    eye = torch.eye(dimensions)
    called = torch.compile(forward_laplacian, dynamic=False) if compiled else forward_laplacian
    return lambda: called(x, tensors, eye, torch.tanh)


def jax_forward_step(dimensions: int) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    weights, points = data(sizes(dimensions), POINTS)
    tensors, x, eye = [jnp.asarray(w) for w in weights], jnp.asarray(points), jnp.eye(dimensions)
    jitted = jax.jit(lambda x, tensors: forward_laplacian(x, tensors, eye, jnp.tanh))
    return lambda: jitted(x, tensors).block_until_ready()


if __name__ == "__main__":
    makers = {
        "argosy": lambda d: argosy_step("laplacian", sizes(d), POINTS),
        "argosy-eager": lambda d: argosy_step("laplacian", sizes(d), POINTS, compiled=False),
        "torch": torch_step, "torch-compile": compiled_torch_step, "jax": jax_step,
        "torch-forward": lambda d: torch_forward_step(d, False),
        "torch-forward-compile": lambda d: torch_forward_step(d, True), "jax-forward": jax_forward_step,
    }  # fmt: skip
    options = arguments(__doc__ or "", tuple(makers), ("2", "10", "50", "100"))
    size = int(options.case)
    run(options, "laplacian", makers[options.framework](size))
