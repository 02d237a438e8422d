"""One Adam step on the residual of Burgers' equation, u_t + u u_x - 0.01/pi u_xx, for a tanh network 2-64x4-1, float32.

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

SIZES, VISCOSITY, RATE = [2, 64, 64, 64, 64, 1], 0.01 / math.pi, 1e-3
rng = np.random.default_rng(0)
WEIGHTS = [(rng.standard_normal((i, o)) / math.sqrt(i)).astype(np.float32) for i, o in pairwise(SIZES)]
BIASES = [np.zeros(o, np.float32) for o in SIZES[1:]]


def points(case: str) -> Any:
    return np.random.default_rng(1).uniform(-1, 1, (int(case), 2)).astype(np.float32)


def argosy_step(case: str, compiled: bool) -> Callable[[], Any]:
    import argosy

    return paddle_step(argosy, case, compiled)


def real_paddle_step(case: str) -> Callable[[], Any]:
    import paddle

    return paddle_step(paddle, case, False)


def paddle_step(paddle: Any, case: str, compiled: bool) -> Callable[[], Any]:
    assign = paddle.nn.initializer.Assign
    weights, biases = (
        [paddle.create_parameter(v.shape, "float32", default_initializer=assign(v)) for v in values]
        for values in (WEIGHTS, BIASES)
    )
    optimizer = paddle.optimizer.Adam(RATE, parameters=[*weights, *biases])

    def network(h: Any) -> Any:
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            h = paddle.tanh(h @ w + b)
        return h @ weights[-1] + biases[-1]

    def step(q: Any) -> Any:
        u = network(q)
        (du,) = paddle.grad(u.sum(), q, create_graph=True)
        (duu,) = paddle.grad(du[:, 0].sum(), q, create_graph=True)
        loss = ((du[:, 1] + u[:, 0] * du[:, 0] - VISCOSITY * duu[:, 0]) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    whole = paddle.jit.to_static(step, full_graph=True) if compiled else step
    q = paddle.to_tensor(points(case), stop_gradient=False)
    return lambda: whole(q)


def torch_step(case: str) -> Callable[[], Any]:
    import torch

    weights, biases = ([torch.from_numpy(v.copy()).requires_grad_() for v in values] for values in (WEIGHTS, BIASES))
    optimizer = torch.optim.Adam([*weights, *biases], lr=RATE, fused=True)
    q = torch.from_numpy(points(case)).requires_grad_()

    def network(h: Any) -> Any:
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            h = torch.tanh(h @ w + b)
        return h @ weights[-1] + biases[-1]

    def step() -> Any:
        u = network(q)
        (du,) = torch.autograd.grad(u.sum(), q, create_graph=True)
        (duu,) = torch.autograd.grad(du[:, 0].sum(), q, create_graph=True)
        loss = ((du[:, 1] + u[:, 0] * du[:, 0] - VISCOSITY * duu[:, 0]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def compiled_torch_step(case: str) -> Callable[[], Any]:
    import torch

    q, layers = torch.from_numpy(points(case)), len(SIZES) - 1
    start = [torch.from_numpy(v.copy()) for v in (*WEIGHTS, *BIASES)]

    def loss_of(parameters: list[Any], q: Any) -> Any:
        weights, biases = parameters[:layers], parameters[layers:]

        def network(h: Any) -> Any:
            for w, b in zip(weights[:-1], biases[:-1], strict=True):
                h = torch.tanh(h @ w + b)
            return h @ weights[-1] + biases[-1]

        slopes = torch.func.grad(lambda q: network(q).sum())
        u, du, duu = network(q), slopes(q), torch.func.grad(lambda q: slopes(q)[:, 0].sum())(q)
        return ((du[:, 1] + u[:, 0] * du[:, 0] - VISCOSITY * duu[:, 0]) ** 2).mean()

    def update(parameters: list[Any], means: list[Any], squares: list[Any], count: Any, q: Any) -> Any:
        gradients, value = torch.func.grad_and_value(loss_of)(parameters, q)
        count = count + 1
        means = [0.9 * m + 0.1 * g for m, g in zip(means, gradients, strict=True)]
        squares = [0.999 * s + 0.001 * g * g for s, g in zip(squares, gradients, strict=True)]
        rate = RATE * (1 - 0.999**count).sqrt() / (1 - 0.9**count)
        moved = zip(parameters, means, squares, strict=True)
        return [p - rate * m / (s.sqrt() + 1e-8) for p, m, s in moved], means, squares, count, value

    compiled = torch.compile(update, dynamic=False)
    state = [(start, [0 * p for p in start], [0 * p for p in start], torch.tensor(0.0))]

    def step() -> Any:
        with torch.no_grad():
            *after, value = compiled(*state[0], q)
        state[0] = tuple(after)
        return value

    return step


def jax_step(case: str, way: str = "forward") -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    from jax.experimental import jet

    q = jnp.asarray(points(case))
    ex, et = jnp.zeros_like(q).at[:, 0].set(1.0), jnp.zeros_like(q).at[:, 1].set(1.0)

    def derivatives(network: Callable[[Any], Any]) -> tuple[Any, Any, Any, Any]:
        """u, u_x, u_xx, u_t, each [n, 1]."""
        if way == "reverse":
            slopes = jax.grad(lambda q: network(q).sum())
            du, duu = slopes(q), jax.grad(lambda q: slopes(q)[:, 0].sum())(q)
            return network(q), du[:, :1], duu[:, :1], du[:, 1:]
        ut = jax.jvp(network, (q,), (et,))[1]
        if way == "jet":
            u, (ux, uxx) = jet.jet(network, (q,), ((ex, jnp.zeros_like(q)),))
        else:
            (u, ux), (_, uxx) = jax.jvp(lambda q: jax.jvp(network, (q,), (ex,)), (q,), (ex,))
        return u, ux, uxx, ut

    def loss_of(parameters: Any) -> Any:
        def network(h: Any) -> Any:
            for w, b in parameters[:-1]:
                h = jnp.tanh(h @ w + b)
            return h @ parameters[-1][0] + parameters[-1][1]

        u, ux, uxx, ut = derivatives(network)
        return jnp.mean((ut + u * ux - VISCOSITY * uxx) ** 2)

    def update(state: Any) -> Any:
        parameters, means, squares, count = state
        value, gradients = jax.value_and_grad(loss_of)(parameters)
        count = count + 1
        tree = jax.tree_util.tree_map
        means = tree(lambda m, g: 0.9 * m + 0.1 * g, means, gradients)
        squares = tree(lambda s, g: 0.999 * s + 0.001 * g * g, squares, gradients)
        rate = RATE * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        parameters = tree(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), parameters, means, squares)
        return (parameters, means, squares, count), value

    jitted = jax.jit(update, donate_argnums=0)
    start = [(jnp.asarray(w), jnp.asarray(b)) for w, b in zip(WEIGHTS, BIASES, strict=True)]
    zeros = lambda: jax.tree_util.tree_map(jnp.zeros_like, start)  # noqa: E731
    state = [(start, zeros(), zeros(), jnp.float32(0))]

    def step() -> Any:
        state[0], value = jitted(state[0])
        jax.block_until_ready(state)
        return value

    return step


if __name__ == "__main__":
    names = ("argosy", "argosy-eager", "torch", "torch-compile", "jax", "jax-jet", "jax-reverse", "paddle")
    options = arguments(__doc__ or "", names, ("256", "4096", "64", "65536"))
    makers = {
        "argosy": lambda: argosy_step(options.case, True), "argosy-eager": lambda: argosy_step(options.case, False),
        "torch": lambda: torch_step(options.case), "torch-compile": lambda: compiled_torch_step(options.case),
        "jax": lambda: jax_step(options.case), "jax-jet": lambda: jax_step(options.case, "jet"),
        "jax-reverse": lambda: jax_step(options.case, "reverse"),
        "paddle": lambda: real_paddle_step(options.case),
    }  # fmt: skip
    run(options, "pinn", makers[options.framework]())
