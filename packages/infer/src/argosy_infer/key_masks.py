"""Causal masks that hide keys by what inputs say, too (the padding of each sequence): where a query sees keys by their
positions alone, and what is left of the mask there, which varies along keys but not along queries.

A mask is read as a tree of elementwise primitives over bands (see :mod:`argosy_infer.masks`) and over values that do
not vary along queries. In an interval of ``d = j - i`` bands are constants, so that primitives of constants fold, and a
conjunction with False, a selection by a constant and a sum with a number far below all scores do. Where the tree is the
same in all intervals that are seen, it is the mask of keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_infer.masks import COLUMN, HIDDEN, ROW, Axes, Bands, axes_before, causal_window, mask_of
from argosy_phi_ops import prim
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.kernels import kernel_for
from argosy_pir.core import Operation
from argosy_pir.values import OpResult, Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["KeyMask", "key_mask"]

_FOLDS = {"and": False, "or": True}
"""What a boolean operation is, whatever its other operand is, where one is this."""


@dataclass(frozen=True)
class _Number:
    """A constant; ``value`` is a number of Python."""

    value: Any
    dtype: str


@dataclass(frozen=True)
class _Leaf:
    """A value that does not vary along queries, and along which axes of the mask its axes run."""

    value: Value
    axes: Axes


@dataclass(frozen=True)
class _Node:
    op: Operation
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class KeyMask:
    """``window``: how many keys a query sees, as :func:`argosy_infer.masks.causal_window` says; None where positions
    hide none. ``tree``: the mask of keys."""

    window: int | None
    tree: Any

    def emit(self, scores: Value, hides: bool = False) -> Value:
        """The mask [batch, 1, 1, keys] of ``scores`` [batch, (heads,) queries, keys]; ``hides``: it is True, not
        False, where keys are hidden."""
        shape = (scores.shape[0], *(1,) * (scores.ndim - 2), scores.shape[-1])
        made = _emit(self.tree, shape, scores.ndim)
        made = prim.logical_not(made) if hides else made
        return made if made.ndim == 4 else prim.reshape(made, shape=(shape[0], 1, 1, shape[-1]))


def key_mask(value: Value, axes: Axes, hides: bool = False) -> KeyMask | None:
    """What ``value`` hides; None where it is another kind of mask. ``hides``: it is True where keys are hidden."""
    edges: set[int] = set()
    if not _collect_edges(value, axes, edges):
        return None
    ordered = sorted(edges)
    trees = [_tree(value, axes, d) for d in ([ordered[0] - 1, *ordered] if ordered else [0])]
    hidden = [_is_hidden(tree, hides) for tree in trees]
    seen = {tree for tree, is_hidden in zip(trees, hidden, strict=True) if not is_hidden}
    if len(seen) != 1 or isinstance(tree := seen.pop(), _Number):
        return None
    if not any(hidden):
        return KeyMask(None, tree)
    window = causal_window(Bands(tuple(ordered), tuple(np.asarray(not x)[()] for x in hidden)))
    return None if window is None else KeyMask(window, tree)


def _is_hidden(tree: Any, hides: bool) -> bool:
    if not isinstance(tree, _Number):
        return False
    return bool(tree.value) == hides if tree.dtype == "bool" else tree.value <= HIDDEN


def _collect_edges(value: Value, axes: Axes, edges: set[int]) -> bool:
    """Whether a value is such a tree; adds the edges of its bands to ``edges``."""
    found = mask_of(value, axes)
    if isinstance(found, Bands):
        edges |= set(found.edges)
        return True
    if ROW not in axes:
        return True
    if not isinstance(value, OpResult):
        return False
    op, before = value.op, axes_before(value, axes)
    if before is not None:
        return _collect_edges(op.operand(0), before, edges)
    primitive = PRIMITIVES.get(op.kind) if op.dialect == "prim" else None
    elementwise = primitive is not None and primitive.category == "elementwise"
    return elementwise and all(_collect_edges(x, axes, edges) for x in op.operands)


def _tree(value: Value, axes: Axes, d: int) -> Any:
    found = mask_of(value, axes)
    if isinstance(found, Bands):
        return _Number(found.value_at(d).item(), value.dtype)
    if ROW not in axes:
        return _Leaf(value, axes)
    assert isinstance(value, OpResult)
    before = axes_before(value, axes)
    if before is not None:
        return _tree(value.op.operand(0), before, d)
    return _fold(value.op, tuple(_tree(x, axes, d) for x in value.op.operands))


def _fold(op: Operation, parts: tuple[Any, ...]) -> Any:
    numbers = [x for x in parts if isinstance(x, _Number)]
    if op.kind == "select" and isinstance(parts[0], _Number):
        return parts[1 if parts[0].value else 2]
    if len(numbers) == len(parts):
        kept = {k: v for k, v in op.attributes.items() if k in PRIMITIVES[op.kind].attributes}
        made = kernel_for(op.name)(*(np.asarray(x.value, _numpy(x.dtype)) for x in numbers), **kept)
        return _Number(np.asarray(made).item(), op.result.dtype)
    for number in numbers:
        rest = parts[1 - parts.index(number)] if len(parts) == 2 else None
        kind = op.kind.removeprefix("logical_").removeprefix("bitwise_")
        if kind in _FOLDS and number.dtype == "bool":
            return number if number.value is _FOLDS[kind] else rest
        if kind == "add" and number.dtype != "bool" and (number.value <= HIDDEN or number.value == 0):
            return number if number.value else rest
    return _Node(op, parts)


def _numpy(dtype: str) -> Any:
    return as_dtype(dtype).numpy


def _emit(tree: Any, shape: tuple[Any, ...], rank: int) -> Value:
    if isinstance(tree, _Number):
        return prim.constant(tree.value, tree.dtype, shape)
    if isinstance(tree, _Leaf):
        kept = [i for i, axis in enumerate(tree.axes) if axis is not None]
        places = [rank - 1 if tree.axes[i] == COLUMN else int(tree.axes[i] or 0) for i in kept]
        value = prim.reshape(tree.value, shape=tuple(tree.value.shape[i] for i in kept))
        return prim.broadcast(value, shape=shape, axes=tuple(places))  # type: ignore[no-any-return]
    primitive = PRIMITIVES[tree.op.kind]
    attributes = {k: v for k, v in tree.op.attributes.items() if k in primitive.attributes}
    return primitive(*(_emit(x, shape, rank) for x in tree.parts), **attributes)  # type: ignore[no-any-return]
