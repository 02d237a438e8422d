"""softmax(gelu(x * w + b) + r) over rows, 4096 x 1024, float32, tanh form of gelu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import arguments, run

SHAPE = (4096, 1024)
rng = np.random.default_rng(0)
X, R = (rng.standard_normal(SHAPE, dtype=np.float32) for _ in range(2))
W, B = (rng.standard_normal(SHAPE[1], dtype=np.float32) for _ in range(2))


def argosy_step(compiled: bool) -> Callable[[], Any]:
    import argosy as paddle

    F = paddle.nn.functional
    tensors = [paddle.to_tensor(v) for v in (X, W, B, R)]

    def step(x: Any, w: Any, b: Any, r: Any) -> Any:
        return F.softmax(F.gelu(x * w + b, approximate=True) + r, -1)

    whole = paddle.jit.to_static(step, full_graph=True) if compiled else step
    return lambda: whole(*tensors)


def torch_step(compiled: bool) -> Callable[[], Any]:
    import torch

    tensors = [torch.from_numpy(v) for v in (X, W, B, R)]

    def step(x: Any, w: Any, b: Any, r: Any) -> Any:
        return torch.softmax(torch.nn.functional.gelu(x * w + b, approximate="tanh") + r, -1)

    whole = torch.no_grad()(torch.compile(step, dynamic=False) if compiled else step)
    return lambda: whole(*tensors)


def jax_step() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    tensors = [jnp.asarray(v) for v in (X, W, B, R)]
    whole = jax.jit(lambda x, w, b, r: jax.nn.softmax(jax.nn.gelu(x * w + b, approximate=True) + r, -1))
    return lambda: whole(*tensors).block_until_ready()


if __name__ == "__main__":
    options = arguments(__doc__ or "", ("argosy", "argosy-eager", "torch", "torch-compile", "jax"))
    makers = {
        "argosy": lambda: argosy_step(True), "argosy-eager": lambda: argosy_step(False),
        "torch": lambda: torch_step(False), "torch-compile": lambda: torch_step(True), "jax": jax_step,
    }  # fmt: skip
    run(options, "gelu_softmax", makers[options.framework]())
