"""Batch normalisation by the statistics of all ranks' batches together, where each rank has an ordinary tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_autograd.modes import no_grad
from argosy_autograd.pylayer import PyLayer
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.context import context
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["batch_norm_over_ranks"]


class _SumOverRanks(PyLayer):
    """The sum of the ranks' tensors. Each rank's loss depends on it: so is the gradient the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return _sum(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return _sum(g)


def _sum(x: Tensor) -> Tensor:
    from argosy_autoparallel.groups import world
    from argosy_autoparallel.rank_operators import communicate

    with no_grad():
        if active_tracer() is not None:
            return communicate("all_reduce", x.detach(), group=(), size=context().size, kind="sum")
        given = np.ascontiguousarray(x.payload.to_host())
        total = np.empty_like(given)
        communicator = world()
        assert communicator is not None
        communicator.all_reduce(given, total, "sum")
        return Tensor._wrap(StridedArray(total))


def batch_norm_over_ranks(
    x: Tensor, running_mean: Tensor, running_var: Tensor, weight: Tensor | None, bias: Tensor | None, momentum: float,
    epsilon: float, data_format: str,
) -> Tensor:  # fmt: skip
    """``x`` standardised for each channel by the mean and variance of what all ranks have, which move the running ones;
    then scaled and shifted. Shapes as for :func:`argosy.nn.functional.batch_norm`; batches may be of different sizes.
    All ranks call it.
    """
    channel = x.ndim - 1 if data_format[-1] == "C" and len(data_format) > 2 else 1
    axes = [axis for axis in range(x.ndim) if axis != channel]
    shape = [-1 if axis == channel else 1 for axis in range(x.ndim)]
    wide: Any = x.astype(running_mean.dtype)
    count = get_operator("full")([1], x.size / x.shape[channel], wide.dtype.name)
    total = _SumOverRanks.apply(get_operator("concat")([wide.sum(axes), count]))
    number = total[-1].detach()
    mean = total[:-1] / number
    centred = wide - mean.reshape(shape)
    variance = _SumOverRanks.apply((centred * centred).sum(axes)) / number
    with no_grad():
        for running, new in ((running_mean, mean), (running_var, variance)):
            write(running, momentum * running + (1 - momentum) * new.detach())
    result = centred * (variance + epsilon).rsqrt().reshape(shape)
    if weight is not None:
        result = result * weight.reshape(shape)
    if bias is not None:
        result = result + bias.reshape(shape)
    return result.astype(x.dtype)  # type: ignore[no-any-return]
