"""Recomputed regions give the gradients of the plain ones, and keep less."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import argosy as paddle
from argosy import nn
from argosy.distributed.fleet.utils import recompute

X = np.random.default_rng(3).standard_normal((6, 5)).astype("float32")


def block() -> Any:
    return nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Dropout(0.4), nn.Linear(16, 5), nn.LayerNorm(5))


def gradients(model: Any, run: Any, seed: int = 11) -> tuple[np.ndarray, list[np.ndarray]]:
    """(the gradient of the input, those of the parameters) of the summed squares of ``run(x)``, drawn from ``seed``."""
    paddle.seed(seed)
    x = paddle.to_tensor(X, stop_gradient=False)
    for p in model.parameters():
        p.clear_gradient(set_to_zero=False)
    (run(x * 1.0) ** 2).sum().backward()
    return x.grad.numpy(), [p.grad.numpy() for p in model.parameters()]


def agree(a: tuple[np.ndarray, list[np.ndarray]], b: tuple[np.ndarray, list[np.ndarray]]) -> None:
    np.testing.assert_array_equal(a[0], b[0])
    for one, other in zip(a[1], b[1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_gradients_are_those_of_the_plain_call() -> None:
    """With dropout within, input and parameters get bit for bit the same gradients, also through nested regions."""
    model = block()
    plain = gradients(model, model)
    agree(gradients(model, lambda x: recompute(model, x)), plain)
    agree(gradients(model, lambda x: recompute(lambda y: recompute(model, y), x, use_reentrant=False)), plain)
    follows = paddle.rand([3]).numpy()
    gradients(model, model)
    np.testing.assert_array_equal(paddle.rand([3]).numpy(), follows)


def test_mixed_precision_is_that_of_the_first_run() -> None:
    """The second run computes in the type of the first, though the block of auto_cast is left."""
    model = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Linear(16, 5))

    def cast(run: Any) -> Any:
        def inside(x: Any) -> Any:
            with paddle.amp.auto_cast(dtype="bfloat16"):
                return run(x).astype("float32")

        return inside

    agree(gradients(model, cast(lambda x: recompute(model, x))), gradients(model, cast(model)))


def test_what_lies_within_is_not_kept() -> None:
    """The activations of a recomputed region are freed after the forward pass; those of a plain one are not."""

    def kept(region: bool) -> bool:
        seen: list[Any] = []

        def f(x: Any) -> Any:
            y = paddle.exp(x)
            seen.append(weakref.ref(y.payload.storage))
            return y * y

        x = paddle.to_tensor(X, stop_gradient=False)
        z = recompute(f, x) if region else f(x)
        gc.collect()
        alive = seen[0]() is not None
        z.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2 * X), rtol=1e-5)
        return alive

    assert kept(False)
    assert not kept(True)


def test_a_graph_that_is_retained_goes_back_twice() -> None:
    """Each pass computes the region again; paddle.grad reaches parameters as well."""
    model = block()
    x = paddle.to_tensor(X, stop_gradient=False)
    loss = (recompute(model, x) ** 2).sum()
    first = paddle.grad(loss, [x, model[0].weight], retain_graph=True)
    second = paddle.grad(loss, [x, model[0].weight])
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("segments", [1, 2, 3, 7])
def test_a_chain_is_cut_into_segments(segments: int) -> None:
    """recompute_sequential gives the gradients of the chain for any number of segments."""
    model = block()
    chained = paddle.distributed.fleet.recompute_sequential
    agree(gradients(model, lambda x: chained({"segments": segments}, model, x)), gradients(model, model))


def test_a_captured_step_takes_the_region_in() -> None:
    """Captured, the region is part of the program."""
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
    eager = gradients(model, model)[1]

    @paddle.jit.to_static(full_graph=True)
    def step(x: Any) -> Any:
        loss = (recompute(model, x) ** 2).sum()
        loss.backward()
        return loss

    for p in model.parameters():
        p.clear_gradient(set_to_zero=False)
    step(paddle.to_tensor(X))
    for p, expected in zip(model.parameters(), eager, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_regions_that_cannot_be_repeated_are_errors() -> None:
    """An argument changed in place, another result the second time, and no function at all are named."""
    x = paddle.to_tensor(X, stop_gradient=False)
    y = x * 1.0
    z = recompute(lambda v: v.exp().exp(), y).sum()
    with paddle.no_grad():
        y.add_(1.0)
    with pytest.raises(RuntimeError, match="changed in place after the call"):
        z.backward()
    calls: list[int] = []

    def other(v: Any) -> Any:
        calls.append(1)
        return v.exp() if len(calls) > 1 else v.exp().exp() * v

    with pytest.raises(RuntimeError, match="when it ran again"):
        recompute(other, x).sum().backward()
    with pytest.raises(TypeError, match="recompute: a function"):
        recompute(3, x)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="segments should be positive"):
        paddle.distributed.fleet.recompute_sequential({"segments": 0}, [], x)


def test_recomputation_has_its_public_address():
    """paddle.incubate.distributed.fleet, where the group of a layer's ranks is asked for."""
    fleet = paddle.incubate.distributed.fleet
    assert fleet.recompute_sequential is paddle.distributed.fleet.recompute_sequential
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    group = paddle.distributed.new_group([0])
    fleet.recompute_hybrid({"mp_group": group, "offload": True}, lambda v: v * v, x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0])
    with pytest.raises(ValueError, match="'mp_group', got none"):
        fleet.recompute_hybrid({}, lambda v: v, x)
