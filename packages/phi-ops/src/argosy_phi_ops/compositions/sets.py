"""Runs of equal elements."""

# mypy: disable-error-code="no-any-return,index,operator"

from __future__ import annotations

from typing import Any

from argosy_phi_ops.declare.composition import compose
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.ops.common.arguments import axis_of
from argosy_tensorcore.tensor import Tensor


@compose()
def unique_consecutive(
    x: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    dtype: object = "int64",
) -> Any:
    """The first of every run of equal elements (or slices along ``axis``); on request the number of each element's
    run, and the runs' lengths. Its size depends on the values: eager only. The results are constants, as Paddle's are.
    Returns a tensor, or the tuple of it and what was asked for: the inverse, then the counts.
    """
    x = x.detach()
    flat = op("reshape")(x, [-1]) if axis is None else x
    at = 0 if axis is None else axis_of("unique_consecutive", axis, x.ndim)
    moved = op("moveaxis")(flat, at, 0)
    size = moved.shape[0]
    rows = op("reshape")(moved, [size, -1]) if size else op("reshape")(moved, [0, 1])
    changed = op("any")(rows[1:] != rows[:-1], 1)
    begins = op("concat")([op("ones")([min(size, 1)], "bool"), changed], 0)
    starts = op("reshape")(op("nonzero")(begins), [-1])
    results = [op("moveaxis")(op("index_select")(moved, starts, 0), 0, at)]
    if return_inverse:
        results.append((op("cumsum")(begins.astype("int64"), 0) - 1).astype(dtype))
    if return_counts:
        ends = op("concat")([starts[1:], op("full")([min(size, 1)], size, "int64")], 0)
        results.append((ends - starts).astype(dtype))
    return results[0] if len(results) == 1 else tuple(results)
