"""From samples to batches: arrays on the way, tensors at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Pile", "as_arrays", "as_tensors", "collate_arrays", "default_collate_fn", "default_convert_fn"]


def default_collate_fn(batch: Sequence[Any]) -> Any:
    """Stack equal samples along a new first axis: arrays, tensors and numbers become tensors, nests keep their
    shape. Returns what has the structure of one sample.
    """
    return as_tensors(collate_arrays(batch))


def default_convert_fn(batch: Any) -> Any:
    """Arrays of one sample as tensors, without a batch axis. Returns the sample in its structure."""
    return as_tensors(batch)


class Pile:
    """Arrays of one shape that are to be stacked along a new first axis, where the result is wanted: a batch on its way
    to another process is copied once.
    """

    __slots__ = ("arrays", "dtype", "nbytes", "shape")

    def __init__(self, arrays: list[Any]) -> None:
        self.arrays = arrays
        self.dtype = np.result_type(*arrays)
        self.shape = (len(arrays), *arrays[0].shape)
        self.nbytes = self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))

    def stack(self) -> Any:
        """The array."""
        return np.stack(self.arrays)


def collate_arrays(batch: Sequence[Any], stack: Callable[[list[Any]], Any] = np.stack) -> Any:
    """:func:`default_collate_fn` that stops at arrays, or at what ``stack`` makes of equal ones. Raises TypeError for
    samples that cannot be stacked."""
    first = batch[0]
    if isinstance(first, (Tensor, np.ndarray, np.generic)):
        return stack(_check_equal([to_numpy(x) if isinstance(x, Tensor) else np.asarray(x) for x in batch]))
    if isinstance(first, (bool, int, float)):
        return np.asarray(batch)  # numbers are float64, as in Paddle
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: collate_arrays([sample[key] for sample in batch], stack) for key in first}
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise ValueError(f"samples of one batch differ in length: {[len(sample) for sample in batch]}")
        return [collate_arrays(list(column), stack) for column in zip(*batch, strict=True)]
    raise TypeError(
        f"samples of {type(first).__name__} cannot be made a batch; give arrays, numbers, strings or nests of them, "
        "or a collate_fn"
    )


def _check_equal(arrays: list[Any]) -> list[Any]:
    """The arrays. Raises ValueError where their shapes differ."""
    shapes = {a.shape for a in arrays}
    if len(shapes) > 1:
        raise ValueError(
            f"samples of one batch differ in shape: {sorted(map(list, shapes))}; pad them or give a collate_fn"
        )
    return arrays


def as_tensors(x: Any) -> Any:
    """Nested arrays as tensors that share their memory."""
    if isinstance(x, np.ndarray):
        return Tensor._wrap(StridedArray.from_array(x))
    return _map(x, as_tensors)


def as_arrays(x: Any) -> Any:
    """Nested tensors as arrays, for the way between processes."""
    return to_numpy(x) if type(x) is Tensor else _map(x, as_arrays)


def _map(x: Any, convert: Any) -> Any:
    if isinstance(x, Mapping):
        return {key: convert(value) for key, value in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(convert(value) for value in x))
    if isinstance(x, (list, tuple)):
        return type(x)(convert(value) for value in x)
    return x
