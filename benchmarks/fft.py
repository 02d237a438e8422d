"""A two-dimensional Fourier transform of complex64 numbers, and the gradient of the power of its spectrum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import arguments, run


def data(size: int) -> Any:
    rng = np.random.default_rng(0)
    shape = (size, size)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def argosy_step(size: int, gradient: bool, compiled: bool) -> Callable[[], Any]:
    import argosy as paddle

    def forward(x: Any) -> Any:
        return paddle.fft.fft2(x)

    def backward(x: Any) -> Any:
        z = forward(x)
        return paddle.grad((z.real() ** 2 + z.imag() ** 2).sum(), x)[0]

    step = backward if gradient else forward
    whole = paddle.jit.to_static(step, full_graph=True) if compiled else step
    x = paddle.to_tensor(data(size), stop_gradient=not gradient)
    return lambda: whole(x)


def torch_step(size: int, gradient: bool) -> Callable[[], Any]:
    import torch

    x = torch.from_numpy(data(size)).requires_grad_(gradient)

    def step() -> Any:
        z = torch.fft.fft2(x)
        return torch.autograd.grad((z.real**2 + z.imag**2).sum(), x)[0] if gradient else z

    return step


def jax_step(size: int, gradient: bool) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    def power(x: Any) -> Any:
        z = jnp.fft.fft2(x)
        return (z.real**2 + z.imag**2).sum()

    jitted = jax.jit(jax.grad(power) if gradient else jnp.fft.fft2)
    x = jnp.asarray(data(size))
    return lambda: jitted(x).block_until_ready()


if __name__ == "__main__":
    cases = ("2048-forward", "2048-backward", "256-forward", "256-backward")
    options = arguments(__doc__ or "", ("argosy", "argosy-eager", "torch", "jax"), cases)
    size, _, kind = options.case.partition("-")
    call = (int(size), kind == "backward")
    makers = {
        "argosy": lambda: argosy_step(*call, True), "argosy-eager": lambda: argosy_step(*call, False),
        "torch": lambda: torch_step(*call), "jax": lambda: jax_step(*call),
    }  # fmt: skip
    run(options, "fft", makers[options.framework]())
