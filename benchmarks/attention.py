"""Causal attention forward and backward, float32, head size 64: batch x heads x tokens by case."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from timing import arguments, run

WIDTH = 64
CASES = {"8x6x256": (8, 6, 256), "1x6x2048": (1, 6, 2048)}


def operands(batch: int, heads: int, tokens: int) -> list[Any]:
    """Query, key, value and the gradient of the result: [batch, heads, tokens, head size]."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal((batch, heads, tokens, WIDTH), dtype=np.float32) for _ in range(4)]


def argosy_step(shape: tuple[int, int, int]) -> Callable[[], Any]:
    import argosy as paddle

    # Paddle's layout is [batch, tokens, heads, head size].
    q, k, v, g = (paddle.to_tensor(np.ascontiguousarray(x.transpose(0, 2, 1, 3))) for x in operands(*shape))
    for x in (q, k, v):
        x.stop_gradient = False

    def both(q: Any, k: Any, v: Any, g: Any) -> Any:
        out = paddle.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out, *paddle.grad([out], [q, k, v], [g])

    whole = paddle.jit.to_static(both, full_graph=True)
    return lambda: whole(q, k, v, g)[1][0, -1, 0, 0]


def torch_step(shape: tuple[int, int, int], compiled: bool = False) -> Callable[[], Any]:
    import torch

    q, k, v, g = (torch.from_numpy(x) for x in operands(*shape))
    inputs = [x.requires_grad_() for x in (q, k, v)]

    attend = partial(torch.nn.functional.scaled_dot_product_attention, is_causal=True)
    called = torch.compile(attend, dynamic=False) if compiled else attend

    def step() -> Any:
        for x in inputs:
            x.grad = None
        called(q, k, v).backward(g)
        assert q.grad is not None
        return q.grad[0, 0, -1, 0]

    return step


def jax_step(shape: tuple[int, int, int]) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    q, k, v, g = (jnp.asarray(x.transpose(0, 2, 1, 3)) for x in operands(*shape))

    def both(q: Any, k: Any, v: Any, g: Any) -> Any:
        attend = lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
        out, back = jax.vjp(attend, q, k, v)
        return out, *back(g)

    jitted = jax.jit(both)
    return lambda: jax.block_until_ready(jitted(q, k, v, g))[1][0, -1, 0, 0]


if __name__ == "__main__":
    options = arguments(__doc__ or "", ("argosy", "torch", "torch-compile", "jax"), tuple(CASES))
    compiled = partial(torch_step, compiled=True)
    makers = {"argosy": argosy_step, "torch": torch_step, "torch-compile": compiled, "jax": jax_step}
    run(options, "attention", makers[options.framework](CASES[options.case]))
