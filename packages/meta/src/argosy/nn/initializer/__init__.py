"""Initialisers: callables that fill a parameter in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.nn.initializer.constant import Assign, Constant
from argosy.nn.initializer.initializer import Initializer
from argosy.nn.initializer.random import Normal, TruncatedNormal, Uniform
from argosy.nn.initializer.structure import Bilinear, Dirac, Orthogonal
from argosy.nn.initializer.variance_scaling import (
    KaimingNormal,
    KaimingUniform,
    XavierNormal,
    XavierUniform,
    calculate_gain,
)
from argosy_phi_ops.context import RankState

__all__ = [
    "Assign",
    "Bilinear",
    "Constant",
    "Dirac",
    "Initializer",
    "KaimingNormal",
    "KaimingUniform",
    "Normal",
    "Orthogonal",
    "TruncatedNormal",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
    "calculate_gain",
    "default_for",
    "set_global_initializer",
]

Filler = Callable[..., Any]
_global: RankState[dict[bool, Filler | None]] = RankState("argosy.nn.initializer", dict)


def set_global_initializer(weight_init: Filler | None, bias_init: Filler | None = None) -> None:
    """Initialisers of weights and biases for which a layer has no own default; None puts ours back."""
    _global.value.update({False: weight_init, True: bias_init})


def default_for(is_bias: bool, layer_default: Filler | None) -> Filler:
    """The initialiser of a parameter for which the user gave none."""
    chosen = _global.value.get(bool(is_bias)) or layer_default
    if chosen is not None and not callable(chosen):
        raise TypeError(f"argument 'default_initializer' must be an Initializer, got {chosen!r:.80}")
    if chosen is not None:
        return chosen
    return Constant(0.0) if is_bias else XavierUniform()
