"""``argosy run-check``: does this installation compute right?

A small network is trained for a few steps eagerly and with the whole step compiled; the losses must agree, the
gradients must equal finite differences, and the step must have been compiled once.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import argosy as paddle
from argosy import nn
from argosy.cli.report import versions
from argosy.jit.lowering import choose_compiler

__all__ = ["run_check"]

_STEPS = 5
_AGREEMENT = 1e-4  # relative, in float32


def run_check(backend: str) -> int:
    """Print what was checked; returns 0 when everything holds, else 1."""
    for name, version in versions().items():
        if version is not None:
            _say(f"  {name} {version}")
    _say(f"  compiler: {choose_compiler(backend)}")
    checks = {
        "eager training lowers the loss": _losses_fall,
        "gradients equal finite differences": _check_gradients,
        "compiled training equals eager training": lambda: _compiled_agrees(backend),
    }
    failed = 0
    for title, check in checks.items():
        start = time.perf_counter()
        problem = check()  # type: ignore[no-untyped-call]
        failed += problem is not None
        seconds = time.perf_counter() - start
        verdict = "ok" if problem is None else "FAILED"
        _say(f"[{verdict}] {title} ({seconds:.2f} s){f': {problem}' if problem else ''}")
    _say("argosy is installed and works." if not failed else f"{failed} checks failed.")
    return int(bool(failed))


def _make() -> tuple[Any, Any, Any, Any]:
    paddle.seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = paddle.optimizer.AdamW(0.05, parameters=model.parameters())
    x = np.random.default_rng(0).standard_normal((32, 8)).astype(np.float32)
    return model, optimizer, paddle.to_tensor(x), paddle.to_tensor(x.sum(1, keepdims=True))


def _train(backend: str | None) -> tuple[list[float], int]:
    model, optimizer, x, y = _make()

    def step(x: Any, y: Any) -> Any:
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    run = step if backend is None else paddle.jit.to_static(step, full_graph=True, backend=backend)
    with paddle.jit.count_compiles() as compiles:
        losses = [float(run(x, y)) for _ in range(_STEPS)]
    return losses, compiles.value


def _losses_fall() -> str | None:
    losses, _ = _train(None)
    return None if losses[-1] < losses[0] else f"losses {losses}"


def _compiled_agrees(backend: str) -> str | None:
    eager, _ = _train(None)
    compiled, compiles = _train(backend)
    worst = max(abs(a - b) / abs(a) for a, b in zip(eager, compiled, strict=True))
    if worst > _AGREEMENT:
        return f"losses differ by {worst:.1e}: {eager} eagerly, {compiled} compiled"
    return None if compiles == 1 else f"the step was compiled {compiles} times"


def _check_gradients() -> str | None:
    weights = np.random.default_rng(1).standard_normal((3, 4))
    x: Any = paddle.to_tensor(np.random.default_rng(2).standard_normal(3), stop_gradient=False)
    ((x @ paddle.to_tensor(weights)).tanh() ** 2).sum().backward()

    def f(values: Any) -> float:
        return float((np.tanh(values @ weights) ** 2).sum())

    at, h = x.numpy(), 1e-6
    expected = [(f(at + h * e) - f(at - h * e)) / (2 * h) for e in np.eye(3)]
    found = x.grad.numpy()
    return None if np.allclose(found, expected, rtol=1e-6, atol=1e-8) else f"{found} against {expected}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
