"""The collectives under the names of ``paddle.distributed.communication.stream``.

Communication is done when a function returns, so the stream of computation (``use_calc_stream``) makes no difference.
Where the functions of ``argosy.distributed`` take lists these take one tensor as well: parts along axis 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.distributed import collective, point_to_point
from argosy.distributed.group import Group, world_group
from argosy.distributed.reduction import ReduceOp
from argosy.distributed.task import Task
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "all_gather", "all_reduce", "alltoall", "alltoall_single", "broadcast", "gather", "recv", "reduce",
    "reduce_scatter", "scatter", "send",
]  # fmt: skip

Parts = Tensor | list[Tensor]


def all_reduce(
    tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """See :func:`argosy.distributed.all_reduce`."""
    return collective.all_reduce(tensor, op, group, sync_op)


def reduce(
    tensor: Tensor, dst: int = 0, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """See :func:`argosy.distributed.reduce`."""
    return collective.reduce(tensor, dst, op, group, sync_op)


def broadcast(
    tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False
) -> Task | None:
    """See :func:`argosy.distributed.broadcast`."""
    return collective.broadcast(tensor, src, group, sync_op)


def all_gather(
    tensor_or_tensor_list: Parts, tensor: Tensor, group: Group | None = None, sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """See :func:`argosy.distributed.all_gather`."""
    return _communicate_into(tensor_or_tensor_list, lambda found: collective.all_gather(found, tensor, group, sync_op))


def gather(
    tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int = 0, group: Group | None = None,
    sync_op: bool = True, use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """See :func:`argosy.distributed.gather`."""
    return collective.gather(tensor, gather_list, dst, group, sync_op)


def scatter(
    tensor: Tensor, tensor_or_tensor_list: Parts | None = None, src: int = 0, group: Group | None = None,
    sync_op: bool = True, use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """See :func:`argosy.distributed.scatter`."""
    return collective.scatter(tensor, _parts(tensor_or_tensor_list, group, "scatter"), src, group, sync_op)


def reduce_scatter(
    tensor: Tensor, tensor_or_tensor_list: Parts, op: int = ReduceOp.SUM, group: Group | None = None,
    sync_op: bool = True, use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """See :func:`argosy.distributed.reduce_scatter`."""
    parts = _parts(tensor_or_tensor_list, group, "reduce_scatter")
    return collective.reduce_scatter(tensor, parts or [], op, group, sync_op)


def alltoall(
    out_tensor_or_tensor_list: Parts, in_tensor_or_tensor_list: Parts, group: Group | None = None,
    sync_op: bool = True, use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """See :func:`argosy.distributed.alltoall`."""
    sent = _parts(in_tensor_or_tensor_list, group, "alltoall") or []
    return _communicate_into(out_tensor_or_tensor_list, lambda found: collective.alltoall(found, sent, group, sync_op))


def alltoall_single(
    out_tensor: Tensor, in_tensor: Tensor, out_split_sizes: Sequence[int] | None = None,
    in_split_sizes: Sequence[int] | None = None, group: Group | None = None, sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """See :func:`argosy.distributed.alltoall_single`; here the sizes of what comes stand first."""
    return collective.alltoall_single(out_tensor, in_tensor, in_split_sizes, out_split_sizes, group, sync_op)


def send(
    tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False
) -> Task | None:
    """See :func:`argosy.distributed.send`."""
    return point_to_point.send(tensor, dst, group, sync_op)


def recv(
    tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False
) -> Task | None:
    """See :func:`argosy.distributed.recv`."""
    return point_to_point.recv(tensor, src, group, sync_op)


def _parts(given: Any, group: Group | None, kind: str) -> list[Tensor] | None:
    """A tensor as one part for each member of the group; lists as they are."""
    if type(given) is not Tensor:
        return None if given is None else list(given)
    count = (world_group() if group is None else group).nranks
    if not given.ndim or given.shape[0] % count:
        raise ValueError(f"{kind}: a tensor of shape {given.shape} has no {count} equal parts along axis 0")
    return list(get_operator("split")(given, count))


def _communicate_into(target: Any, communicate: Callable[[list[Tensor]], Task | None]) -> Task | None:
    """Communicate into a list, or into the parts of one tensor."""
    if type(target) is not Tensor:
        return communicate(target)
    found: list[Tensor] = []
    task = communicate(found)
    if found:
        target.set_value(get_operator("concat")(found).reshape(target.shape))
    return task
