"""Sequences split over the ranks of a tensor-parallel group, here of one rank: every rank has the whole sequence."""

from __future__ import annotations

from typing import Any

from argosy.distributed.fleet.training import get_hybrid_communicate_group
from argosy.nn.layer import Layer
from argosy_autograd.pylayer import PyLayer
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "AllGatherOp", "ColumnSequenceParallelLinear", "GatherOp", "ReduceScatterOp", "RowSequenceParallelLinear",
    "ScatterOp", "is_sequence_parallel_parameter", "mark_as_sequence_parallel_parameter",
    "register_sequence_parallel_allreduce_hooks",
]  # fmt: skip


class _OneRank(PyLayer):
    """The sequence as it is. ``apply`` raises RuntimeError before ``fleet.init``."""

    @staticmethod
    def forward(ctx: Any, input: Tensor) -> Any:
        """What the one rank of the group has."""
        get_hybrid_communicate_group()
        return input.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """The gradient as it is."""
        return grad


class ScatterOp(_OneRank):
    """This rank's part of the sequence."""


class GatherOp(_OneRank):
    """The whole sequence of all ranks' parts."""


class AllGatherOp(_OneRank):
    """The whole sequence of all ranks' parts; gradients are summed."""


class ReduceScatterOp(_OneRank):
    """This rank's part of the sum."""


def mark_as_sequence_parallel_parameter(parameter: Any) -> None:
    """Say that the gradients of ``parameter`` are to be summed over the group."""
    parameter.sequence_parallel = True


def is_sequence_parallel_parameter(parameter: Any) -> bool:
    """Whether :func:`mark_as_sequence_parallel_parameter` marked it."""
    return getattr(parameter, "sequence_parallel", False)


def register_sequence_parallel_allreduce_hooks(
    model: Layer, accumulation_steps: int, fuse_sequence_parallel_allreduce: bool
) -> None:
    """Sum the gradients of marked parameters over the group: nothing for its one rank."""


class _Split:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} is for groups of several ranks, which are not implemented; annotate: "
            "distributed.parallelize with SequenceParallelBegin and SequenceParallelEnd"
        )


class ColumnSequenceParallelLinear(_Split):
    """A linear layer split by columns of a split sequence. Raises NotImplementedError; Paddle refuses one rank."""


class RowSequenceParallelLinear(_Split):
    """A linear layer split by rows, of a split sequence. Raises NotImplementedError; Paddle refuses one rank."""
