"""Optimizers that keep averages of weights, or others beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _trained(paddle: Any, wrap: Callable[[Any, Any], Callable[[], Any]]) -> list[Any]:
    """What ``wrap(optimizer, weight)`` gives after each of some steps on a weight."""
    weight = paddle.create_parameter([2, 3], "float32", default_initializer=paddle.nn.initializer.Constant(0.3))
    look = wrap(paddle.optimizer.Momentum(0.1, parameters=[weight]), weight)
    rng = np.random.RandomState(0)
    found = []
    for _ in range(11):
        x = paddle.to_tensor(rng.randn(3, 4).astype("float32"))
        ((paddle.matmul(weight, x) - 1.0) ** 2).mean().backward()
        found += look()
        weight.clear_gradient()
    return found


def lookahead(paddle: Any, alpha: float, k: int) -> Any:
    """The weights after each step."""

    def wrap(inner: Any, weight: Any) -> Callable[[], Any]:
        outer = paddle.incubate.LookAhead(inner, alpha=alpha, k=k)
        return lambda: (outer.step(), [weight.detach().clone()])[1]

    return _trained(paddle, wrap)


def model_average(paddle: Any, rate: float, least: int, most: int) -> Any:
    """The average after each step, and the weights that are put back."""

    def wrap(inner: Any, weight: Any) -> Callable[[], Any]:
        average = paddle.incubate.ModelAverage(rate, [weight], least, most)

        def look() -> list[Any]:
            inner.step()
            average.step()
            with average.apply():
                found = weight.detach().clone()
            return [found, weight.detach().clone()]

        return look

    return _trained(paddle, wrap)
