"""What is known of an input before it is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from argosy.argument_checks import validate_call
from argosy_tensorcore.dtype import DType, as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["InputSpec"]


class InputSpec:
    """Shape (None or -1: any size), dtype and name of a tensor that a captured function takes."""

    @validate_call
    def __init__(
        self,
        shape: Sequence[int | None],
        dtype: object = "float32",
        name: str | None = None,
        stop_gradient: bool = False,
    ) -> None:
        self.shape = tuple(_size(n) for n in shape)
        self.dtype: DType = as_dtype(dtype)
        self.name = name
        self.stop_gradient = stop_gradient

    @classmethod
    def from_tensor(cls, tensor: Tensor, name: str | None = None) -> Self:
        """The spec that exactly this tensor meets."""
        return cls(tuple(tensor.shape), tensor.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray: Any, name: str | None = None) -> Self:
        """The spec that a tensor of this array meets."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size: int | None) -> Self:
        """Put a leading axis in front. Changes and returns the spec."""
        self.shape = (_size(batch_size), *self.shape)
        return self

    def unbatch(self) -> Self:
        """Take the leading axis away. Raises ValueError for a 0-D spec."""
        if not self.shape:
            raise ValueError("unbatch() of a spec of shape [] has no axis to take away")
        self.shape = self.shape[1:]
        return self

    def open_axes(self) -> list[int]:
        """The axes whose size may be any."""
        return [axis for axis, n in enumerate(self.shape) if n == -1]

    def describes(self, shape: Sequence[int], dtype: DType) -> bool:
        """Whether a tensor of that shape and dtype meets the spec."""
        fits = all(wanted in (-1, n) for wanted, n in zip(self.shape, shape, strict=False))
        return dtype is self.dtype and len(shape) == len(self.shape) and fits

    def __repr__(self) -> str:
        shown = f"shape={self.shape}, dtype={self.dtype!r}, name={self.name}, stop_gradient={self.stop_gradient}"
        return f"InputSpec({shown})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.name, self.stop_gradient


def _size(n: int | None) -> int:
    if n is None:
        return -1
    if not isinstance(n, int) or isinstance(n, bool) or n < -1:
        raise ValueError(f"a size in an InputSpec is an integer >= 0, or None for any, not {n!r}")
    return n
