"""The way back: over the tape and over programs."""

from __future__ import annotations

from typing import Any

import argosy as paddle


def test_100_additions_and_back(benchmark: Any) -> None:
    x = paddle.ones([8])
    x.stop_gradient = False

    def step() -> None:
        y = x
        for _ in range(100):
            y = y + x
        y.sum().backward()
        x.clear_grad()

    for _ in range(50):
        step()
    benchmark(step)


def test_second_derivative(benchmark: Any) -> None:
    x = paddle.linspace(0.0, 1.0, 8)
    x.stop_gradient = False

    def twice() -> Any:
        (slope,) = paddle.grad(paddle.tanh(x).sum(), x, create_graph=True)
        return paddle.grad(slope.sum(), x)

    for _ in range(50):
        twice()
    benchmark(twice)
