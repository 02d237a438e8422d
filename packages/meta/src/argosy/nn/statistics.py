"""Normalisation that keeps running statistics: an operator that gives new ones, and the write that keeps them."""

from __future__ import annotations

from argosy.argument_checks import validate_call
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["batch_norm", "batch_norm_with_statistics"]


@validate_call
def batch_norm(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-05,
    data_format: str = "NCHW",
    use_global_stats: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """``x`` standardised for each channel (Ioffe and Szegedy, 2015), then scaled and shifted.

    x: [batch, channels, ...] (channels last where ``data_format`` ends in C); the other tensors: [channels]. With
    ``training`` by the statistics of the batch, which then move ``running_mean`` and ``running_var`` in place:
    ``momentum * old + (1 - momentum) * new``. Otherwise, or with ``use_global_stats``, by the running ones.
    """
    result, mean, variance = get_operator("batch_norm")(
        x, running_mean, running_var, weight, bias, training, momentum, epsilon, data_format, use_global_stats
    )
    if training and not use_global_stats:
        write(running_mean, Tensor._wrap(mean.payload))  # outside the graph
        write(running_var, Tensor._wrap(variance.payload))
    return result  # type: ignore[no-any-return]


def batch_norm_with_statistics(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    scale: Tensor | None,
    bias: Tensor | None,
    is_test: bool,
    momentum: float,
    epsilon: float,
    data_format: str,
    use_global_stats: bool,
    trainable_statistics: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None, None]:
    """:func:`batch_norm` as Paddle's operator has it: the result, the running statistics, which it moves, and in
    training the batch's mean and one over its standard deviation, [channels] without a history; else None."""
    training = not is_test or trainable_statistics
    settings = (training, momentum, epsilon, data_format, use_global_stats or not training)
    result = batch_norm(x, mean, variance, scale, bias, *settings)
    if not training or use_global_stats:
        return result, mean, variance, None, None, None
    channel = x.ndim - 1 if data_format[-1] == "C" and len(data_format) > 2 else 1
    axes, given = [axis for axis in range(x.ndim) if axis != channel], x.detach().astype(mean.dtype)
    spread = (given.var(axes, unbiased=False) + epsilon).rsqrt()
    return result, mean, variance, given.mean(axes), spread, None
