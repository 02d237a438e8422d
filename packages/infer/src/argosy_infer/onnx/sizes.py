"""Shape arithmetic while a program is made: small integer tensors whose elements are numbers and symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from argosy_infer.onnx.tensors import phi, tensor_of

__all__ = ["compute_sizes"]

Array = np.ndarray[Any, Any]
Attributes = Mapping[str, Any]


def _slice(attributes: Attributes, x: Array, *rest: Array) -> Array:
    bounds = rest or [np.asarray(attributes[name]) for name in ("starts", "ends")]
    step = int(bounds[3][0]) if len(bounds) > 3 else 1
    return x[int(bounds[0][0]) : int(bounds[1][0]) : step]


def _gather(attributes: Attributes, x: Array, indices: Array) -> Array:
    return np.take(x, indices.astype(np.int64), attributes.get("axis", 0))


def _squeeze(attributes: Attributes, x: Array, *axes: Array) -> Array:
    return np.squeeze(x)


def _unsqueeze(attributes: Attributes, x: Array, *axes: Array) -> Array:
    along = axes[0] if axes else attributes["axes"]
    return np.expand_dims(x, tuple(int(axis) for axis in along))


_RULES: dict[str, Callable[..., Any]] = {
    "Add": lambda _, x, y: x + y,
    "Sub": lambda _, x, y: x - y,
    "Mul": lambda _, x, y: x * y,
    "Div": lambda _, x, y: x // y,
    "Concat": lambda _, *xs: np.concatenate(xs),
    "Gather": _gather,
    "ReduceProd": lambda _, x, *axes: np.multiply.reduce(x, keepdims=True) if x.size else x,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
}
"""Of tensors of one axis at most. Sizes are no less than 0, so that division rounds down."""


def compute_sizes(name: str, attributes: Attributes, inputs: Sequence[Array]) -> Any:
    """The result of the operator ``name``, as a tensor; None where sizes are not what it computes with."""
    if name not in _RULES or any(x.ndim > 1 for x in inputs):
        return None
    found = np.asarray(_RULES[name](attributes, *inputs), object)
    if found.ndim > 1:
        return None
    if all(isinstance(n, (int, np.integer)) for n in found.reshape(-1)):
        return tensor_of(found.astype(np.int64))
    parts = [phi.full([], n, "int64") for n in found.reshape(-1)]
    return phi.stack(parts) if found.ndim else parts[0]
