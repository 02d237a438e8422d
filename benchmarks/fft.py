"""Fourier transforms: of two dimensions, with the gradient of the power of the spectrum, and of lines of many lengths.

Cases: ``SIZE-forward`` and ``SIZE-backward`` of SIZE x SIZE complex64 numbers, ``lines-N`` of 2^20 complex64 numbers in
lines of N, ``one-N`` of one line, ``real-N`` of 2^20 float32 numbers in lines of N.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import arguments, run

_NUMBERS = 1 << 20
FRAMEWORKS = ("argosy", "argosy-eager", "torch", "torch-compile", "jax", "scipy", "paddle")
CASES = (
    "2048-forward", "2048-backward", "256-forward", "256-backward", "lines-64", "lines-256", "lines-1000", "lines-1009",
    "lines-1024", "lines-1088", "lines-16384", "lines-1048576", "one-64", "one-1024", "one-16384", "real-256",
    "real-1024",
)  # fmt: skip


def data(case: str) -> Any:
    """The numbers that are transformed."""
    rng = np.random.default_rng(0)
    kind, _, size = case.partition("-")
    if kind.isdecimal():
        shape = (int(kind), int(kind))
    else:
        shape = (1 if kind == "one" else _NUMBERS // int(size), int(size))
    if kind == "real":
        return rng.standard_normal(shape).astype(np.float32)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def transform(fft: Any, case: str) -> Callable[[Any], Any]:
    """The function of a library's ``fft`` that a case is about."""
    kind = case.partition("-")[0]
    return fft.fft2 if kind.isdecimal() else fft.rfft if kind == "real" else fft.fft


def argosy_step(case: str, compiled: bool) -> Callable[[], Any]:
    import argosy

    return paddle_step(argosy, case, compiled)


def real_paddle_step(case: str) -> Callable[[], Any]:
    import paddle

    return paddle_step(paddle, case, False)


def paddle_step(paddle: Any, case: str, compiled: bool) -> Callable[[], Any]:
    forward, gradient = transform(paddle.fft, case), case.endswith("backward")

    def step(x: Any) -> Any:
        return forward(x)

    def backward(x: Any) -> Any:
        z = forward(x)
        return paddle.grad((z.real() ** 2 + z.imag() ** 2).sum(), x)[0]

    chosen = backward if gradient else step
    whole = paddle.jit.to_static(chosen, full_graph=True) if compiled else chosen
    x = paddle.to_tensor(data(case), stop_gradient=not gradient)
    return lambda: whole(x)


def torch_step(case: str, compiled: bool) -> Callable[[], Any]:
    import torch

    gradient = case.endswith("backward")
    x, forward = torch.from_numpy(data(case)).requires_grad_(gradient), transform(torch.fft, case)

    def step() -> Any:
        z = forward(x)
        return torch.autograd.grad((z.real**2 + z.imag**2).sum(), x)[0] if gradient else z

    def power(x: Any) -> Any:
        z = forward(x)
        return (z.real**2 + z.imag**2).sum()

    if not compiled:
        return step
    whole = torch.compile(torch.func.grad(power) if gradient else forward, dynamic=False)
    x = x.detach()
    return lambda: whole(x)


def jax_step(case: str) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    forward = transform(jnp.fft, case)

    def power(x: Any) -> Any:
        z = forward(x)
        return (z.real**2 + z.imag**2).sum()

    jitted = jax.jit(jax.grad(power) if case.endswith("backward") else forward)
    x = jnp.asarray(data(case))
    return lambda: jitted(x).block_until_ready()


def scipy_step(case: str, threads: int) -> Callable[[], Any]:
    import scipy.fft

    x, forward = data(case), transform(scipy.fft, case)
    if case.endswith("backward"):
        raise ValueError("scipy has no gradients")
    return lambda: forward(x, workers=threads)


if __name__ == "__main__":
    options = arguments(__doc__ or "", FRAMEWORKS, CASES)
    makers = {
        "argosy": lambda: argosy_step(options.case, True), "argosy-eager": lambda: argosy_step(options.case, False),
        "torch": lambda: torch_step(options.case, False), "torch-compile": lambda: torch_step(options.case, True),
        "jax": lambda: jax_step(options.case),
        "scipy": lambda: scipy_step(options.case, options.threads), "paddle": lambda: real_paddle_step(options.case),
    }  # fmt: skip
    run(options, "fft", makers[options.framework]())
