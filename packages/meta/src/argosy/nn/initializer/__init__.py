"""Initialisers: callables that fill a parameter in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.nn.initializer.constant import Assign, Constant
from argosy.nn.initializer.initializer import Initializer
from argosy.nn.initializer.random import Normal, TruncatedNormal, Uniform
from argosy.nn.initializer.scaled import KaimingNormal, KaimingUniform, XavierNormal, XavierUniform, calculate_gain
from argosy.nn.initializer.structured import Bilinear, Dirac, Orthogonal

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
_global: dict[bool, Filler | None] = {False: None, True: None}


def set_global_initializer(weight_init: Filler | None, bias_init: Filler | None = None) -> None:
    """Initialisers of weights and biases for which a layer has no own default; None puts ours back."""
    _global[False], _global[True] = weight_init, bias_init


def default_for(is_bias: bool, layer_default: Filler | None) -> Filler:
    """The initialiser of a parameter for which the user gave none."""
    if _global[is_bias] is not None:
        return _global[is_bias]  # type: ignore[return-value]
    if layer_default is not None:
        return layer_default
    return Constant(0.0) if is_bias else XavierUniform()
