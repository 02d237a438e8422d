"""`dot_general`: every matrix product there is, brought to one `np.matmul` over [batch, rows, contracted]."""

from collections.abc import Sequence
from math import prod

import numpy as np

from argosy_phi_ops.reference.kernels.registry import Array, kernel, numpy_dtype, quiet, round_narrow, widen


def _arrange(x: Array, order: Sequence[Sequence[int]], sizes: int) -> tuple[Array, list[int]]:
    """`x` as a 3-D array of the three groups of axes, and the sizes of group number `sizes`."""
    shape = [prod(x.shape[axis] for axis in group) for group in order]
    arranged = x.transpose([axis for group in order for axis in group])
    return arranged.reshape(shape), [x.shape[axis] for axis in order[sizes]]


def _free_axes(x: Array, *taken: Sequence[int]) -> list[int]:
    used = {axis for group in taken for axis in group}
    return [axis for axis in range(x.ndim) if axis not in used]


@kernel("dot_general")
def dot_general(
    lhs: Array,
    rhs: Array,
    *,
    lhs_contract: Sequence[int],
    rhs_contract: Sequence[int],
    lhs_batch: Sequence[int] = (),
    rhs_batch: Sequence[int] = (),
    accumulate: str = "",
) -> Array:
    """Sum of products over the contracted axes: [batch..., lhs free..., rhs free...].

    Products are summed in `accumulate` (by default float32 for narrow floats, else the operands' dtype),
    which is also the dtype of the result when given.
    """
    result_dtype = numpy_dtype(accumulate) if accumulate else lhs.dtype
    if accumulate:
        lhs, rhs = lhs.astype(result_dtype, copy=False), rhs.astype(result_dtype, copy=False)
    if lhs.ndim == 2 == rhs.ndim and len(lhs_contract) == 1 and not lhs_batch:  # the common case, without the reshapes
        left = lhs if lhs_contract[0] == 1 else lhs.T
        right = rhs if rhs_contract[0] == 0 else rhs.T
        return round_narrow(quiet.run(np.matmul, widen(left), widen(right)), result_dtype)
    left, rows = _arrange(widen(lhs), [lhs_batch, _free_axes(lhs, lhs_batch, lhs_contract), lhs_contract], 1)
    right, columns = _arrange(widen(rhs), [rhs_batch, rhs_contract, _free_axes(rhs, rhs_batch, rhs_contract)], 2)
    batch = [lhs.shape[axis] for axis in lhs_batch]
    product = quiet.run(np.matmul, left, right)
    return round_narrow(product.reshape([*batch, *rows, *columns]), result_dtype)
