"""Sequences split over the ranks of a tensor-parallel group along their first axis (Korthikanti et al., 2022).

Where the group has one rank, sequences stay whole.
"""

from __future__ import annotations

from typing import Any

from argosy.distributed.fleet.instance import get_hybrid_communicate_group
from argosy.distributed.fleet.layers.mpu.mp_layers import ColumnParallelLinear, RowParallelLinear
from argosy.distributed.fleet.layers.mpu.mp_ops import gather_along, scatter_along, sum_of, take
from argosy.distributed.group import Group
from argosy.distributed.wrapped_layer import is_expert
from argosy.nn import functional as F
from argosy.nn.layer import Layer
from argosy_autograd.pylayer import PyLayer
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "AllGatherOp", "ColumnSequenceParallelLinear", "GatherOp", "ReduceScatterOp", "RowSequenceParallelLinear",
    "ScatterOp", "all_gather", "is_sequence_parallel_parameter", "mark_as_sequence_parallel_parameter",
    "reduce_scatter", "register_sequence_parallel_allreduce_hooks", "scatter",
]  # fmt: skip


def _group(given: Group | None) -> Group:
    return get_hybrid_communicate_group().get_model_parallel_group() if given is None else given


def _gather_whole(x: Tensor, group: Group) -> Tensor:
    return gather_along(x, group, 0)


def _part(x: Tensor, group: Group) -> Tensor:
    return take(x, group, 0).clone()


def _part_of_sum(x: Tensor, group: Group) -> Tensor:
    return scatter_along(x, group, 0)


def scatter(input: Tensor) -> Tensor:
    """This rank's part of a sequence, along the first axis; a constant for differentiation, as the two below."""
    return _part(input, _group(None)) if _group(None).nranks > 1 else input


def all_gather(input: Tensor) -> Tensor:
    """The sequence of which each rank has a part, along the first axis."""
    return _gather_whole(input, _group(None)) if _group(None).nranks > 1 else input


def reduce_scatter(input: Tensor) -> Tensor:
    """This rank's part, along the first axis, of the sum of the ranks' sequences."""
    return _part_of_sum(input, _group(None)) if _group(None).nranks > 1 else input


class _Change(PyLayer):
    """``apply(input, group=None)``. Raises RuntimeError before ``fleet.init`` where no group is given."""

    ahead: Any
    back: Any

    @classmethod
    def apply(cls, input: Tensor, group: Group | None = None) -> Any:
        """The result, on every rank of the group."""
        return super().apply(input, _group(group))

    @classmethod
    def forward(cls, ctx: Any, input: Tensor, group: Group) -> Tensor:
        """The result."""
        ctx.group = group
        return cls.ahead(input, group) if group.nranks > 1 else input.clone()

    @classmethod
    def backward(cls, ctx: Any, grad: Tensor) -> Tensor:
        """The gradient of the input."""
        return cls.back(grad, ctx.group) if ctx.group.nranks > 1 else grad


class ScatterOp(_Change):
    """This rank's part of the sequence that all have."""

    ahead, back = staticmethod(_part), staticmethod(_gather_whole)


class GatherOp(_Change):
    """The whole sequence of all ranks' parts."""

    ahead, back = staticmethod(_gather_whole), staticmethod(_part)


class AllGatherOp(_Change):
    """The whole sequence of all ranks' parts; gradients are summed."""

    ahead, back = staticmethod(_gather_whole), staticmethod(_part_of_sum)


class ReduceScatterOp(_Change):
    """This rank's part of the sum."""

    ahead, back = staticmethod(_part_of_sum), staticmethod(_gather_whole)


def mark_as_sequence_parallel_parameter(parameter: Any) -> None:
    """Say that the gradients of ``parameter`` are to be summed over the group."""
    parameter.sequence_parallel = True


def is_sequence_parallel_parameter(parameter: Any) -> bool:
    """Whether :func:`mark_as_sequence_parallel_parameter` marked it."""
    return getattr(parameter, "sequence_parallel", False)


def register_sequence_parallel_allreduce_hooks(
    model: Layer, accumulation_steps: int, fuse_sequence_parallel_allreduce: bool
) -> None:
    """Sum the gradients of marked parameters, but those of experts, over the group, in each backward pass. Raises
    RuntimeError before ``fleet.init``."""
    group = _group(None)
    if group.nranks == 1:
        return
    for parameter in model.parameters():
        marked = is_sequence_parallel_parameter(parameter) and not is_expert(parameter)
        if marked and not parameter.stop_gradient:
            parameter.register_hook(lambda g: sum_of(g, group))


class ColumnSequenceParallelLinear(ColumnParallelLinear):
    """``x @ weight + bias`` of a sequence split over ``mp_group``, split by columns: each rank gets its columns of the
    whole sequence. Raises ValueError with ``gather_output``."""

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, has_bias: bool | None = None,
        gather_output: bool = False, fuse_matmul_bias: bool = False, mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        if gather_output:
            raise ValueError("ColumnSequenceParallelLinear: columns stay split, so gather_output should be False")
        super().__init__(in_features, out_features, weight_attr, has_bias, False, fuse_matmul_bias, mp_group, name)

    def forward(self, x: Tensor) -> Tensor:
        """[sequence / ranks, ..., in_features] to [sequence, ..., out_features / ranks]."""
        given = AllGatherOp.apply(x, self.model_parallel_group) if self.is_mp else x
        made: Tensor = F.linear(given, self.weight, self.bias)
        return made


class RowSequenceParallelLinear(RowParallelLinear):
    """``x @ weight + bias``, split by rows over ``mp_group``: each rank gets its part of the sequence. Raises
    ValueError without ``input_is_parallel``."""

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, has_bias: bool = True,
        input_is_parallel: bool = True, fuse_matmul_bias: bool = False, mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        if not input_is_parallel:
            raise ValueError("RowSequenceParallelLinear: features are split, so input_is_parallel should be True")
        super().__init__(in_features, out_features, weight_attr, has_bias, True, fuse_matmul_bias, mp_group, name)
        if self.bias is not None:
            mark_as_sequence_parallel_parameter(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """[sequence, ..., in_features / ranks] to [sequence / ranks, ..., out_features]."""
        if not self.is_mp:
            return super().forward(x)
        made: Tensor = ReduceScatterOp.apply(F.linear(x, self.weight), self.model_parallel_group)
        return made if self.bias is None else made + self.bias
