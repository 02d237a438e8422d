"""Dispatch and capture of operators."""

from __future__ import annotations

from typing import Any

import pytest

import argosy as paddle


@pytest.mark.parametrize("name", ["add", "matmul", "softmax", "reshape", "concat", "sum"])
def test_dispatch(benchmark: Any, name: str) -> None:
    x = paddle.ones([8, 8])
    call = {
        "add": lambda: x + x, "matmul": lambda: x @ x, "softmax": lambda: paddle.nn.functional.softmax(x),
        "reshape": lambda: x.reshape([64]), "concat": lambda: paddle.concat([x, x]), "sum": lambda: x.sum(),
    }[name]  # fmt: skip
    for _ in range(200):  # whatever becomes fast with use has become so
        call()
    benchmark(call)


def test_first_application(benchmark: Any) -> None:
    """Of operand types that were never seen: each round has a shape of its own."""
    shapes = iter(range(1, 1 << 20))
    benchmark.pedantic(lambda x: x + x, setup=lambda: ((paddle.ones([next(shapes)]),), {}), rounds=200)


def test_capture_100_operators(benchmark: Any) -> None:
    """The program as it is captured, before any pass."""

    def record() -> None:
        with paddle.static.program_guard(paddle.static.Program()):
            y = paddle.static.data("x", [8], "float32")
            for _ in range(50):
                y = (y + 1.0) * 0.5

    benchmark.pedantic(record, rounds=20, warmup_rounds=1)
