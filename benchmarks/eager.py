"""What an operator costs eagerly: 1000 applications to 8 floats (or 8 x 8) are one step, so that milliseconds of a step
read as microseconds of an application. chain100-backward: 100 additions in a row and back through them, 10 times.

``argosy-plain`` is argosy without native code, ``paddle`` the wheel (with an interpreter that has it). To record a row:
``side_by_side.py eager --case add --ours argosy-eager argosy-plain --peers torch numpy --peer-python PATH``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from timing import arguments, run

CASES = ("add", "add-grad", "add-number", "chain100-backward", "matmul8", "relu", "sum")
TIMES, CHAINS, LENGTH = 1000, 10, 100
X = np.linspace(-0.4, 0.3, 8, dtype=np.float32)
W = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)

Step = Callable[[], Any]


def repeated(case: str, x: Any, y: Any, w: Any, relu: Callable[[Any], Any]) -> Step:
    """The cases without a backward pass, written alike for all frameworks."""

    def add() -> Any:
        for _ in range(TIMES):
            z = x + y
        return z

    def add_number() -> Any:
        for _ in range(TIMES):
            z = x + 1.5
        return z

    def matmul() -> Any:
        for _ in range(TIMES):
            z = w @ w
        return z

    def rectify() -> Any:
        for _ in range(TIMES):
            z = relu(x)
        return z

    def total() -> Any:
        for _ in range(TIMES):
            z = x.sum()
        return z

    steps = {"add": add, "add-grad": add, "add-number": add_number, "matmul8": matmul, "relu": rectify, "sum": total}
    return steps[case]


def chained(x: Any, y: Any, back: Callable[[Any], Any]) -> Step:
    """Additions forth and back."""

    def step() -> Any:
        for _ in range(CHAINS):
            z = x
            for _ in range(LENGTH):
                z = z + y
            g = back(z)
        return g

    return step


def plain_step(case: str) -> Step:
    os.environ["ARGOSY_EAGER"] = "plain"
    return paddle_step(case, "argosy")


def paddle_step(case: str, module: str = "paddle") -> Step:
    paddle: Any = import_module(module)
    x, y, w = paddle.to_tensor(X), paddle.to_tensor(X), paddle.to_tensor(W)
    ones = paddle.ones([8])
    if case in ("add-grad", "chain100-backward"):
        x.stop_gradient = False

    def back(z: Any) -> Any:
        z.backward(ones)
        g = x.grad
        x.clear_gradient(False)
        return g

    return chained(x, y, back) if case == "chain100-backward" else repeated(case, x, y, w, paddle.nn.functional.relu)


def torch_step(case: str) -> Step:
    import torch

    x, y, w = (torch.from_numpy(a.copy()) for a in (X, X, W))
    ones = torch.ones(8)
    if case in ("add-grad", "chain100-backward"):
        x.requires_grad_()

    def back(z: Any) -> Any:
        z.backward(ones)
        g = x.grad
        x.grad = None
        return g

    return chained(x, y, back) if case == "chain100-backward" else repeated(case, x, y, w, torch.relu)


def numpy_step(case: str) -> Step:
    if case in ("add-grad", "chain100-backward"):
        raise SystemExit("numpy has no gradients")
    zero = np.zeros((), np.float32)
    return repeated(case, X, X.copy(), W, lambda x: np.maximum(x, zero))


def jax_step(case: str) -> Step:
    """Dispatched one by one, nothing jitted by hand; ``add-grad`` has no counterpart, as nothing is recorded."""
    import jax
    import jax.numpy as jnp

    x, y, w = jnp.asarray(X), jnp.asarray(X), jnp.asarray(W)
    if case == "add-grad":
        raise SystemExit("jax records nothing")
    if case != "chain100-backward":
        step = repeated(case, x, y, w, jax.nn.relu)
        return lambda: step().block_until_ready()

    def chain(x: Any) -> Any:
        for _ in range(LENGTH):
            x = x + y
        return x

    def whole() -> Any:
        for _ in range(CHAINS):
            g = jax.vjp(chain, x)[1](jnp.ones(8))[0]
        return g.block_until_ready()

    return whole


if __name__ == "__main__":
    options = arguments(__doc__ or "", ("argosy-eager", "argosy-plain", "torch", "numpy", "jax", "paddle"), CASES)
    makers = {
        "argosy-eager": lambda case: paddle_step(case, "argosy"), "argosy-plain": plain_step, "paddle": paddle_step,
        "torch": torch_step, "numpy": numpy_step, "jax": jax_step,
    }  # fmt: skip
    run(options, "eager", makers[options.framework](options.case))
