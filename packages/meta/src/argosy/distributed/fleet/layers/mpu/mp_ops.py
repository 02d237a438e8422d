"""What passes between the ranks of a tensor-parallel group: for one rank, nothing."""

from __future__ import annotations

from argosy.distributed.group import Group
from argosy_tensorcore.tensor import Tensor

__all__ = ["_c_concat", "_c_identity", "_c_split", "_mp_allreduce", "check_alone"]


def check_alone(wanted_by: str, group: Group | None) -> None:
    """Raise NotImplementedError for a group of several ranks."""
    if group is not None and group.nranks > 1:
        raise NotImplementedError(
            f"{wanted_by}: parts over the {group.nranks} ranks of a group are not implemented; use the whole layer "
            "and annotate it: distributed.parallelize with ColWiseParallel or RowWiseParallel, or shard_layer"
        )


def _c_identity(tensor: Tensor, group: Group | None = None, skip_c_identity_dynamic: bool = False) -> Tensor:
    """The tensor, whose gradient is the sum over the group."""
    check_alone("_c_identity", group)
    return tensor


def _c_concat(tensor: Tensor, group: Group | None = None) -> Tensor:
    """The parts of the group, joined along the last axis."""
    check_alone("_c_concat", group)
    return tensor


def _c_split(tensor: Tensor, group: Group | None = None) -> Tensor:
    """This rank's part along the last axis."""
    check_alone("_c_split", group)
    return tensor


def _mp_allreduce(
    tensor: Tensor,
    op: object = None,
    group: Group | None = None,
    use_calc_stream: bool = True,
    use_model_parallel: bool = True,
    skip_c_identity_dynamic: bool = False,
) -> Tensor:
    """The sum over the group, whose gradient is the one of each part."""
    check_alone("_mp_allreduce", group)
    return tensor
