"""One SGD step of ResNet-18 with softmax cross-entropy on a batch of 8 images of 224 x 224 (``--case 64``: of 64 x 64),
float32, batch norms with their running statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from timing import arguments, run

BATCH, CLASSES, RATE, EPSILON, KEPT = 8, 1000, 0.01, 1e-5, 0.9
#: (channels, stride of the first block) of the four stages, of two blocks each.
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))


def weights() -> list[Any]:
    """Initial parameters, in the order in which a step uses them: a convolution, then its norm's factors and shifts."""
    rng = np.random.default_rng(0)
    made: list[Any] = []

    def add(filters: int, channels: int, window: int) -> None:
        spread = math.sqrt(2 / (channels * window**2))
        made.append((rng.standard_normal((filters, channels, window, window)) * spread).astype(np.float32))
        made.extend((np.ones(filters, np.float32), np.zeros(filters, np.float32)))

    add(64, 3, 7)
    before = 64
    for channels, stride in STAGES:
        for block in range(2):
            add(channels, before, 3)
            add(channels, channels, 3)
            if block == 0 and (stride > 1 or before != channels):
                add(channels, before, 1)
            before = channels
    made.append((rng.standard_normal((before, CLASSES)) / math.sqrt(before)).astype(np.float32))
    return [*made, np.zeros(CLASSES, np.float32)]


def batch(size: int) -> tuple[Any, Any]:
    """Images and their classes."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((BATCH, 3, size, size), dtype=np.float32), rng.integers(0, CLASSES, BATCH)


def network(x: Any, parameters: Iterator[Any], apply: Any) -> Any:
    """The network in any framework: ``apply`` has its convolutions with their norms (``unit``), and the rest."""
    take = lambda: (next(parameters), next(parameters), next(parameters))  # noqa: E731
    x = apply.pool(apply.relu(apply.unit(x, take(), 2)))
    before = 64
    for channels, stride in STAGES:
        for step in (stride, 1):
            y = apply.unit(apply.relu(apply.unit(x, take(), step)), take(), 1)
            shorter = step > 1 or before != channels
            x = apply.relu(y + (apply.unit(x, take(), step) if shorter else x))
            before = channels
    return apply.dense(x, next(parameters), next(parameters))


def argosy_step(size: int, compiled: bool) -> Callable[[], Any]:
    import argosy as paddle

    model = paddle.vision.models.resnet18(num_classes=CLASSES)
    trained = [p for p in model.parameters() if not p.stop_gradient]  # the others are running statistics
    for parameter, value in zip(trained, weights(), strict=True):
        parameter.set_value(value)
    x, y = map(paddle.to_tensor, batch(size))
    optimizer = paddle.optimizer.SGD(RATE, parameters=model.parameters())

    def step(x: Any, y: Any) -> Any:
        loss = paddle.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    whole = paddle.jit.to_static(step, full_graph=True) if compiled else step
    return lambda: whole(x, y)


def torch_step(size: int, channels_last: bool, compiled: bool = False) -> Callable[[], Any]:
    import torch

    F = torch.nn.functional
    layout = torch.channels_last if channels_last else torch.contiguous_format
    parameters = [torch.from_numpy(p.T.copy() if p.ndim == 2 else p) for p in weights()]
    parameters = [(p.to(memory_format=layout) if p.ndim == 4 else p).requires_grad_() for p in parameters]
    statistics = [(torch.zeros(len(p)), torch.ones(len(p))) for p in parameters if p.ndim == 4]
    x, y = map(torch.from_numpy, batch(size))
    x = x.to(memory_format=layout)
    optimizer = torch.optim.SGD(parameters, lr=RATE, fused=True)

    class Apply:
        relu = staticmethod(F.relu)

        def __init__(self) -> None:
            self.statistics = iter(statistics)

        def unit(self, x: Any, p: Any, stride: int) -> Any:
            x = F.conv2d(x, p[0], stride=stride, padding=p[0].shape[-1] // 2)
            return F.batch_norm(x, *next(self.statistics), p[1], p[2], True, 1 - KEPT, EPSILON)

        def pool(self, x: Any) -> Any:
            return F.max_pool2d(x, 3, 2, 1)

        def dense(self, x: Any, w: Any, b: Any) -> Any:
            return F.linear(x.mean((2, 3)), w, b)

    def loss_fn(x: Any, y: Any) -> Any:
        return F.cross_entropy(network(x, iter(parameters), Apply()), y)

    loss_of = torch.compile(loss_fn, dynamic=False) if compiled else loss_fn

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def jax_step(size: int) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    class Apply:
        relu = staticmethod(jax.nn.relu)

        def __init__(self, statistics: Any) -> None:
            self.statistics = iter(statistics)
            self.updated: list[Any] = []

        def unit(self, x: Any, p: Any, stride: int) -> Any:
            w, gamma, beta = p
            low = w.shape[-1] // 2
            x = jax.lax.conv_general_dilated(x, w, (stride, stride), [(low, low)] * 2)
            mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
            old = next(self.statistics)
            self.updated.append(tuple(KEPT * o + (1 - KEPT) * n for o, n in zip(old, (mean, variance), strict=True)))
            wide = lambda v: v[None, :, None, None]  # noqa: E731
            return (x - wide(mean)) * wide(gamma * jax.lax.rsqrt(variance + EPSILON)) + wide(beta)

        def pool(self, x: Any) -> Any:
            around = ((0, 0), (0, 0), (1, 1), (1, 1))
            return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), around)

        def dense(self, x: Any, w: Any, b: Any) -> Any:
            return x.mean((2, 3)) @ w + b

    images, classes = batch(size)
    x, y = jnp.asarray(images), jnp.asarray(classes, jnp.int32)

    def loss(parameters: Any, statistics: Any, x: Any, y: Any) -> Any:
        apply = Apply(statistics)
        logits = network(x, iter(parameters), apply)
        at = jnp.take_along_axis(logits, y[:, None], -1)[:, 0]
        return (jax.nn.logsumexp(logits, -1) - at).mean(), apply.updated

    def update(parameters: Any, statistics: Any, x: Any, y: Any) -> Any:
        (value, updated), gradients = jax.value_and_grad(loss, has_aux=True)(parameters, statistics, x, y)
        return [p - RATE * g for p, g in zip(parameters, gradients, strict=True)], updated, value

    jitted = jax.jit(update, donate_argnums=(0, 1))
    parameters = [jnp.asarray(p) for p in weights()]
    state = [parameters, [(jnp.zeros(len(p)), jnp.ones(len(p))) for p in parameters if p.ndim == 4]]

    def step() -> Any:
        *state[:], value = jitted(*state, x, y)
        jax.block_until_ready(state)
        return value

    return step


if __name__ == "__main__":
    frameworks = ("argosy", "argosy-eager", "torch", "torch-last", "torch-compile", "jax")
    options = arguments(__doc__ or "", frameworks, ("224", "64"))
    makers = {
        "argosy": lambda size: argosy_step(size, True),
        "argosy-eager": lambda size: argosy_step(size, False),
        "torch": lambda size: torch_step(size, False),
        "torch-last": lambda size: torch_step(size, True),
        "torch-compile": lambda size: torch_step(size, False, True),
        "jax": jax_step,
    }
    run(options, "resnet_step", makers[options.framework](int(options.case)))
