"""Optimizers, gradient clipping and learning-rate schedules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parity.case import Case, optimizer, schedule, state

OPTIMIZERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("SGD", {}), ("SGD", {"weight_decay": 0.1}),
    ("Momentum", {}), ("Momentum", {"momentum": 0.8, "use_nesterov": True}), ("Momentum", {"weight_decay": 0.1}),
    ("Adam", {}), ("Adam", {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-4}), ("Adam", {"weight_decay": 0.1}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {}), ("AdamW", {"weight_decay": 0.2}), ("AdamW", {"beta1": 0.8, "beta2": 0.9}),
    ("AdamW", {"amsgrad": True}),
    ("Adamax", {}), ("Adagrad", {}), ("Adagrad", {"initial_accumulator_value": 0.1}), ("Adadelta", {}), ("RMSProp", {}),
    ("RMSProp", {"centered": True, "momentum": 0.9}), ("Lamb", {}), ("NAdam", {}), ("RAdam", {}),
    ("ASGD", {}), ("ASGD", {"batch_num": 3}), ("Rprop", {}), ("Lamb", {"lamb_weight_decay": 0.0}),
    ("RAdam", {"beta2": 0.5}), ("NAdam", {"weight_decay": 0.1}),
)  # fmt: skip
CLIPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("nn.ClipGradByGlobalNorm", {"clip_norm": 1.0}), ("nn.ClipGradByGlobalNorm", {"clip_norm": 100.0}),
    ("nn.ClipGradByNorm", {"clip_norm": 1.0}), ("nn.ClipGradByValue", {"max": 0.3}),
    ("nn.ClipGradByValue", {"max": 0.3, "min": -0.1}),
)  # fmt: skip


def cases() -> Iterator[Case]:
    for name, kwargs in OPTIMIZERS:
        yield optimizer(f"optimizer.{name}", learning_rate=0.1, **kwargs)
    for target, kwargs in CLIPS:
        for name in ("SGD", "AdamW"):
            yield optimizer(f"optimizer.{name}", learning_rate=0.1, grad_clip=("make", target, kwargs))
    decay = ("make", "optimizer.lr.StepDecay", {"learning_rate": 0.1, "step_size": 2})
    yield optimizer("optimizer.SGD", learning_rate=decay)
    for name, kwargs in OPTIMIZERS:
        yield state(f"optimizer.{name}", learning_rate=0.1, **kwargs)
    yield state("optimizer.Adam", learning_rate=decay)
    yield from _schedules()


def _schedules() -> Iterator[Case]:
    lr = "optimizer.lr."
    yield schedule(lr + "NoamDecay", 64, 5, learning_rate=2.0)
    yield schedule(lr + "NoamDecay", d_model=16, warmup_steps=3)
    yield schedule(lr + "PiecewiseDecay", boundaries=[3, 6], values=[0.1, 0.05, 0.01])
    for name in ("NaturalExpDecay", "InverseTimeDecay", "ExponentialDecay"):
        yield schedule(lr + name, learning_rate=0.5, gamma=0.7)
    yield schedule(lr + "PolynomialDecay", learning_rate=0.5, decay_steps=5)
    yield schedule(lr + "PolynomialDecay", learning_rate=0.5, decay_steps=5, power=2.0, cycle=True, end_lr=0.01)
    yield schedule(lr + "StepDecay", learning_rate=0.5, step_size=3, gamma=0.5)
    yield schedule(lr + "MultiStepDecay", learning_rate=0.5, milestones=[2, 5, 9], gamma=0.3)
    yield schedule(lr + "CosineAnnealingDecay", learning_rate=0.5, T_max=5)
    yield schedule(lr + "CosineAnnealingDecay", learning_rate=0.5, T_max=6, eta_min=0.1)
    yield schedule(lr + "CosineAnnealingWarmRestarts", learning_rate=0.5, T_0=3, T_mult=2)
    yield schedule(lr + "LinearWarmup", learning_rate=0.5, warmup_steps=4, start_lr=0.0, end_lr=0.5)
    inner = ("make", lr + "ExponentialDecay", {"learning_rate": 0.5, "gamma": 0.8})
    yield schedule(lr + "LinearWarmup", learning_rate=inner, warmup_steps=4, start_lr=0.1, end_lr=0.5)
    yield schedule(lr + "ReduceOnPlateau", learning_rate=0.5, factor=0.5, patience=1)
    yield schedule(lr + "ReduceOnPlateau", learning_rate=0.5, mode="max", factor=0.5, patience=2, cooldown=1)
    yield schedule(lr + "OneCycleLR", max_learning_rate=1.0, total_steps=20)
    yield schedule(lr + "CyclicLR", base_learning_rate=0.1, max_learning_rate=0.5, step_size_up=3)
    yield schedule(lr + "LinearLR", learning_rate=0.5, total_steps=5)
    yield schedule(lr + "LinearLR", learning_rate=0.5, total_steps=4, start_factor=0.5, end_factor=0.2)
    yield schedule(lr + "OneCycleLR", max_learning_rate=1.0, total_steps=10, three_phase=True, anneal_strategy="linear")
    yield schedule(lr + "CyclicLR", 0.1, 0.5, 3, 2, "triangular2")
    yield schedule(lr + "CyclicLR", 0.1, 0.5, 3, mode="exp_range", exp_gamma=0.9)
