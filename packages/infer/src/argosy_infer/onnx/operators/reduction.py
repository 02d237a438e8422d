"""Reductions and running sums."""

from __future__ import annotations

from typing import Any

from argosy_infer.onnx.operators.arithmetic import keep_dtype
from argosy_infer.onnx.registry import Values, onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of


def _axes(x: Any, axes: Any, noop: int) -> tuple[int, ...] | None:
    """Axes to reduce; None for no reduction at all."""
    rank = len(shape_of(x))
    if axes is None or not axes.size:
        return None if noop else tuple(range(rank))
    return tuple(sorted({int(axis) % rank for axis in axes.reshape(-1)}))


def _sum(x: Any, axes: tuple[int, ...]) -> Any:
    return prim.reduce_sum(x, axes=axes)


def _prod(x: Any, axes: tuple[int, ...]) -> Any:
    return prim.reduce_prod(x, axes=axes)


def _mean(x: Any, axes: tuple[int, ...]) -> Any:
    if x.payload.dtype.kind == "f":
        return keep_dtype(phi.mean, x, list(axes))
    count = 1
    for axis in axes:
        count *= shape_of(x)[axis]
    return prim.div(_sum(x, axes), count)


def _extreme(name: str) -> Any:
    def reduce(x: Any, axes: tuple[int, ...]) -> Any:
        if x.payload.dtype.name == "bool":
            return getattr(prim, "reduce_or" if name == "max" else "reduce_and")(x, axes=axes)
        return getattr(prim, f"reduce_{name}")(x, axes=axes)

    return reduce


def _square(x: Any) -> Any:
    return prim.mul(x, x)


def _log_sum_exp(x: Any, axes: tuple[int, ...]) -> Any:
    return keep_dtype(phi.logsumexp, x, list(axes))


_REDUCTIONS: dict[str, tuple[Any, Any, Any]] = {
    "ReduceSum": (None, _sum, None),
    "ReduceMean": (None, _mean, None),
    "ReduceProd": (None, _prod, None),
    "ReduceMax": (None, _extreme("max"), None),
    "ReduceMin": (None, _extreme("min"), None),
    "ReduceL1": (prim.abs, _sum, None),
    "ReduceL2": (_square, _sum, prim.sqrt),
    "ReduceSumSquare": (_square, _sum, None),
    "ReduceLogSum": (None, _sum, prim.log),
    "ReduceLogSumExp": (None, _log_sum_exp, None),
}
"""By name: what is done to each element before, how axes disappear, what is done to the result."""


def _declare(name: str, before: Any, reduce: Any, after: Any) -> None:
    @onnx_operator(name)
    def reduction(x: Any, axes: Values | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        found = _axes(x, axes, noop_with_empty_axes)
        x = before(x) if before else x
        if found:
            x = reduce(x, found)
            if keepdims:
                x = phi.unsqueeze(x, list(found))
        return after(x) if after else x


for _name, _parts in _REDUCTIONS.items():
    _declare(_name, *_parts)


def _declare_running(name: str, kind: str) -> None:
    @onnx_operator(name)
    def running(x: Any, axis: Values, *, exclusive: int = 0, reverse: int = 0) -> Any:
        """With `exclusive`, without the element itself: all are moved on by one."""
        along = int(axis.reshape(-1)[0]) % len(shape_of(x))
        if exclusive:
            x = _moved(x, along, bool(reverse), 0 if kind == "sum" else 1)
        return prim.cumulative(x, axis=along, kind=kind, reverse=bool(reverse))


_declare_running("CumSum", "sum")
_declare_running("CumProd", "prod")


def _moved(x: Any, axis: int, back: bool, neutral: int) -> Any:
    """``x`` moved by one along an axis, from whose other end ``neutral`` comes in."""
    rank, n = len(shape_of(x)), shape_of(x)[axis]
    kept = phi.slice(x, [axis], [1 if back else 0], [n if back else n - 1])
    one = [1 if i == axis else 0 for i in range(rank)]
    none = [0] * rank
    fill = phi.full([], neutral, x.payload.dtype.name)
    return prim.pad(kept, fill, low=none if back else one, high=one if back else none, interior=none)
