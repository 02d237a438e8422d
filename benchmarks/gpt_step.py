"""One AdamW training step of a GPT: 6 layers, width 384, 6 heads, 256 tokens, vocabulary 4096 (untied), batch 8,
float32. ``--case small``: 2 layers, width 128, 4 heads, 64 tokens, vocabulary 512, where what an operator costs shows;
``--case bfloat16``: the forward pass under automatic casts to bfloat16, with float32 weights.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import arguments, run

SIZES = {"": (6, 384, 6, 256, 4096, 8), "bfloat16": (6, 384, 6, 256, 4096, 8), "small": (2, 128, 4, 64, 512, 8)}
LAYERS, WIDTH, HEADS, TOKENS, VOCABULARY, BATCH = SIZES[""]
RATE = 3e-4
rng = np.random.default_rng(0)
IDS = rng.integers(0, VOCABULARY, (BATCH, TOKENS + 1)).astype(np.int64)
FRAMEWORKS = ("argosy", "argosy-eager", "argosy-plain", "torch", "torch-compile", "jax")
MATRICES = ("qkv", "o", "f1", "f2", "head")


def take_sizes(case: str) -> None:
    """Make the model and the batch those of a case."""
    global LAYERS, WIDTH, HEADS, TOKENS, VOCABULARY, BATCH, IDS
    LAYERS, WIDTH, HEADS, TOKENS, VOCABULARY, BATCH = SIZES[case]
    IDS = IDS[:BATCH, : TOKENS + 1] % VOCABULARY


def normal(*shape: int) -> Any:
    return (0.02 * rng.standard_normal(shape)).astype(np.float32)


def ones_and_zeros(prefix: str) -> dict[str, Any]:
    return {prefix + "_w": np.ones(WIDTH, np.float32), prefix + "_b": np.zeros(WIDTH, np.float32)}


def initial() -> dict[str, Any]:
    """Initial weights by name; matrices are [in, out]."""
    made = {"te": normal(VOCABULARY, WIDTH), "pe": normal(TOKENS, WIDTH), "head": normal(WIDTH, VOCABULARY)}
    made |= ones_and_zeros("lnf")
    for i in range(LAYERS):
        made |= ones_and_zeros(f"l{i}.ln1") | ones_and_zeros(f"l{i}.ln2")
        for name, rows, columns in (("qkv", 1, 3), ("o", 1, 1), ("f1", 1, 4), ("f2", 4, 1)):
            made[f"l{i}.{name}"] = normal(rows * WIDTH, columns * WIDTH)
            made[f"l{i}.{name}_b"] = np.zeros(columns * WIDTH, np.float32)
    return made


def argosy_step(compiled: bool, narrow: bool = False) -> Callable[[], Any]:
    import argosy as paddle

    F = paddle.nn.functional
    assign = paddle.nn.initializer.Assign
    ps = {k: paddle.create_parameter(v.shape, "float32", default_initializer=assign(v)) for k, v in initial().items()}
    x, y = paddle.to_tensor(IDS[:, :-1].copy()), paddle.to_tensor(IDS[:, 1:].copy())
    size = WIDTH // HEADS

    def loss_fn(x: Any, y: Any) -> Any:
        h = F.embedding(x, ps["te"]) + ps["pe"]
        for i in range(LAYERS):
            p = lambda name, g=f"l{i}.": ps[g + name]  # noqa: E731
            z = F.layer_norm(h, [WIDTH], p("ln1_w"), p("ln1_b"))
            qkv = F.linear(z, p("qkv"), p("qkv_b")).reshape([BATCH, TOKENS, 3, HEADS, size])
            z = F.scaled_dot_product_attention(*paddle.unbind(qkv, 2), is_causal=True)
            z = z.reshape([BATCH, TOKENS, WIDTH])
            h = h + F.linear(z, p("o"), p("o_b"))
            z = F.layer_norm(h, [WIDTH], p("ln2_w"), p("ln2_b"))
            h = h + F.linear(F.gelu(F.linear(z, p("f1"), p("f1_b")), approximate=True), p("f2"), p("f2_b"))
        h = F.layer_norm(h, [WIDTH], ps["lnf_w"], ps["lnf_b"])
        return F.cross_entropy(paddle.matmul(h, ps["head"]).reshape([-1, VOCABULARY]), y.reshape([-1]))

    optimizer = paddle.optimizer.AdamW(RATE, parameters=list(ps.values()))

    def step(x: Any, y: Any) -> Any:
        with paddle.amp.auto_cast(narrow, dtype="bfloat16"):
            loss = loss_fn(x, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    whole = paddle.jit.to_static(step, full_graph=True) if compiled else step
    return lambda: whole(x, y)


def plain_step() -> Callable[[], Any]:
    os.environ["ARGOSY_EAGER"] = "plain"
    return argosy_step(False)


def torch_step(compiled: bool, narrow: bool = False) -> Callable[[], Any]:
    import torch

    F = torch.nn.functional
    ps = {
        k: torch.from_numpy(v.T.copy() if k.rpartition(".")[2] in MATRICES else v.copy()).requires_grad_()
        for k, v in initial().items()
    }
    ids = torch.from_numpy(IDS)
    x, y = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()

    def loss_fn(x: Any, y: Any) -> Any:
        h = F.embedding(x, ps["te"]) + ps["pe"]
        for i in range(LAYERS):
            p = lambda name, g=f"l{i}.": ps[g + name]  # noqa: E731
            z = F.layer_norm(h, (WIDTH,), p("ln1_w"), p("ln1_b"))
            qkv = F.linear(z, p("qkv"), p("qkv_b")).view(BATCH, TOKENS, 3, HEADS, WIDTH // HEADS)
            z = F.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4), is_causal=True)
            h = h + F.linear(z.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH), p("o"), p("o_b"))
            z = F.layer_norm(h, (WIDTH,), p("ln2_w"), p("ln2_b"))
            h = h + F.linear(F.gelu(F.linear(z, p("f1"), p("f1_b")), approximate="tanh"), p("f2"), p("f2_b"))
        h = F.layer_norm(h, (WIDTH,), ps["lnf_w"], ps["lnf_b"])
        return F.cross_entropy(F.linear(h, ps["head"]).view(-1, VOCABULARY), y.view(-1))

    optimizer = torch.optim.AdamW(ps.values(), lr=RATE, weight_decay=0.01, fused=True)
    loss_of = torch.compile(loss_fn, dynamic=False) if compiled else loss_fn

    def step() -> Any:
        with torch.autocast("cpu", torch.bfloat16, narrow):
            loss = loss_of(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def jax_step() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    x, y = (jnp.asarray(ids, jnp.int32) for ids in (IDS[:, :-1], IDS[:, 1:]))

    def norm(h: Any, w: Any, b: Any) -> Any:
        centred = h - h.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * w + b

    def loss_fn(ps: Any, x: Any, y: Any) -> Any:
        h = ps["te"][x] + ps["pe"]
        for i in range(LAYERS):
            p = lambda name, g=f"l{i}.": ps[g + name]  # noqa: E731
            qkv = norm(h, p("ln1_w"), p("ln1_b")) @ p("qkv") + p("qkv_b")
            q, k, v = jnp.moveaxis(qkv.reshape(BATCH, TOKENS, 3, HEADS, WIDTH // HEADS), 2, 0)
            z = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(BATCH, TOKENS, WIDTH)
            h = h + z @ p("o") + p("o_b")
            z = norm(h, p("ln2_w"), p("ln2_b"))
            h = h + jax.nn.gelu(z @ p("f1") + p("f1_b"), approximate=True) @ p("f2") + p("f2_b")
        logits = norm(h, ps["lnf_w"], ps["lnf_b"]) @ ps["head"]
        return (jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, y[..., None], -1)[..., 0]).mean()

    def adamw(p: Any, g: Any, m: Any, v: Any, t: Any) -> tuple[Any, Any, Any]:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        update = m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
        return p * (1 - RATE * 0.01) - RATE * update, m, v

    def update(ps: Any, moments: Any, t: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_fn)(ps, x, y)
        made = {k: adamw(ps[k], gradients[k], *moments[k], t) for k in ps}
        return {k: p for k, (p, _, _) in made.items()}, {k: (m, v) for k, (_, m, v) in made.items()}, t + 1, loss

    jitted = jax.jit(update, donate_argnums=(0, 1))
    parameters = {k: jnp.asarray(v) for k, v in initial().items()}
    state = [parameters, {k: (jnp.zeros_like(p), jnp.zeros_like(p)) for k, p in parameters.items()}, jnp.float32(1)]

    def step() -> Any:
        *state[:], loss = jitted(*state, x, y)
        jax.block_until_ready(state)
        return loss

    return step


if __name__ == "__main__":
    options = arguments(__doc__ or "", FRAMEWORKS, tuple(SIZES))
    take_sizes(options.case)
    narrow = options.case == "bfloat16"
    makers = {
        "argosy": lambda: argosy_step(True, narrow), "argosy-eager": lambda: argosy_step(False, narrow),
        "argosy-plain": plain_step, "torch": lambda: torch_step(False, narrow),
        "torch-compile": lambda: torch_step(True, narrow), "jax": jax_step,
    }  # fmt: skip
    run(options, "gpt_step", makers[options.framework]())
