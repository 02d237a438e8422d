"""A chain of 100 cheap operators on 8 floats: what one more operator costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import arguments, run

LENGTH = 100
X = np.linspace(0.1, 0.8, 8, dtype=np.float32)


def chained(x: Any) -> Any:
    y = x
    for i in range(LENGTH // 2):
        y = y * 0.999 + x if i % 2 else y * 1.001 - x
    return y


def argosy_step(compiled: bool) -> Callable[[], Any]:
    import argosy as paddle

    x = paddle.to_tensor(X)
    whole = paddle.jit.to_static(chained, full_graph=True) if compiled else chained
    return lambda: whole(x)


def torch_step(compiled: bool) -> Callable[[], Any]:
    import torch

    x = torch.from_numpy(X)
    whole = torch.no_grad()(torch.compile(chained, dynamic=False) if compiled else chained)
    return lambda: whole(x)


def jax_step() -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    x = jnp.asarray(X)
    whole = jax.jit(chained)
    return lambda: whole(x).block_until_ready()


if __name__ == "__main__":
    options = arguments(__doc__ or "", ("argosy", "argosy-eager", "torch", "torch-compile", "jax"))
    makers = {
        "argosy": lambda: argosy_step(True), "argosy-eager": lambda: argosy_step(False),
        "torch": lambda: torch_step(False), "torch-compile": lambda: torch_step(True), "jax": jax_step,
    }  # fmt: skip
    run(options, "chain", makers[options.framework]())
