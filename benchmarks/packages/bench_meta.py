"""The whole framework: import, a step eagerly and captured."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import argosy as paddle


def test_import(benchmark: Any) -> None:
    benchmark.pedantic(lambda: subprocess.run([sys.executable, "-c", "import argosy"], check=True), rounds=10)


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])
def test_training_step(benchmark: Any, captured: bool) -> None:
    model = paddle.nn.Sequential(paddle.nn.Linear(64, 64), paddle.nn.GELU(), paddle.nn.Linear(64, 1))
    adam = paddle.optimizer.AdamW(1e-3, parameters=model.parameters())
    x = paddle.randn([32, 64])

    def step(x: Any) -> Any:
        loss = model(x).square().mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if captured else step
    for _ in range(50):
        run(x)
    benchmark(lambda: run(x))
