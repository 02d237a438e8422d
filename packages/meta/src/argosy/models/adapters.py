"""Adapters of a model: folders of PEFT whose names are those of transformers' modules or of a family's files.

Shapes: D width of the model, F width of an expert, E experts, R the rank of factors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from argosy import nn
from argosy.models.configuration import ExpertsConfig
from argosy.models.feedforward import Experts, Router
from argosy.models.loading import config_of, family_of
from argosy.models.quantized_layers import QuantizedExperts, QuantizedLinear, expert_matrices, layers_of
from argosy.models.quantized_weights import place_in_file
from argosy.models.weights import PREFIXES
from argosy.nn.layer import Layer
from argosy_infer import Adapter
from argosy_infer import read_adapter as read_factors
from argosy_infer.errors import AdapterError

__all__ = ["read_adapter"]

Array = np.ndarray[Any, Any]
Factors = tuple[Array, Array]


def read_adapter(model: Layer, folder: str | os.PathLike[str]) -> Adapter:
    """The adapter of a PEFT folder for the program of ``model``, which ``load_model`` or ``build`` made: of linear
    layers, also those that files stack, and of experts, one by one or all in one parameter.

    Raises AdapterError as :func:`argosy_infer.read_adapter` does, and naming what the model does not have.
    """
    family = family_of(config_of(model))
    experts = {name: layer for kind in (Experts, QuantizedExperts) for _, _, name, layer in layers_of(model, kind)}
    shapes = {
        f"{name}.{own}": (layer.config.experts, *sizes)
        for name, layer in experts.items()
        for own, sizes in _sizes(layer).items()
    }
    found = _Found(read_factors(folder, experts=shapes).factors)
    factors = dict(_of_linear_layers(model, family, found))
    for name, layer in experts.items():
        factors.update(_of_experts(name, layer, family, found))
    if left := found.left():
        raise AdapterError(f"{os.fspath(folder)} changes {left[0]}, which is no linear layer or expert of the model")
    return Adapter(factors)


class _Found:
    """Factors by the names of a folder, with or without the prefix of the model within a model with a head."""

    def __init__(self, factors: Mapping[str, Factors]) -> None:
        self._factors = {_bare(name): pair for name, pair in factors.items()}
        self._used: set[str] = set()

    def take(self, *names: str) -> Factors | None:
        """The factors of the first name that there is."""
        for name in map(_bare, names):
            if name in self._factors:
                self._used.add(name)
                return self._factors[name]
        return None

    def left(self) -> list[str]:
        """What was not taken."""
        return sorted(self._factors.keys() - self._used)


def _bare(name: str) -> str:
    prefix = next((each for each in PREFIXES if each and name.startswith(each)), "")
    return name.removeprefix(prefix)


def _of_linear_layers(model: Layer, family: ModuleType, found: _Found) -> Iterator[tuple[str, Factors]]:
    kinds = (nn.Linear, QuantizedLinear, Router)
    layers = {name: layer for kind in kinds for _, _, name, layer in layers_of(model, kind)}
    shapes = {name: _shape(layer) for name, layer in layers.items()}
    for name in layers:
        stored, out, columns = place_in_file(name, shapes, family)
        pair = found.take(f"{name}.weight")
        if pair is not None:
            yield f"{name}.weight", pair
        elif (pair := found.take(f"{stored}.weight")) is not None:
            if pair[1].shape[-1] != out:
                raise AdapterError(f"{stored}.weight has {pair[1].shape[-1]} outputs in the adapter; expected {out}")
            yield f"{name}.weight", (pair[0], pair[1][:, columns])


def _shape(layer: Any) -> list[int]:
    """Inputs and outputs."""
    if isinstance(layer, QuantizedLinear):
        return [int(layer.numbers.shape[1]), int(layer.scales.shape[-1])]
    return [int(n) for n in layer.weight.shape]


def _sizes(layer: Any) -> dict[str, tuple[int, int]]:
    """Inputs and outputs of the two parameters of experts."""
    width, own = _width(layer), layer.config.width
    return {"gate_up_proj": (width, 2 * own), "down_proj": (own, width)}


def _width(layer: Any) -> int:
    """The width of the model around experts."""
    return int(layer.width if isinstance(layer, QuantizedExperts) else layer.down_proj.shape[-1])


def _of_experts(name: str, layer: Any, family: ModuleType, found: _Found) -> Iterator[tuple[str, Factors]]:
    config, width = layer.config, _width(layer)
    for own, members in (("gate_up_proj", slice(0, 2)), ("down_proj", slice(2, 3))):
        whole = found.take(f"{name}.{own}")
        if whole is not None:
            if own == "gate_up_proj" and getattr(family, "INTERLEAVED_EXPERTS", False):  # gates and ups alternate
                whole = whole[0], np.concatenate([whole[1][..., 0::2], whole[1][..., 1::2]], -1)
            yield f"{name}.{own}", whole
            continue
        stored = expert_matrices(name, config, width, family)
        plain = expert_matrices(name, config, width, _Plain)  # type: ignore[arg-type]
        pairs = [
            [found.take(f"{a}.weight", f"{b}.weight") for (a, *_), (b, *_) in zip(x[members], y[members], strict=True)]
            for x, y in zip(plain, stored, strict=True)
        ]
        if any(pair is not None for each in pairs for pair in each):
            yield f"{name}.{own}", _join(pairs, _sizes(layer)[own], config, name)


class _Plain:
    """A family whose files have the names of its layers."""


def _join(pairs: list[list[Factors | None]], sizes: tuple[int, int], config: ExpertsConfig, name: str) -> Factors:
    """Factors [E, in, R] and [E, R, out] of matrices side by side, whose own ranks follow each other."""
    rank = max(sum(pair[0].shape[1] for pair in each if pair is not None) for each in pairs)
    first = next(pair for each in pairs for pair in each if pair is not None)
    down = np.zeros((config.experts, sizes[0], rank), first[0].dtype)
    up = np.zeros((config.experts, rank, sizes[1]), first[1].dtype)
    part = sizes[1] // len(pairs[0])
    for expert, each in enumerate(pairs):
        start = 0
        for i, pair in enumerate(each):
            if pair is None:
                continue
            if (pair[0].shape[0], pair[1].shape[1]) != (sizes[0], part):
                raise AdapterError(
                    f"{name}.{expert} is changed as [{pair[0].shape[0]}, {pair[1].shape[1]}]; it is {[sizes[0], part]}"
                )
            stop = start + pair[0].shape[1]
            down[expert, :, start:stop], up[expert, start:stop, part * i : part * (i + 1)] = pair
            start = stop
    return down, up
