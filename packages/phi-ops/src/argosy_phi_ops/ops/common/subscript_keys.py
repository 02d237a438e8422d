"""Subscript keys: Python's index as plain data and tensors; see :mod:`argosy_phi_ops.ops.indexing.subscript`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.declare.signature import normalise_attribute
from argosy_phi_ops.errors import AxisError, DTypeError, OperatorError
from argosy_phi_ops.primitives.checks import INTEGER
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

Key = tuple[tuple[Any, ...], ...]

Masks = list[tuple[int, tuple[int, ...]]]
"""For each mask its place in the key, and its shape."""

TAKING = ("int", "slice", "tensor")
"""Entries that stand for an axis each."""

NOTHING = ("nothing",)
"""The entry of a 0-D False, which the methods resolve before they apply an operator."""


def parse(index: Any, shape: Sequence[Any] | None = None) -> tuple[Key, list[Tensor]]:
    """The key of an index and the tensors in it. Raises :class:`AxisError` for masks that are not of the axes of
    ``shape`` that they choose from."""
    if type(index) is int:
        return (("int", index),), []
    parts = index if isinstance(index, tuple) else (index,)
    key: list[tuple[Any, ...]] = []
    tensors: list[Tensor] = []
    masks: Masks = []
    for part in parts:
        _parse_part(part, key, tensors, masks)
    if sum(entry[0] == "all" for entry in key) > 1:
        raise AxisError("an index can hold one ellipsis only")
    for at, mask in masks:
        if shape is not None:
            _check_mask(mask, shape, key, at)
    return tuple(key), tensors


def _check_mask(mask: tuple[int, ...], shape: Sequence[Any], key: Sequence[tuple[Any, ...]], at: int) -> None:
    after = any(entry[0] == "all" for entry in key[:at])
    axes = sum(entry[0] in TAKING for entry in (key[at:] if after else key[:at]))
    first = len(shape) - axes if after else axes
    chosen = tuple(shape[max(first, 0) : first + len(mask)])
    if len(chosen) < len(mask) or any(isinstance(n, int) and n != m for n, m in zip(chosen, mask, strict=True)):
        raise AxisError(
            f"a mask of shape {list(mask)} cannot choose from axes {first} to {first + len(mask) - 1} of a tensor of "
            f"shape {list(shape)}; expected their sizes"
        )


def _parse_part(part: Any, key: list[tuple[Any, ...]], tensors: list[Tensor], masks: Masks) -> None:
    if isinstance(part, slice):
        key.append(("slice", _number(part.start), _number(part.stop), _number(part.step)))
    elif type(part) is Tensor:
        _parse_tensor(part, key, tensors, masks)
    elif part is None:
        key.append(("new",))
    elif part is Ellipsis:
        key.append(("all",))
    elif isinstance(part, (bool, np.bool_)):
        _parse_mask(np.asarray(part), key, tensors, masks)
    elif isinstance(part, int) or hasattr(part, "evaluate"):
        key.append(("int", part))
    elif isinstance(part, (list, tuple, range, np.ndarray, np.generic)):
        array = np.asarray(part) if len(np.shape(part)) == 0 or len(part) else np.zeros(0, np.int64)
        if array.ndim == 0 and array.dtype.kind in "iu":
            key.append(("int", int(array)))
        elif array.dtype.kind == "b":
            _parse_mask(array, key, tensors, masks)
        elif array.dtype.kind not in "iufc":
            raise _refusal(part)
        else:
            _parse_tensor(Tensor(array), key, tensors, masks)
    else:
        raise _refusal(part)


def _refusal(part: Any) -> OperatorError:
    return OperatorError(
        f"a tensor cannot be indexed by {type(part).__name__} {part!r:.60}; expected integers, slices, None, an "
        "ellipsis, masks, and arrays or tensors of integers"
    )


def _parse_tensor(x: Tensor, key: list[tuple[Any, ...]], tensors: list[Tensor], masks: Masks) -> None:
    name = x.payload.dtype.name
    if name == "bool":
        for layer in context().layers if AMBIENT.word else ():
            layer.reads(x)
        _parse_mask(x.numpy(), key, tensors, masks)
    elif name not in INTEGER:
        raise DTypeError(f"a tensor of dtype {name} cannot be an index; expected integers or booleans")
    else:
        key.append(("tensor",))
        tensors.append(x)


def _parse_mask(mask: Array, key: list[tuple[Any, ...]], tensors: list[Tensor], masks: Masks) -> None:
    """A mask is the positions where it holds, one index tensor for each of its axes; a 0-D one makes a new axis, of one
    element or of none."""
    if mask.ndim == 0:
        key.append(("new",) if mask else NOTHING)
        return
    masks.append((len(key), mask.shape))
    for positions in mask.nonzero():
        key.append(("tensor",))
        tensors.append(Tensor._wrap(StridedArray(np.ascontiguousarray(positions))))


def _number(value: Any) -> Any:
    if value is None or type(value) is int or isinstance(value, int) or hasattr(value, "evaluate"):
        return value
    if isinstance(value, Tensor):
        return normalise_attribute((value,))[0]
    if not hasattr(value, "__index__"):
        raise OperatorError(f"a slice goes between integers, got {type(value).__name__} {value!r:.60}")
    return value.__index__()
