"""Paddle's arrays of tensors, which a program's loops fill: lists whose lengths are known when it runs."""

from __future__ import annotations

from typing import Any

from argosy.jit.paddle_format.operators import as_list, as_operand
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.errors import GraphBreak
from argosy_tensorcore.tensor import Tensor

__all__ = ["ARRAYS", "TensorArray", "run_array_operator"]

ARRAYS = frozenset({
    "create_array", "create_array_like", "array_length", "array_write_", "array_read", "array_to_tensor", "array_pop",
    "slice_array_dense",
})  # fmt: skip
_LENGTH = 1 << 24


class TensorArray:
    """A list of tensors that operators change in place."""

    __slots__ = ("items",)

    def __init__(self, items: list[Tensor]) -> None:
        self.items = items


def run_array_operator(name: str, x: list[Any], a: dict[str, Any]) -> Any:
    """The results of an operator on arrays. Raises GraphBreak while a capture runs, ValueError for a place that no
    array has."""
    if active_tracer() is not None:
        raise GraphBreak(f"{name}: an array's length is known when the program runs")
    if name == "create_array":
        return TensorArray([])
    array = x[0]
    if type(array) is not TensorArray:
        raise TypeError(f"{name} takes an array of tensors, not {type(array).__name__}")
    if name == "create_array_like":
        return TensorArray([get_operator("full_like")(t, a["val"]) for t in array.items])
    if name == "array_length":
        return get_operator("full")([1], len(array.items), "int64")
    if name == "array_pop":
        return [array, array.items.pop(int(a["index"]))]
    if name == "array_to_tensor":
        return _join(array, int(a["axis"]), bool(a["use_stack"]))
    at = int(as_list(x[-1])[0])
    if not 0 <= at < _LENGTH:
        raise ValueError(f"{name} at {at}")
    if name in ("array_read", "slice_array_dense"):
        return array.items[at]
    value = as_operand(x[1])
    while len(array.items) <= at:  # as Paddle's: places that were skipped are empty
        array.items.append(get_operator("zeros")([0], value.dtype))
    array.items[at] = value
    return array


def _join(array: TensorArray, axis: int, stacked: bool) -> list[Any]:
    """The tensors as one, and the sizes that they had along the axis."""
    items = array.items
    made = get_operator("stack")(items, axis=axis) if stacked else get_operator("concat")(items, axis=axis)
    sizes = [1 if stacked else t.shape[axis] for t in items]
    return [made, get_operator("stack")([get_operator("full")([], n, "int32") for n in sizes])]
