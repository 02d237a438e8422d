"""Tensors of test cases as plain data, and the arrays they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["NARROW", "Input", "base_array", "given", "tensor"]


NARROW = ("bfloat16", "float16")
"""Dtypes that tensors are cast to after they were made in float32, which is where their gradients are taken."""


@dataclass(frozen=True)
class Input:
    """A tensor argument: ``values`` if given, else numbers drawn evenly from [low, high).

    ``layout`` says how it lies in memory: "" contiguous, "T" the transpose of a contiguous tensor, "step" every second
    column of one twice as wide, "offset" a contiguous tensor without its first row.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0
    layout: str = ""
    values: tuple[Any, ...] | None = None
    grad: bool = True

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "()"
        bounds = "" if (self.low, self.high) == (-2.0, 2.0) or self.values is not None else f"[{self.low},{self.high}]"
        shown = "" if self.values is None else "{" + ",".join(map(str, self.values)) + "}"
        layout = "~" + self.layout if self.layout else ""
        return f"{self.dtype}:{shape}{bounds}{shown}{layout}{'' if self.grad else '!'}"


def tensor(*shape: int, dtype: str = "float32", low: float = -2.0, high: float = 2.0, **rest: Any) -> Input:
    """A drawn tensor: ``tensor(2, 3)``, ``tensor(4, dtype="int64", low=0, high=5)``."""
    return Input(shape, dtype, low, high, **rest)


def given(values: Any, dtype: str = "float32", **rest: Any) -> Input:
    """A tensor of these values, by rows: ``given([[1, 2], [3, 4]])``."""
    array = np.asarray(values)
    return Input(array.shape, dtype, values=tuple(array.ravel().tolist()), **rest)


def base_array(spec: Input, salt: int) -> np.ndarray:
    """The contiguous array of which ``spec`` is a view (in float32 where it is narrower); ``salt`` tells the inputs of
    one case apart.

    RandomState's streams are frozen by numpy's policy, so every version draws the same numbers.
    """
    shape = _base_shape(spec)
    dtype = "float32" if spec.dtype in NARROW else spec.dtype
    if spec.values is not None:
        return np.asarray(spec.values, dtype).reshape(shape)
    draw = np.random.RandomState(7919 * (salt + 1) + len(shape)).random_sample
    span = spec.high - spec.low
    if spec.dtype == "bool":
        return draw(shape) < 0.5
    if spec.dtype.startswith("complex"):
        return (spec.low + span * draw(shape) + 1j * (spec.low + span * draw(shape))).astype(spec.dtype)
    drawn = spec.low + span * draw(shape)
    return np.asarray(np.floor(drawn) if "int" in dtype else drawn).astype(dtype)


def _base_shape(spec: Input) -> tuple[int, ...]:
    if spec.layout == "T":
        return spec.shape[::-1]
    if spec.layout == "step":
        return (*spec.shape[:-1], 2 * spec.shape[-1])
    if spec.layout == "offset":
        return (spec.shape[0] + 1, *spec.shape[1:])
    return spec.shape
