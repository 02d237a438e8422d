"""The names of all functions and methods, for ``dir``, completion and ``import *``."""

from __future__ import annotations

from collections.abc import Iterable

from argosy_phi_ops import extension
from argosy_phi_ops.declare.aliases import ALIASES
from argosy_phi_ops.declare.composition import Composition, find_function
from argosy_phi_ops.declare.index import COMPOSED, MEMBERS, MODULES
from argosy_phi_ops.declare.signature import ATTRIBUTE

__all__ = ["LAYERS", "functions", "layer_functions", "methods"]

LAYERS = frozenset(
    f"nn.{name}"
    for name in (
        "activation", "adaptive_pooling", "attention", "common", "convolution", "loss", "normalization", "pooling",
        "vision",
    )
)  # fmt: skip
"""Modules of operators that are the functions behind layers."""


def functions() -> list[str]:
    """The functions on tensors, by all their names."""
    return _with_inplace(name for name in _known_names() if MODULES.get(ALIASES.get(name, name)) not in LAYERS)


def layer_functions() -> list[str]:
    """The functions behind layers."""
    return _with_inplace(name for name in _known_names() if MODULES.get(ALIASES.get(name, name)) in LAYERS)


def methods() -> list[str]:
    """The methods and attributes that tensors get from operators."""
    return sorted({*filter(_takes_a_tensor, functions()), *MEMBERS, *extension.METHODS})


def _known_names() -> list[str]:
    return [name for name in {*MODULES, *COMPOSED, *ALIASES} if name.isidentifier()]


def _with_inplace(names: Iterable[str]) -> list[str]:
    found = {name: find_function(name) for name in names}
    return sorted({*found, *(f"{name}_" for name, each in found.items() if each is not None and each.inplace)})


def _takes_a_tensor(name: str) -> bool:
    function = find_function(name) or find_function(name.removesuffix("_"))
    if function is None or (isinstance(function, Composition) and function.variadic):
        return False
    parameters = function.signature.parameters
    return bool(parameters) and parameters[0].kind != ATTRIBUTE
