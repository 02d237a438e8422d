"""Tensors as data: wrapping, views, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from argosy_tensorcore.rng import philox_bits
from argosy_tensorcore.safetensors import load_file, save_file
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor


def test_wrap_an_array(benchmark: Any) -> None:
    array = np.ones((8, 8), np.float32)
    benchmark(lambda: Tensor._wrap(StridedArray(array)))


def test_view(benchmark: Any) -> None:
    payload = StridedArray.from_array(np.ones((8, 8), np.float32))
    benchmark(lambda: payload.view((64,), (1,)))


def test_save_and_load_1_mib(benchmark: Any, tmp_path: Path) -> None:
    arrays = {f"w{i}": np.ones((64, 1024), np.float32) for i in range(4)}
    path = tmp_path / "weights.safetensors"

    def both() -> None:
        save_file(arrays, path)
        load_file(path)

    benchmark(both)


def test_random_bits(benchmark: Any) -> None:
    benchmark(lambda: philox_bits(1, 2, (1 << 14,)))
