"""State dictionaries as flat ones: nested keys joined with dots; layers, optimizers and random generators stand for
their states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from argosy.nn.layer import Layer
from argosy.optimizer.optimizer import Optimizer
from argosy_phi_ops.context import context
from argosy_tensorcore.rng import Generator
from argosy_tensorcore.safetensors import CheckpointError
from argosy_tensorcore.tensor import Tensor

__all__ = ["GENERATOR", "FlatState", "flatten_state", "is_array", "nest_state"]

_DEPTH = 32
GENERATOR = "random_generator"
"""The key of the generator that is saved with an optimizer."""


class FlatState(NamedTuple):
    """A state dictionary without nests: ``leaves`` by key, the ``paths`` that lead to them, the dictionaries
    (``homes``) that they are in, the nests that have no leaves (``bare``), and the random generators by the keys that
    lead to them.
    """

    leaves: dict[str, Any]
    paths: dict[str, list[str]]
    homes: dict[str, Any]
    owners: list[tuple[Any, dict[str, Any]]]
    bare: list[str]
    generators: list[tuple[list[str], Generator]]


def is_array(x: object) -> bool:
    """Whether ``x`` holds numbers that go into files of their own."""
    return isinstance(x, (Tensor, np.ndarray))


def flatten_state(state: Any, name: str) -> FlatState:
    """``state`` without nests; ``name`` is the function that errors name.

    Layers and optimizers become their state dictionaries; ``owners`` lists them with these. With an optimizer the
    rank's own generator is taken as ``random_generator``, unless that is there. Raises TypeError for what
    is no dictionary with string keys and for leaves that are neither tensors nor plain values, ValueError for keys
    that are the same once they are joined.
    """
    if not isinstance(state, dict):
        raise TypeError(f"{name} takes a dictionary of tensors, got {type(state).__name__}")
    made = FlatState({}, {}, {}, [], [], [])
    _walk(state, [], made, name)
    if GENERATOR not in state and any(isinstance(owner, Optimizer) for owner, _ in made.owners):
        made.generators.append(([GENERATOR], context().generator))
    return made


def _walk(state: dict[str, Any], path: list[str], made: FlatState, name: str) -> None:
    if not state and path:
        made.bare.append(".".join(path))
    if len(path) > _DEPTH:
        raise ValueError(f"{name}: dictionaries are nested more than {_DEPTH} deep at {'.'.join(path[:3])!r}")
    for key, value in state.items():
        if not isinstance(key, str):
            raise TypeError(f"{name}: keys are strings; at {'.'.join(path) or 'the top'!r} there is {key!r}")
        inner = _states_of(value, made)
        if isinstance(value, Generator):
            made.generators.append(([*path, key], value))
        elif isinstance(inner, Mapping):
            _walk(dict(inner) if not isinstance(inner, dict) else inner, [*path, key], made, name)
        else:
            _leaf(state, key, [*path, key], made, name)


def _states_of(value: Any, made: FlatState) -> Any:
    """The state dictionary of a layer or an optimizer; other values as they are."""
    if not isinstance(value, (Layer, Optimizer)):
        return value
    if isinstance(value, Optimizer):
        value.make_states()
    states = value.state_dict()
    made.owners.append((value, states))
    return states


def _leaf(home: dict[str, Any], key: str, path: list[str], made: FlatState, name: str) -> None:
    flat, value = ".".join(path), home[key]
    if flat in made.leaves:
        raise ValueError(f"{name}: {made.paths[flat]} and {path} have the same name {flat!r} in the checkpoint")
    if not is_array(value) and not _is_plain(value):
        raise TypeError(
            f"{name}: {flat!r} is {type(value).__name__}; tensors, arrays, numbers, strings, booleans, None and lists "
            "of these are wanted"
        )
    made.leaves[flat], made.paths[flat], made.homes[flat] = value, path, home


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def nest_state(leaves: Mapping[str, Any], paths: Mapping[str, list[str]]) -> dict[str, Any]:
    """The nested dictionary that was flattened to ``leaves``. Raises CheckpointError for a leaf that others are in."""
    made: dict[str, Any] = {}
    for key, value in leaves.items():
        *folders, last = paths.get(key) or [key]
        place = made
        for folder in folders:
            place = place.setdefault(folder, {})
            if not isinstance(place, dict):
                raise CheckpointError(f"the checkpoint's metadata puts {key!r} into {folder!r}, which is no dictionary")
        place[last] = value
    return made
