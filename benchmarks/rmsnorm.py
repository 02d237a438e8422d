"""RMSNorm written plainly (square, mean, rsqrt, two products), forward and with its gradients, float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import arguments, run

EPSILON = 1e-6


def data(case: str) -> tuple[Any, Any, Any]:
    shape = tuple(map(int, case.partition("-")[0].split("x")))
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(s, dtype=np.float32) for s in (shape, shape[1], shape))  # type: ignore[return-value]


def argosy_step(case: str, compiled: bool) -> Callable[[], Any]:
    import argosy as paddle

    x, w, g = (paddle.to_tensor(v, stop_gradient=False) for v in data(case))

    def forward(x: Any, w: Any, g: Any) -> Any:
        return w * (x * paddle.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON))

    def backward(x: Any, w: Any, g: Any) -> Any:
        return paddle.grad((forward(x, w, g) * g).sum(), [x, w])

    chosen = backward if case.endswith("backward") else paddle.no_grad(forward)
    whole = paddle.jit.to_static(chosen, full_graph=True) if compiled else chosen
    return lambda: whole(x, w, g)


def torch_step(case: str, compiled: bool) -> Callable[[], Any]:
    import torch

    x, w, g = map(torch.from_numpy, data(case))

    def forward(x: Any, w: Any, g: Any) -> Any:
        return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON))

    def loss(x: Any, w: Any, g: Any) -> Any:
        return (forward(x, w, g) * g).sum()

    if case.endswith("backward"):
        x.requires_grad_()
        w.requires_grad_()
        whole = torch.compile(loss, dynamic=False) if compiled else loss
        return lambda: torch.autograd.grad(whole(x, w, g), (x, w))
    made = torch.no_grad()(torch.compile(forward, dynamic=False) if compiled else forward)
    return lambda: made(x, w, g)


def jax_step(case: str) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    x, w, g = map(jnp.asarray, data(case))

    def forward(x: Any, w: Any, g: Any) -> Any:
        return w * (x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPSILON))

    backward = jax.grad(lambda x, w, g: (forward(x, w, g) * g).sum(), (0, 1))
    whole = jax.jit(backward if case.endswith("backward") else forward)
    return lambda: jax.block_until_ready(whole(x, w, g))


if __name__ == "__main__":
    shapes = ("4096x768", "8192x4096")
    cases = tuple(f"{shape}-{way}" for shape in shapes for way in ("forward", "backward"))
    options = arguments(__doc__ or "", ("argosy", "argosy-eager", "torch", "torch-compile", "jax"), cases)
    makers = {
        "argosy": lambda: argosy_step(options.case, True), "argosy-eager": lambda: argosy_step(options.case, False),
        "torch": lambda: torch_step(options.case, False), "torch-compile": lambda: torch_step(options.case, True),
        "jax": lambda: jax_step(options.case),
    }  # fmt: skip
    run(options, "rmsnorm", makers[options.framework]())
