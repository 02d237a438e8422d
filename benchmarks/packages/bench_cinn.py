"""Compilation, and a kernel of each kind."""

from __future__ import annotations

from typing import Any

import pytest

import argosy as paddle

F = paddle.nn.functional
KERNELS: dict[str, tuple[Any, tuple[list[int], ...]]] = {
    "map": (lambda x: F.gelu(x) * 2.0 + 1.0, ([256, 1024],)),
    "row": (F.softmax, ([256, 1024],)),
    "column": (lambda x: x.sum(0), ([1024, 256],)),
    "product": (lambda x, w: F.relu(x @ w), ([256, 256], [256, 256])),
    "skinny product": (lambda x, w: x @ w, ([1, 1024], [1024, 1024])),
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1), ([1, 32, 32, 32], [32, 32, 3, 3])),
    "attention": (
        lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
        ([1, 256, 4, 64],),
    ),
    "ordering": (lambda x: paddle.sort(x), ([64, 1024],)),
    "Fourier": (lambda x: paddle.fft.rfft(x).abs(), ([64, 1024],)),
    "update": (lambda x: paddle.scatter(x, paddle.arange(64), x[:64] + 1.0), ([256, 256],)),
    "host call": (lambda x: paddle.linalg.svd(x)[1], ([16, 16],)),
}


@pytest.mark.parametrize("kind", KERNELS)
def test_kernel(benchmark: Any, kind: str) -> None:
    function, shapes = KERNELS[kind]
    operands = [paddle.randn(shape) for shape in shapes]
    compiled = paddle.jit.to_static(paddle.no_grad()(function), full_graph=True)
    compiled(*operands)
    benchmark(lambda: compiled(*operands))


def test_compile_a_step(benchmark: Any) -> None:
    """A network of its own width each round, so that no object is found again."""
    widths = iter(range(33, 1000))

    def fresh() -> tuple[tuple[Any, Any], dict[str, Any]]:
        width = next(widths)
        model = paddle.nn.Sequential(paddle.nn.Linear(16, width), paddle.nn.Tanh(), paddle.nn.Linear(width, 1))
        adam = paddle.optimizer.Adam(1e-3, parameters=model.parameters())

        @paddle.jit.to_static(full_graph=True)
        def step(x: Any) -> Any:
            loss = model(x).square().mean()
            loss.backward()
            adam.step()
            adam.clear_grad()
            return loss

        return (step, paddle.ones([8, 16])), {}

    benchmark.pedantic(lambda step, x: step(x), setup=fresh, rounds=5, warmup_rounds=1)
