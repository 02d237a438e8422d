"""The subscript methods of ``Tensor``: ``x[index]``, ``x[index] = value``, ``item in x``."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.declare.operator import NO_KEYWORDS, get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_phi_ops.eager.placement import accelerator_of
from argosy_phi_ops.ops.common.subscript_keys import NOTHING, TAKING, Key, parse
from argosy_phi_ops.ops.indexing.assignment import put, setitem
from argosy_phi_ops.ops.indexing.subscript import getitem
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

# The methods of Tensor


def getitem_method(self: Tensor, index: Any) -> Tensor:
    """``x[index]``."""
    if _is_mask(index) and _reads_directly(self, index):
        return Tensor._wrap(StridedArray(self.payload.ndarray[index.payload.ndarray]))
    if _is_mask(index) and (tracer := _tracer_of(index)) is not None:
        made: Tensor | None = tracer.selection(self, index)
        if made is not None:
            return made
    unsized = self.payload.is_traced and self.payload.selected
    key, tensors = parse(index, None if unsized else self.payload.shape)
    if NOTHING not in key:
        return getitem.applications.call(getitem, (self, tensors, key), NO_KEYWORDS, ((self, index), NO_KEYWORDS))
    while NOTHING in key:
        self, key = _without_elements(self, key)
    return getitem(self, tensors, key)


def _without_elements(x: Tensor, key: Key) -> tuple[Tensor, Key]:
    """`x` with an axis for the first 0-D False of the key, which becomes an empty slice of it."""
    at = key.index(NOTHING)
    used = [sum(entry[0] in TAKING for entry in part) for part in (key[:at], key)]
    place = used[0] + (x.ndim - used[1] if ("all",) in key[:at] else 0)
    return get_operator("unsqueeze")(x, place), (*key[:at], ("slice", 0, 0, None), *key[at + 1 :])


def setitem_method(self: Tensor, index: Any, value: Any) -> None:
    """``x[index] = value``, in place."""
    value = value if isinstance(value, (Tensor, bool, int, float, complex)) else Tensor(value)
    if _is_mask(index) and (tracer := _tracer_of(index)) is not None:
        made = tracer.overlaid(self, index, value)
        if made is not None:
            write(self, made)
            return
    if _is_mask(index) and _size_of(value) == 1:
        scalar = value.reshape([]) if isinstance(value, Tensor) and value.ndim else value
        write(self, get_operator("masked_fill")(self, _expanded_mask(index, self.ndim), scalar))
        return
    key, tensors = parse(index, self.payload.shape)
    if NOTHING in key:
        return  # there is no place to write to
    if _writes_directly(self, value):
        array = value.payload.ndarray if isinstance(value, Tensor) else value
        put(self.payload.ndarray, key, [t.payload.ndarray for t in tensors], array)
        self.payload.bump_version()
        return
    write(self, setitem(self, tensors, value, key))


def contains_method(self: Tensor, item: Any) -> bool:
    """``item in x``: whether any element equals it."""
    found = self == item
    return bool(found.any()) if isinstance(found, Tensor) else bool(found)


def _is_mask(index: Any) -> bool:
    return isinstance(index, Tensor) and index.payload.ndim > 0 and index.payload.dtype.name == "bool"


def _tracer_of(mask: Tensor) -> Any:
    """What captures the values of ``mask``; None where they are known."""
    if mask.payload.is_traced:
        return mask.payload.tracer
    layers = context().layers if AMBIENT.word else ()
    return next((layer for layer in layers if layer.has_written(mask)), None)


def _size_of(value: Any) -> Any:
    return 1 if not isinstance(value, Tensor) or value.ndim == 0 else int(np.prod(value.payload.shape))


def _expanded_mask(mask: Tensor, rank: int) -> Tensor:
    """A mask of leading axes with axes of size one behind, so that it broadcasts."""
    missing = rank - mask.ndim
    return mask if not missing else get_operator("reshape")(mask, [*mask.payload.shape, *(1,) * missing])


def _reads_directly(x: Tensor, mask: Tensor) -> bool:
    """Whether nobody watches, and the mask is of the leading axes: how much is read differs from call to call."""
    given, chosen = x.payload, mask.payload
    plain = not AMBIENT.word and type(given) is StridedArray and type(chosen) is StridedArray
    return plain and given.array_type.device is None and x.stop_gradient and given.shape[: chosen.ndim] == chosen.shape


def _writes_directly(target: Tensor, value: Any) -> bool:
    """Whether nobody watches: no layer is active, no gradient is wanted and both are plain."""
    if AMBIENT.word or target.payload.is_traced or not target.stop_gradient or accelerator_of(target) is not None:
        return False
    return not isinstance(value, Tensor) or (value.stop_gradient and not value.payload.is_traced)
