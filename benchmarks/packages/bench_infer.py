"""Export, prediction and decoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import argosy as paddle
from argosy.models import GPT, GPTConfig
from argosy_infer import Generator, Predictor


def exported(folder: Path) -> str:
    """A small GPT with open batch and length."""
    paddle.seed(0)
    model = GPT(GPTConfig(vocabulary=256, positions=128, width=64, layers=2, heads=4))
    model.eval()
    path = str(folder / "gpt")
    paddle.jit.save(model, path, input_spec=[paddle.static.InputSpec([None, None], "int64", "tokens")])
    return path


def test_export(benchmark: Any, tmp_path: Path) -> None:
    benchmark.pedantic(lambda: exported(tmp_path), rounds=3, warmup_rounds=1)


def test_predict(benchmark: Any, tmp_path: Path) -> None:
    predictor = Predictor(exported(tmp_path))
    benchmark(lambda: predictor.run(tokens=[list(range(32))]))


def test_decode_32_tokens(benchmark: Any, tmp_path: Path) -> None:
    generator = Generator(exported(tmp_path), capacity=256)
    benchmark.pedantic(lambda: generator.generate([1, 2, 3], max_new_tokens=32), rounds=5, warmup_rounds=1)
