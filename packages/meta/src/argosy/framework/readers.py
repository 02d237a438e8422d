"""Readers of samples, files mapped into memory, a look at shapes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.argument_checks import validate_call
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["MmapStorage", "batch", "check_shape", "frombuffer"]


@validate_call
def batch(reader: Callable[[], Iterable[Any]], batch_size: int, drop_last: bool = False) -> Callable[[], Iterator[Any]]:
    """A reader of lists of ``batch_size`` samples of ``reader``; the last, shorter one can be dropped."""
    if batch_size <= 0:
        raise ValueError(f"batch: batch_size should be positive, got {batch_size}")

    def batches() -> Iterator[Any]:
        held: list[Any] = []
        for sample in reader():
            held.append(sample)
            if len(held) == batch_size:
                yield held
                held = []
        if held and not drop_last:
            yield held

    return batches


def check_shape(
    shape: Any,
    op_name: str,
    expected_shape_type: tuple[type, ...] = (list, tuple, Tensor),
    expected_element_type: tuple[type, ...] = (int, Tensor),
    expected_tensor_dtype: tuple[str, ...] = ("int32", "int64"),
) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless ``shape`` can be one: of those types, with no negative size."""
    if not isinstance(shape, Iterable) or not isinstance(shape, expected_shape_type):
        raise TypeError(f"{op_name}: shape should be a list or tuple, got {type(shape).__name__}")
    if isinstance(shape, Tensor):
        if shape.dtype.name not in expected_tensor_dtype:
            raise TypeError(f"{op_name}: a shape's dtype is one of {expected_tensor_dtype}, got {shape.dtype.name}")
        return
    sizes = list(shape)
    for item in sizes:
        if not isinstance(item, expected_element_type):
            raise TypeError(f"{op_name}: shape {shape} should hold integers, got {type(item).__name__}")
        if isinstance(item, int) and item < 0:
            raise ValueError(f"{op_name}: shape {list(sizes)} holds a negative size")


class MmapStorage:
    """``nbytes`` bytes of a file mapped into memory, of which parts can be read as tensors without a copy. What is
    written to such a tensor stays in memory: the file is as it was.

    Raises ValueError where the file is shorter.
    """

    @validate_call
    def __init__(self, filename: str, nbytes: int) -> None:
        present = os.path.getsize(filename)
        if nbytes > present:
            raise ValueError(f"MmapStorage: nbytes should be at most the file's {present}, got {nbytes}: {filename}")
        self._bytes = np.memmap(filename, np.uint8, "c", shape=(nbytes,))

    @validate_call
    def get_slice(self, dtype: Any = "uint8", start: int = 0, stop: int = -1, step: int = 1) -> Tensor:
        """The elements ``start`` to ``stop`` (-1: the end) of the file read as ``dtype``; they share its memory."""
        elements = np.asarray(self._bytes).view(as_dtype(dtype).numpy)
        return Tensor._wrap(StridedArray.from_array(elements[start : len(elements) if stop == -1 else stop : step]))


def frombuffer(buffer: Any, dtype: Any, count: int = -1, offset: int = 0) -> Tensor:
    """``count`` elements (-1: as many as there are) of ``dtype`` from byte ``offset`` of ``buffer`` on, [count]. They
    share its memory where it may be written to; of bytes that may not, they are a copy.

    Raises ValueError where the bytes are no whole number of elements, or fewer than ``count``.
    """
    chosen = as_dtype(dtype)
    found = np.frombuffer(buffer, np.uint8)
    if not 0 <= offset <= len(found):
        raise ValueError(f"frombuffer: offset should be from 0 to the buffer's {len(found)} bytes, got {offset}")
    rest = found[offset:]
    size = chosen.itemsize * count if count >= 0 else len(rest)
    if size > len(rest) or size % chosen.itemsize:
        wanted = "a whole number of elements" if count < 0 else f"{count} elements"
        raise ValueError(f"frombuffer: {len(rest)} bytes are not {wanted} of {chosen.name}")
    elements = rest[:size].view(chosen.numpy)
    return Tensor._wrap(StridedArray.from_array(elements if elements.flags.writeable else elements.copy()))
