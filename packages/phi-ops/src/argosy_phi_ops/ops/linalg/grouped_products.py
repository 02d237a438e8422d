"""Products with matrices chosen by index: mixtures of experts, adapters by row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_tensorcore.tensor import Tensor

_NUMBERS = ("int8", "float8_e4m3fn")


@operator(axes="n c !k, n c, !e !k m, !e m, !e !g m, !e !g m -> n c m", promote="none")
def gather_mm(
    x: Tensor,
    index: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    scale: Tensor | None = None,
    offset: Tensor | None = None,
) -> Tensor:
    """``x[n, c] @ weight[index[n, c]] + bias[index[n, c]]`` for ``x`` [n, c, k] and ``weight`` [e, k, m].

    With a ``scale`` [e, g, m] the weight is numbers in int8 or float8_e4m3fn, and each of its g groups of inputs is
    multiplied by a scale for each output, to which an ``offset`` [e, g, m] is added. ``x`` may be int8 then, as a step
    for each row makes it; the result is float32.

    The work is that of the chosen matrices: rows are sorted by their matrix, which each group of them is multiplied
    with at once, and put back (Gale et al., MegaBlocks, 2023).
    """
    if (x.ndim, index.ndim, weight.ndim) != (3, 2, 3) or x.shape[:2] != index.shape or x.shape[2] != weight.shape[1]:
        raise ShapeError(
            f"gather_mm takes x [n, c, k], index [n, c] and weight [e, k, m], got {x.type}, {index.type}, {weight.type}"
        )
    rows, matrices = x.shape[0] * x.shape[1], weight.shape[0]
    prim.check_index(index, operator="gather_mm", low=0, size=matrices)
    flat = prim.reshape(prim.cast(index, dtype="int64"), shape=(rows,))
    chosen, order = prim.sort(flat, prim.iota(shape=(rows,), axis=0, dtype="int64"), axis=0)
    if scale is None and x.dtype == "int8":
        raise OperatorError(f"gather_mm: x {x.type} is multiplied with numbers that have a scale, and scale is missing")
    if scale is None and offset is not None:
        raise OperatorError(f"gather_mm: an offset {offset.type} is added to scaled numbers, and scale is missing")
    dtype = "float32" if x.dtype == "int8" else x.dtype
    wide = weight if scale is None else _dequantize(weight, scale, offset, dtype)
    given = _rows(prim.reshape(x, shape=(rows, x.shape[2])), order)
    made = prim.grouped_dot(prim.cast(given, dtype=dtype), wide, _starts(flat, matrices))
    if bias is not None:
        made = prim.add(made, _rows(bias, chosen))
    back = prim.scatter(
        prim.constant(0, "int64", (rows,)), prim.reshape(order, shape=(rows, 1)),
        prim.iota(shape=(rows,), axis=0, dtype="int64"), axes=(0,),
    )  # fmt: skip
    return prim.reshape(_rows(made, back), shape=(*index.shape, weight.shape[2]))


def _dequantize(weight: Tensor, scale: Tensor, offset: Tensor | None, dtype: str) -> Tensor:
    """The weight [e, k, m] that numbers stand for."""
    (matrices, size, out), groups = weight.shape, scale.shape[1]
    if weight.dtype not in _NUMBERS or (scale.shape[0], scale.shape[2]) != (matrices, out) or size % groups:
        raise ShapeError(
            f"gather_mm with scales takes a weight [e, k, m] in {' or '.join(_NUMBERS)} and scales [e, g, m] whose "
            f"groups divide k, got {weight.type} and {scale.type}"
        )
    if offset is not None and offset.shape != scale.shape:
        raise ShapeError(f"gather_mm: the offset should have the shape of the scale, {scale.type}, got {offset.type}")
    grouped = prim.reshape(prim.cast(weight, dtype="float32"), shape=(matrices, groups, size // groups, out))
    factor, added = (
        None if x is None else prim.broadcast(prim.cast(x, dtype="float32"), shape=grouped.shape, axes=(0, 1, 3))
        for x in (scale, offset)
    )
    scaled = prim.mul(grouped, factor)
    return prim.cast(
        prim.reshape(scaled if added is None else prim.add(scaled, added), shape=weight.shape), dtype=dtype
    )


def _rows(x: Tensor, index: Tensor) -> Tensor:
    return prim.gather(x, prim.reshape(index, shape=(index.shape[0], 1)), axes=(0,))


def _starts(index: Tensor, matrices: int) -> Tensor:
    """Where the rows of each matrix begin, sorted by it [matrices + 1]."""
    shape = (matrices + 1, index.shape[0])
    before = prim.lt(prim.broadcast(index, shape=shape, axes=(1,)), prim.iota(shape=shape, axis=0, dtype="int64"))
    return prim.reduce_sum(prim.cast(before, dtype="int64"), axes=(1,))


@gather_mm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, weight, bias = (rng.standard_normal(shape) for shape in ((3, 2, 4), (3, 4, 5), (3, 5)))
    yield Sample(x, np.array([[2, 0], [0, 2], [2, 2]]), weight, bias)
    yield Sample(x[:1], np.array([[1, 0]]), weight)
