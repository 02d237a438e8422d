"""The table of ONNX operators: for each name and version, the function that computes it.

A function's positional parameters are the node's inputs in order (an optional one has the default None, ``*xs`` takes
the rest), its keyword parameters the attributes. A parameter annotated ``Values`` gets an array that is known when the
program is made, as sizes and axes have to be; of one annotated ``Like`` only the type is read. What older versions take
as an attribute and newer ones as an input of the same name is one parameter. ``node`` is the :class:`Node` itself, for
those who ask.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Like", "Operator", "Values", "find_operator", "onnx_operator", "operator_names"]

Values: TypeAlias = np.ndarray[Any, Any]
"""Of an input: its elements, when the program is made (numbers, or sizes that are symbols)."""
Like: TypeAlias = Any
"""Of an input: a tensor of which only the type is read."""

_THEMES = (
    "arithmetic", "activation", "comparison", "reduction", "shape", "indexing", "creation", "linear", "convolution",
    "pooling", "normalization", "attention", "recurrent", "quantization", "resize", "sampling", "signal", "loss",
    "random", "text", "control",
)  # fmt: skip
_TABLE: dict[tuple[str, str], list[Operator]] = {}
_LOADED: list[str] = []


@dataclass(frozen=True)
class Operator:
    """One version of an ONNX operator. ``folds``: whether it may be computed when the program is made, where its inputs
    are known."""

    name: str
    since: int
    function: Callable[..., Any]
    folds: bool
    inputs: tuple[str, ...]
    known: frozenset[str]
    typed: frozenset[str]
    variadic: str | None
    attributes: frozenset[str]
    takes_all: bool

    def input_name(self, position: int) -> str | None:
        """The parameter that input ``position`` is; None where there is none."""
        return self.inputs[position] if position < len(self.inputs) else self.variadic

    def may_fold(self, known: Sequence[bool]) -> bool:
        """Whether it may be computed when the program is made, where these inputs are known then."""
        return self.folds and all(each or self.input_name(i) in self.typed for i, each in enumerate(known))

    def needs_value(self, position: int) -> bool:
        """Whether input ``position`` has to be known when the program is made."""
        return self.input_name(position) in self.known


def onnx_operator(
    *names: str, since: int = 1, domain: str = "", folds: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function as the operators ``names`` from version ``since`` of ``domain``'s operator set on."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _TABLE.setdefault((domain, name), []).append(_describe(name, since, function, folds))
        return function

    return declare


def _describe(name: str, since: int, function: Callable[..., Any], folds: bool) -> Operator:
    parameters = inspect.signature(function).parameters.values()
    inputs = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
    known = frozenset(p.name for p in parameters if str(p.annotation).startswith("Values"))
    typed = frozenset(p.name for p in parameters if p.annotation == "Like")
    variadic = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    attributes = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return Operator(name, since, function, folds, inputs, known, typed, variadic, attributes, takes_all)


def find_operator(domain: str, name: str, version: int) -> Operator | None:
    """The operator as of ``version`` of the operator set ``domain``; None where there is none."""
    _load()
    found = [op for op in _TABLE.get((domain, name), ()) if op.since <= version]
    return max(found, key=lambda op: op.since, default=None)


def operator_names(domain: str = "") -> list[str]:
    """The operators of ``domain`` that are implemented."""
    _load()
    return sorted(name for at, name in _TABLE if at == domain)


def _load() -> None:
    for theme in _THEMES[len(_LOADED) :]:
        import_module(f"argosy_infer.onnx.operators.{theme}")
        _LOADED.append(theme)
