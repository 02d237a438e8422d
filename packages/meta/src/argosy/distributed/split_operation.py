"""``split``: a linear operation or an embedding whose weight lies in parts on several ranks, as static programs write
it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.distributed.fleet.layers.mpu.mp_layers import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from argosy.distributed.group import Group, world_group
from argosy.framework.modes import in_dynamic_mode
from argosy_tensorcore.tensor import Tensor

__all__ = ["split"]


def split(
    x: Tensor,
    size: Sequence[int],
    operation: str,
    axis: int = 0,
    num_partitions: int = 1,
    gather_out: bool = True,
    weight_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> Tensor:
    """The operation ``"linear"`` or ``"embedding"`` with a weight of the whole ``size``, of which each of the
    ``num_partitions`` ranks, which must be all, makes its part: rows (``axis`` 0, all there is of embeddings), or
    columns (1), which ``gather_out`` joins in the result.

    Raises ValueError outside of static programs, where the layers ``ColumnParallelLinear``, ``RowParallelLinear`` and
    ``VocabParallelEmbedding`` do it, for another operation, axis or number of ranks, and for a size that does not
    divide.
    """
    if in_dynamic_mode():
        raise ValueError(
            "distributed.split makes parameters, which only static programs keep; use ColumnParallelLinear, "
            "RowParallelLinear or VocabParallelEmbedding of distributed.fleet.meta_parallel"
        )
    rows, columns = size
    group: Group = world_group()
    if num_partitions != group.nranks:
        raise ValueError(f"distributed.split: num_partitions is {num_partitions}, but there are {group.nranks} ranks")
    if operation == "embedding" and axis == 0:
        return VocabParallelEmbedding(rows, columns, weight_attr, group)(x)  # type: ignore[no-any-return]
    if operation != "linear" or axis not in (0, 1):
        raise ValueError(
            f"distributed.split: operation is 'linear' along axis 0 or 1 or 'embedding' along 0, not {operation!r} "
            f"along {axis!r}"
        )
    biased = bias_attr is not False
    if axis == 1:
        return ColumnParallelLinear(rows, columns, weight_attr, biased, gather_out, mp_group=group)(x)  # type: ignore[no-any-return]
    parallel = x.shape[-1] != rows
    return RowParallelLinear(rows, columns, weight_attr, biased, parallel, mp_group=group)(x)  # type: ignore[no-any-return]
