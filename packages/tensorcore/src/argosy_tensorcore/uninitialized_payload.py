"""The payload of a tensor whose memory nobody has asked for yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.shape import contiguous_strides
from argosy_tensorcore.storage import StridedArray

if TYPE_CHECKING:
    from argosy_tensorcore.tensor import Tensor

__all__ = ["UninitializedPayload", "give_memory"]

_OF_MEMORY = frozenset({"ndarray", "address"})


class UninitializedPayload(StridedArray):
    """A shape and a dtype without memory, as a parameter has that was made within ``LazyGuard``. Reading or writing
    elements raises ``RuntimeError``; :func:`give_memory` makes an ordinary payload of it."""

    __slots__ = ()

    def __init__(self, shape: Sequence[int], dtype: object) -> None:
        self.dtype, self.shape, self.offset = as_dtype(dtype), tuple(shape), 0
        self.strides = contiguous_strides(self.shape)
        self._storage = None

    def __getattr__(self, name: str) -> Any:
        return _refuse(self) if name in _OF_MEMORY else super().__getattr__(name)

    def duplicate(self) -> UninitializedPayload:
        """Another one, for a copy of the tensor."""
        return UninitializedPayload(self.shape, self.dtype)

    def describe(self) -> str:
        """What printing says in place of values."""
        return "not initialized"


def give_memory(tensor: Tensor) -> None:
    """Memory of its own, not yet written, for a tensor that has none; others are left as they are."""
    if type(tensor.payload) is UninitializedPayload:
        tensor.payload = StridedArray.empty(tensor.payload.shape, tensor.payload.dtype)


def _refuse(payload: UninitializedPayload) -> NoReturn:
    raise RuntimeError(
        f"a parameter of shape {list(payload.shape)} made within LazyGuard holds no values yet, nor does a tensor that "
        "was cleared: call its initialize(), or give it some with set_value() or set_state_dict(), first"
    )
