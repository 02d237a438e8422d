"""The states of random generators in a checkpoint: a plain value [seed, counter] for each rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.distributed.checkpoint.metadata import Metadata
from argosy.distributed.checkpoint.nesting import GENERATOR, FlatState
from argosy_phi_ops.context import context
from argosy_tensorcore.rng import Generator
from argosy_tensorcore.safetensors import CheckpointError
from argosy_tensorcore.tensor import Tensor

__all__ = ["find_states", "generator_values"]


def generator_values(flat: FlatState) -> tuple[dict[str, list[int]], dict[str, list[str]]]:
    """The states of this rank's generators, by key, and the paths of the keys."""
    values, paths = {}, {}
    for path, generator in flat.generators:
        own = [*path, f"rank{context().rank}"]
        values[".".join(own)], paths[".".join(own)] = [generator.seed, generator.offset], own
    return values, paths


def find_states(flat: FlatState, metadata: Metadata, where: str) -> list[tuple[Generator, Tensor]]:
    """The generators with the states that the checkpoint has for this rank, or for the first where there were fewer.

    A checkpoint that was written without generators changes none, unless one is asked for: that is a ValueError.
    Raises CheckpointError for what is no state.
    """
    found = []
    for path, generator in flat.generators:
        key = ".".join(path)
        value = metadata.values.get(f"{key}.rank{context().rank}", metadata.values.get(f"{key}.rank0"))
        if value is not None:
            found.append((generator, _state(value, f"{where}: {key}")))
        elif path != [GENERATOR]:
            raise ValueError(f"{where} lacks the state of the generator {key!r}")
    return found


def _state(value: Any, where: str) -> Tensor:
    if not isinstance(value, list) or len(value) != 2 or not all(type(n) is int and 0 <= n < 1 << 64 for n in value):
        raise CheckpointError(f"{where} is {value!r:.60}; the state of a generator is [seed, counter]")
    return Tensor(np.array(value, np.uint64))
