"""Operators on decoded sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import DTypeError, ShapeError
from argosy_phi_ops.ops.common.loops import scan
from argosy_phi_ops.primitives.checks import INTEGER
from argosy_tensorcore.tensor import Tensor


@operator()
def gather_tree(ids: Tensor, parents: Tensor) -> Tensor:
    """Whole sequences [time, batch, beams] out of the tokens `ids` of a beam search and the beams they grew from.

    `parents` [time, batch, beams] names for each token the beam it continues; the result follows these names from the
    last step back to the first.
    """
    if ids.ndim != 3 or ids.shape != parents.shape:
        raise ShapeError(f"gather_tree: ids {ids.type} and parents {parents.type} are [time, batch, beams] alike")
    if ids.dtype not in INTEGER or ids.dtype != parents.dtype:
        raise DTypeError(f"gather_tree: ids {ids.type} and parents {parents.type} are integers of one dtype")
    beams = prim.iota(shape=ids.shape[1:], axis=1, dtype=ids.dtype)

    def step(slices: Sequence[Any], carried: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        return [_of_beam(slices[0], carried[0])], [_of_beam(slices[1], carried[0])]

    sequences, _ = scan(step, [ids, parents], [beams], reverse=True)
    result: Tensor = sequences[0]
    return result


def _of_beam(x: Any, beams: Any) -> Any:
    """The elements of x [batch, beams] at `beams` [batch, beams]."""
    return prim.gather(x, prim.reshape(beams, shape=(*beams.shape, 1)), axes=(1,), batch=1)


@gather_tree.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.integers(0, 9, (4, 2, 3)), rng.integers(0, 3, (4, 2, 3)))
