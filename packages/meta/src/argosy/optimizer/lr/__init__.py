"""Learning-rate schedules: objects that an optimizer takes in place of a number and that the user steps.

A new schedule stands at epoch 0. ``step()`` moves it on and writes the rate where captured steps read it.
"""

from argosy.optimizer.lr.cycles import CosineAnnealingWarmRestarts, CyclicLR, LinearLR, OneCycleLR
from argosy.optimizer.lr.decay import (
    CosineAnnealingDecay,
    ExponentialDecay,
    InverseTimeDecay,
    LambdaDecay,
    MultiplicativeDecay,
    MultiStepDecay,
    NaturalExpDecay,
    NoamDecay,
    PiecewiseDecay,
    PolynomialDecay,
    StepDecay,
)
from argosy.optimizer.lr.plateau import ReduceOnPlateau
from argosy.optimizer.lr.scheduler import LRScheduler
from argosy.optimizer.lr.warmup import LinearWarmup

__all__ = [
    "CosineAnnealingDecay",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LRScheduler",
    "LambdaDecay",
    "LinearLR",
    "LinearWarmup",
    "MultiStepDecay",
    "MultiplicativeDecay",
    "NaturalExpDecay",
    "NoamDecay",
    "OneCycleLR",
    "PiecewiseDecay",
    "PolynomialDecay",
    "ReduceOnPlateau",
    "StepDecay",
]
