"""One token (or a prompt of 128) of a Llama-like model: width 2048, 16 layers, 16 heads that share 8 of keys and
values, SwiGLU of 5632, 32,000 words: 0.89 billion weights with the table of words, which is not read here.

Cases: ``bfloat16``, ``int8`` (a scale for each output) and ``int4`` (one for each output) decode a token after 128
others; ``prefill`` is the prompt in bfloat16. Before the record comes a line with the bytes of weights that a step
reads and the least time that takes at the bandwidth of a sum over memory, measured on the same cores in the same
process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import arguments, run

WIDTH, HEADS, SHARED, SIZE, HIDDEN, LAYERS, WORDS, PAST, PLACES = 2048, 16, 8, 128, 5632, 16, 32000, 128, 160
SHAPES = {
    "q": (WIDTH, WIDTH), "k": (SHARED * SIZE, WIDTH), "v": (SHARED * SIZE, WIDTH), "o": (WIDTH, WIDTH),
    "gate": (HIDDEN, WIDTH), "up": (HIDDEN, WIDTH), "down": (WIDTH, HIDDEN),
}  # fmt: skip
BYTES = {"bfloat16": 2.0, "prefill": 2.0, "int8": 1.0, "int4": 0.5}
WEIGHTS = LAYERS * sum(a * b for a, b in SHAPES.values()) + WORDS * WIDTH


def weight(out: int, size: int) -> Any:
    """Random numbers [out, in]; large ones repeat a block, which no kernel can know."""
    block = np.random.default_rng(out + size).uniform(-0.03, 0.03, (256, size)).astype(np.float32)
    return np.tile(block, (out // 256 + 1, 1))[:out]


def angles(tokens: int) -> tuple[Any, Any]:
    """Cosines and sines of the rotary positions [tokens, 1, head size]."""
    start = PAST if tokens == 1 else 0
    turns = np.outer(np.arange(start, start + tokens), 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE))
    both = np.concatenate([turns, turns], -1)[:, None]
    return np.cos(both).astype(np.float32), np.sin(both).astype(np.float32)


def argosy_step(case: str) -> Callable[[], Any]:  # noqa: C901
    """A compiled step; weights and caches are the layers' parameters and buffers."""
    import argosy as paddle
    from argosy.nn.quant import weight_only_linear, weight_quantize

    F, tokens = paddle.nn.functional, 128 if case == "prefill" else 1

    class Linear(paddle.nn.Layer):  # type: ignore[misc, name-defined]
        def __init__(self, out: int, size: int) -> None:
            super().__init__()
            made = paddle.to_tensor(weight(out, size)).astype("bfloat16")
            if case.startswith("int"):
                made, scale = weight_quantize(made.transpose([1, 0]), f"weight_only_{case}")
                self.register_buffer("scale", scale)
            self.register_buffer("weight", made)

        def forward(self, x: Any) -> Any:
            if case.startswith("int"):
                return weight_only_linear(x, self.weight, None, self.scale, case)
            return paddle.matmul(x, self.weight, transpose_y=True)

    cos, sin = (paddle.to_tensor(a) for a in angles(tokens))

    def norm(x: Any) -> Any:
        wide = x.astype("float32")
        return (wide * paddle.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-5)).astype("bfloat16")

    def turned(x: Any) -> Any:
        wide = x.astype("float32")
        low, high = wide[..., : SIZE // 2], wide[..., SIZE // 2 :]
        return (wide * cos + paddle.concat([-high, low], -1) * sin).astype("bfloat16")

    class Block(paddle.nn.Layer):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            for name, shape in SHAPES.items():
                setattr(self, name, Linear(*shape))
            for name in ("keys", "values"):
                self.register_buffer(name, paddle.zeros([1, PLACES, SHARED, SIZE], "bfloat16"))

        def forward(self, x: Any) -> Any:
            z = norm(x)
            q, k, v = (getattr(self, n)(z).reshape([1, tokens, -1, SIZE]) for n in "qkv")
            start = PAST if tokens == 1 else 0
            self.keys[:, start : start + tokens] = turned(k)
            self.values[:, start : start + tokens] = v
            past = (self.keys[:, : start + tokens], self.values[:, : start + tokens])
            z = F.scaled_dot_product_attention(turned(q), *past, is_causal=tokens > 1)
            x = x + self.o(z.reshape([1, tokens, WIDTH]))
            z = norm(x)
            return x + self.down(F.silu(self.gate(z)) * self.up(z))

    class Model(paddle.nn.Layer):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.blocks = paddle.nn.LayerList([Block() for _ in range(LAYERS)])
            self.head = Linear(WORDS, WIDTH)

        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return self.head(norm(x[:, -1:]))

    model = Model()
    model.eval()
    whole = paddle.jit.to_static(model, full_graph=True)
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((1, tokens, WIDTH)).astype(np.float32))
    x = x.astype("bfloat16")

    def step() -> Any:
        with paddle.no_grad():
            return whole(x).astype("float32")

    return step


