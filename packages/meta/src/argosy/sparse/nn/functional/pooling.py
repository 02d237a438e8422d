"""Pooling of sparse tensors."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import validate_call
from argosy.geometric.messages import reduce_rows
from argosy.sparse.nn.functional.convolution import channels_of, window_of
from argosy.sparse.nn.functional.neighbours import rule_book
from argosy.sparse.tensors import SparseCooTensor
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.ops.common.arguments import per_axis
from argosy_tensorcore.tensor import Tensor

__all__ = ["max_pool3d"]


@validate_call
def max_pool3d(
    x: SparseCooTensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> SparseCooTensor:
    """The largest stored value of each window over x [N, D, H, W, C], at the positions whose window has any.

    What is not stored does not count, not as 0 either. Equal values share the gradient. Raises NotImplementedError
    for ``ceil_mode``, which Paddle leaves without effect.
    """
    this = "max_pool3d"
    if ceil_mode:
        raise NotImplementedError(f"{this}(): ceil_mode of sparse tensors is not implemented")
    found = channels_of(this, x, data_format)
    sizes = per_axis(this, kernel_size, 3, "kernel_size")
    window = window_of(this, found, sizes, sizes if stride is None else stride, padding, 1, False)
    shape = [found.shape[0], *window.result(found.shape[1:-1]), found.shape[-1]]
    if min(shape) < 1:
        raise ValueError(f"{this}(): a window {list(sizes)} does not fit into {list(found.shape[1:-1])}")
    rules = rule_book(found.indices().numpy(), found.sparse_shape, window)
    rows = op("gather")(found.values(), Tensor(rules.taken), 0)
    values = reduce_rows(this, rows, Tensor(rules.given), rules.indices.shape[1], "max")
    return SparseCooTensor(Tensor(rules.indices), values, shape, True)
