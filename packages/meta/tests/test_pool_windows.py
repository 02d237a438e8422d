"""Last windows that start in the padding: eager, captured with sizes given or open, and exported."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import argosy as paddle
from argosy.static import InputSpec

SHAPES = {1: [2, 3, 11], 2: [1, 2, 11, 9], 3: [1, 1, 5, 7, 3]}
COUNTS = {1: [2, 3, 7], 2: [1, 2, 7, 6], 3: [1, 1, 4, 5, 3]}
POOLS = [(name, rank, kwargs) for rank in SHAPES for name, kwargs in (("max", {}), ("avg", {"exclusive": False}))]


class Pool(paddle.nn.Layer):
    """Windows of two, side by side, padded by one, rounded up."""

    def __init__(self, name: str, rank: int, kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.function, self.kwargs = getattr(paddle.nn.functional, f"{name}_pool{rank}d"), kwargs

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.function(x, 2, 2, 1, ceil_mode=True, **self.kwargs)


def _result_and_gradient(function: Any, x: Any) -> tuple[np.ndarray, np.ndarray]:
    result = function(x)
    (gradient,) = paddle.grad(result.square().mean(), x)
    return result.numpy(), gradient.numpy()


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize(("name", "rank", "kwargs"), POOLS)
@pytest.mark.parametrize("size", [None, "as given"])
def test_captured_pools_have_the_windows_of_eager_ones(name: str, rank: int, kwargs: Any, size: Any) -> None:
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal(SHAPES[rank]).astype("float32"), stop_gradient=False)
    layer = Pool(name, rank, kwargs)
    expected = _result_and_gradient(layer, x)
    spec = [InputSpec(SHAPES[rank] if size else [None] * (rank + 2), "float32", "x")]
    found = _result_and_gradient(paddle.jit.to_static(layer.forward, full_graph=True, input_spec=spec), x)
    assert list(expected[0].shape) == COUNTS[rank]
    for e, f in zip(expected, found, strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-6)


@pytest.mark.parametrize(("name", "rank", "kwargs"), POOLS)
def test_exported_pools_have_the_windows_of_eager_ones(name: str, rank: int, kwargs: Any, tmp_path: Path) -> None:
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal(SHAPES[rank]).astype("float32"))
    layer = Pool(name, rank, kwargs)
    paddle.jit.save(layer, str(tmp_path / "pool"), input_spec=[InputSpec([None] * (rank + 2), "float32", "x")])
    np.testing.assert_allclose(paddle.jit.load(str(tmp_path / "pool"))(x).numpy(), layer(x).numpy(), rtol=1e-6)


@pytest.mark.parametrize("exclusive", [True, False])
def test_means_of_windows_that_cover_an_open_axis(exclusive: bool) -> None:
    """The padding that does it depends on the size."""

    def pool(x: paddle.Tensor) -> paddle.Tensor:
        return paddle.nn.functional.avg_pool2d(x, [4, 3], [3, 2], "SAME", exclusive=exclusive)

    captured = paddle.jit.to_static(pool, full_graph=True, input_spec=[InputSpec([None] * 4, "float32", "x")])
    for size in ((2, 3), (5, 9), (9, 4)):
        x = paddle.to_tensor(np.random.default_rng(0).standard_normal((1, 2, *size)).astype("float32"))
        np.testing.assert_allclose(captured(x).numpy(), pool(x).numpy(), rtol=1e-5, atol=1e-6)