def least_time(case: str) -> dict[str, Any]:
    """What a step has to read, and how long that takes at the bandwidth of our own sum over half a gigabyte."""
    import argosy as paddle

    memory = paddle.ones([1 << 27], "float32")
    total = paddle.jit.to_static(lambda x: x.reshape([1024, -1]).sum(-1), full_graph=True)
    found = []
    for _ in range(12):
        begin = time.perf_counter(), time.process_time()
        total(memory)
        wall, cpu = time.perf_counter() - begin[0], time.process_time() - begin[1]
        found.append(min(wall, cpu) if options.threads == 1 else wall)
    bandwidth, weights = (1 << 29) / np.median(found[2:]), WEIGHTS * BYTES[case]
    names = ("weights_gb", "read_limit_gb_per_s", "least_ms")
    numbers = (weights / 1e9, bandwidth / 1e9, weights / bandwidth * 1e3)
    return {name: round(float(x), 2) for name, x in zip(names, numbers, strict=True)}


def torch_step(case: str) -> Callable[[], Any]:
    """The same in torch, eager bfloat16: its products are oneDNN's."""
    import torch

    if case.startswith("int"):
        raise SystemExit("torch has no weight-only products on the CPU in eager mode")
    F, tokens = torch.nn.functional, 128 if case == "prefill" else 1
    half = torch.bfloat16
    blocks = [{n: torch.from_numpy(weight(*s)).to(half) for n, s in SHAPES.items()} for _ in range(LAYERS)]
    caches = [[torch.zeros(1, SHARED, PLACES, SIZE, dtype=half) for _ in "kv"] for _ in range(LAYERS)]
    head = torch.from_numpy(weight(WORDS, WIDTH)).to(half)
    cos, sin = (torch.from_numpy(a[:, 0]).to(half) for a in angles(tokens))
    start = PAST if tokens == 1 else 0
    x0 = torch.from_numpy(np.random.default_rng(0).standard_normal((1, tokens, WIDTH)).astype(np.float32)).to(half)

    def turned(x: Any) -> Any:
        low, high = x.chunk(2, -1)
        return x * cos + torch.cat([-high, low], -1) * sin

    def norm(x: Any) -> Any:
        return F.rms_norm(x, (WIDTH,), None, 1e-5)

    def step() -> Any:
        x = x0
        for w, (keys, values) in zip(blocks, caches, strict=True):
            z = norm(x)
            q, k, v = (F.linear(z, w[n]).view(1, tokens, -1, SIZE).transpose(1, 2) for n in "qkv")
            keys[:, :, start : start + tokens], values[:, :, start : start + tokens] = turned(k), v
            past = (keys[:, :, : start + tokens], values[:, :, : start + tokens])
            z = F.scaled_dot_product_attention(turned(q), *past, is_causal=tokens > 1, enable_gqa=True)
            x = x + F.linear(z.transpose(1, 2).reshape(1, tokens, WIDTH), w["o"])
            z = norm(x)
            x = x + F.linear(F.silu(F.linear(z, w["gate"])) * F.linear(z, w["up"]), w["down"])
        return F.linear(norm(x[:, -1:]), head).float()

    def without_gradients() -> Any:
        with torch.inference_mode():
            return step()

    return without_gradients


if __name__ == "__main__":
    options = arguments(__doc__ or "", ("argosy", "torch"), ("bfloat16", "int8", "int4", "prefill"))
    if options.framework == "argosy":
        print(json.dumps(least_time(options.case)), flush=True)
    maker = argosy_step if options.framework == "argosy" else torch_step
    run(options, "decode", maker(options.case))
