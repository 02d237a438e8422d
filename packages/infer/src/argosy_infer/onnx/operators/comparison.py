"""Search: positions of extremes, the largest elements, what differs."""

from __future__ import annotations

from typing import Any

from argosy_infer.onnx.registry import Values, onnx_operator
from argosy_infer.onnx.tensors import count_up, phi, prim, shape_of


def _declare(name: str, primitive: str) -> None:
    @onnx_operator(name)
    def position(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        axis %= len(shape_of(x))
        seen = prim.reverse(x, axes=(axis,)) if select_last_index else x
        found = getattr(prim, primitive)(seen, axis=axis, dtype="int64")
        if select_last_index:
            found = prim.sub(shape_of(x)[axis] - 1, found)
        return phi.unsqueeze(found, axis) if keepdims else found


_declare("ArgMax", "argmax")
_declare("ArgMin", "argmin")


@onnx_operator("TopK")
def top_k(x: Any, k: Values, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    """The ``k`` largest (or smallest) elements along an axis and their positions; of equal ones the first."""
    axis %= len(shape_of(x))
    indices = phi.broadcast_to(count_up(shape_of(x)[axis], axis, len(shape_of(x))), list(shape_of(x)))
    ordered = prim.sort(x, indices, axis=axis, keys=1, descending=bool(largest), stable=True)
    count = int(k.reshape(-1)[0])
    return tuple(phi.slice(each, [axis], [0], [count]) for each in ordered)
