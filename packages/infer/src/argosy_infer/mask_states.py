"""Masks that a program keeps as states (buffers of ``tril``) as what they are: a function of two positions.

A state [1, ..., n, n] all of whose diagonals are constant is computed of iota in the program instead, where its
elements have few different values, so that its slices are told as masks (see :mod:`argosy_infer.masks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir.builder import Builder
from argosy_pir.program import Program
from argosy_pir.values import Value

__all__ = ["compute_mask_states"]

Array = np.ndarray[Any, Any]
_MOST_BANDS = 4


def compute_mask_states(program: Program, states: Mapping[str, Array]) -> None:
    """Let a program of primitives compute the masks among its ``states``, which it must not change; positions beyond
    them are beyond its attribute ``positions_limit`` then."""
    updates = zip(program.states, program.state_updates, strict=True)
    for state in [state for state, update in updates if update is state.argument]:
        users = [user for user in state.argument.users if user is not program.block.last]
        array = states.get(state.name)
        if array is None or not users or {user.name for user in users} != {"prim.slice"}:
            continue
        bands = _bands(array)
        if bands is None:
            continue
        with emit_at(Builder.at_start(program.block)):
            made = _compute_matrix(bands, array)
        for user in users:
            user.set_operand(0, made)
        limits = [n for n in (program.attributes.get("positions_limit"), array.shape[-1]) if isinstance(n, int)]
        program.attributes["positions_limit"] = min(limits)


def _bands(array: Array) -> list[tuple[int, Any]] | None:
    """Where the values of diagonals d = j - i change, and to what; None for other matrices."""
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] < 2 or set(array.shape[:-2]) - {1}:
        return None
    matrix = array.reshape(array.shape[-2:])
    if not np.array_equal(matrix[1:, 1:], matrix[:-1, :-1]):
        return None
    along = np.concatenate([matrix[:0:-1, 0], matrix[0]])  # by d, from 1 - n on
    changes = np.flatnonzero(along[1:] != along[:-1]) + 1
    if not 0 < len(changes) < _MOST_BANDS:
        return None
    return [(int(at) + 1 - len(matrix), along[at]) for at in (0, *changes)]


def _compute_matrix(bands: list[tuple[int, Any]], array: Array) -> Value:
    """The matrix of iota, comparisons and selections."""
    shape, dtype = array.shape, array.dtype.name
    rows, columns = (prim.iota(shape=shape, axis=array.ndim - n, dtype="int64") for n in (2, 1))
    distance = prim.sub(columns, rows)
    made = prim.constant(bands[0][1].item(), dtype, shape)
    for at, value in bands[1:]:
        made = prim.select(prim.ge(distance, at), prim.constant(value.item(), dtype, shape), made)
    return made
