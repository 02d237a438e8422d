"""One Llama block forward and backward, float32: width 2048, 32 heads that share 8 of keys and values, rotary
positions, SwiGLU of 5632, 512 tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import arguments, run

WIDTH, HEADS, SHARED, HIDDEN, TOKENS, SIZE = 2048, 32, 8, 5632, 512, 64
SHAPES = {
    "q": (WIDTH, WIDTH), "k": (WIDTH, SHARED * SIZE), "v": (WIDTH, SHARED * SIZE), "o": (WIDTH, WIDTH),
    "gate": (WIDTH, HIDDEN), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH),
}  # fmt: skip


def initial() -> dict[str, Any]:
    """Weights [in, out], the input and the gradient of the result by name."""
    rng = np.random.default_rng(0)
    made = {name: (0.02 * rng.standard_normal(shape)).astype(np.float32) for name, shape in SHAPES.items()}
    made |= {"norm1": np.ones(WIDTH, np.float32), "norm2": np.ones(WIDTH, np.float32)}
    return made | {x: rng.standard_normal((1, TOKENS, WIDTH), dtype=np.float32) for x in ("x", "g")}


def angles() -> tuple[Any, Any]:
    """Cosines and sines of the rotary positions [tokens, head size]."""
    turns = np.outer(np.arange(TOKENS), 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE))
    both = np.concatenate([turns, turns], -1)
    return np.cos(both).astype(np.float32), np.sin(both).astype(np.float32)


def argosy_step() -> Callable[[], Any]:
    import argosy as paddle

    F = paddle.nn.functional
    held = {name: paddle.to_tensor(value) for name, value in initial().items()}
    cos, sin = (paddle.to_tensor(a[:, None, :]) for a in angles())
    g = held.pop("g")
    for x in held.values():
        x.stop_gradient = False

    def norm(x: Any, w: Any) -> Any:
        return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w

    def turned(x: Any) -> Any:
        low, high = x[..., : SIZE // 2], x[..., SIZE // 2 :]
        return x * cos + paddle.concat([-high, low], -1) * sin

    def block(h: dict[str, Any], g: Any) -> Any:
        z = norm(h["x"], h["norm1"])
        q, k, v = (paddle.matmul(z, h[n]).reshape([1, TOKENS, -1, SIZE]) for n in "qkv")
        z = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
        x = h["x"] + paddle.matmul(z.reshape([1, TOKENS, WIDTH]), h["o"])
        z = norm(x, h["norm2"])
        out = x + paddle.matmul(F.silu(paddle.matmul(z, h["gate"])) * paddle.matmul(z, h["up"]), h["down"])
        return paddle.grad([out], list(h.values()), [g])

    whole = paddle.jit.to_static(block, full_graph=True)
    return lambda: whole(held, g)[-1][0, -1, 0]


def torch_step(compiled: bool) -> Callable[[], Any]:
    import torch

    F = torch.nn.functional
    held = {name: torch.from_numpy(value) for name, value in initial().items()}
    cos, sin = (torch.from_numpy(a) for a in angles())
    g = held.pop("g")
    for x in held.values():
        x.requires_grad_()

    def turned(x: Any) -> Any:
        low, high = x.chunk(2, -1)
        return x * cos + torch.cat([-high, low], -1) * sin

    def block(h: dict[str, Any]) -> Any:
        z = F.rms_norm(h["x"], (WIDTH,), h["norm1"], 1e-5)
        q, k, v = ((z @ h[n]).view(1, TOKENS, -1, SIZE).transpose(1, 2) for n in "qkv")
        z = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
        x = h["x"] + z.transpose(1, 2).reshape(1, TOKENS, WIDTH) @ h["o"]
        z = F.rms_norm(x, (WIDTH,), h["norm2"], 1e-5)
        return x + (F.silu(z @ h["gate"]) * (z @ h["up"])) @ h["down"]

    called = torch.compile(block, dynamic=False) if compiled else block

    def step() -> Any:
        for x in held.values():
            x.grad = None
        called(held).backward(g)
        assert held["x"].grad is not None
        return held["x"].grad[0, -1, 0]

    return step


def jax_step() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    held = {name: jnp.asarray(value) for name, value in initial().items()}
    cos, sin = (jnp.asarray(a[:, None, :]) for a in angles())
    g = held.pop("g")

    def norm(x: Any, w: Any) -> Any:
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w

    def turned(x: Any) -> Any:
        low, high = jnp.split(x, 2, -1)
        return x * cos + jnp.concatenate([-high, low], -1) * sin

    def block(h: dict[str, Any]) -> Any:
        z = norm(h["x"], h["norm1"])
        q, k, v = ((z @ h[n]).reshape(1, TOKENS, -1, SIZE) for n in "qkv")
        z = jax.nn.dot_product_attention(turned(q), turned(k), v, is_causal=True)
        x = h["x"] + z.reshape(1, TOKENS, WIDTH) @ h["o"]
        z = norm(x, h["norm2"])
        return x + (jax.nn.silu(z @ h["gate"]) * (z @ h["up"])) @ h["down"]

    gradients = jax.jit(lambda h, g: jax.vjp(block, h)[1](g)[0])

    def step() -> Any:
        found = jax.block_until_ready(gradients(held, g))
        return found["x"][0, -1, 0]

    return step


if __name__ == "__main__":
    options = arguments(__doc__ or "", ("argosy", "torch", "torch-compile", "jax"))
    makers = {
        "argosy": argosy_step,
        "torch": lambda: torch_step(False),
        "torch-compile": lambda: torch_step(True),
        "jax": jax_step,
    }
    run(options, "llama_block", makers[options.framework]())
