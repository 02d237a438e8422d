"""Collectives on local tensors, in place, with Paddle's signatures.

``group=None`` is the group of all ranks; ``src`` and ``dst`` are ranks of the whole job. All members must call the same
collectives in the same order with tensors of equal shape and dtype. What is returned is done already; ranks that are
not members get None. Nothing here is differentiated. In a captured function they are operations of its program.

Errors: TypeError for what is no local tensor, ValueError for lists and shapes that do not fit, CollectiveMismatch
when ranks call different things, RankFailure when one is gone.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from argosy.api import lazy_names
from argosy.distributed import captured_collectives
from argosy.distributed.buffers import (
    Operand,
    assign,
    deliver,
    empty_like,
    is_direct,
    read_operand,
    row_parts,
    stack_operands,
    write_operand,
)
from argosy.distributed.call_checks import agree
from argosy.distributed.captured_collectives import COMPOSITE, is_capturing
from argosy.distributed.environment import get_rank
from argosy.distributed.group import Group, world_group
from argosy.distributed.reduction import ReduceOp, reduction_name
from argosy.distributed.task import Task
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "all_gather", "all_reduce", "alltoall", "alltoall_single", "barrier", "broadcast", "gather", "reduce",
    "reduce_scatter", "scatter", "wait",
]  # fmt: skip

_DONE = Task()

__getattr__, __dir__ = lazy_names(__name__, globals())  # what older libraries look for here


def member_group(group: Group | None, kind: str) -> Group | None:
    """The group that is meant; None, with a warning, when this rank is not a member."""
    chosen = world_group() if group is None else group
    if chosen.is_member():
        return chosen
    warnings.warn(f"{kind}: rank {get_rank()} is not a member of {chosen!r} and does nothing", stacklevel=3)
    return None


def barrier(group: Group | None = None) -> None:
    """Wait until every member is here."""
    chosen = member_group(group, "barrier")
    if chosen is not None:
        captured_collectives.barrier(chosen) if is_capturing() else chosen.communicator.barrier()


def wait(tensor: Tensor, group: Group | None = None, use_calc_stream: bool = True) -> None:
    """Wait until communication on ``tensor`` is done: it always is."""


def all_reduce(tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Combine ``tensor`` of all members elementwise; everybody gets the result in place."""
    name = reduction_name(op, "all_reduce")
    chosen = member_group(group, "all_reduce")
    if chosen is None:
        return None
    if is_capturing():
        captured_collectives.all_reduce(tensor, chosen, name)
        return _DONE
    with write_operand(tensor, "all_reduce", is_direct(chosen.communicator, "all_reduce", tensor)) as array:
        chosen.communicator.all_reduce(array, array, name)
    return _DONE


def reduce(
    tensor: Tensor, dst: int, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Combine ``tensor`` of all members; rank ``dst`` gets the result in place, the others keep what they have."""
    name = reduction_name(op, "reduce")
    chosen = member_group(group, "reduce")
    if chosen is None:
        return None
    root = chosen.peer(dst, "reduce")
    if is_capturing():
        captured_collectives.reduce(tensor, chosen, name, root)
        return _DONE
    with read_operand(tensor, "reduce", is_direct(chosen.communicator, "reduce", tensor)) as send:
        total = empty_like(send, send.shape)
        chosen.communicator.all_reduce(send, total, name)
    if chosen.rank == root:
        assign(tensor, total, "reduce")
    return _DONE


def broadcast(tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Copy ``tensor`` of rank ``src`` into ``tensor`` of the others."""
    chosen = member_group(group, "broadcast")
    if chosen is None:
        return None
    if is_capturing():
        captured_collectives.broadcast(tensor, chosen, chosen.peer(src, "broadcast"))
        return _DONE
    with write_operand(tensor, "broadcast", is_direct(chosen.communicator, "broadcast", tensor)) as array:
        chosen.communicator.broadcast(array, chosen.peer(src, "broadcast"))
    return _DONE


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Put every member's ``tensor`` into ``tensor_list``, in the order of ranks: appended when it is empty."""
    chosen = member_group(group, "all_gather")
    if chosen is None:
        return None
    if is_capturing():
        captured_collectives.all_gather(tensor_list, tensor, chosen)
        return _DONE
    with read_operand(tensor, "all_gather", is_direct(chosen.communicator, "all_gather", tensor)) as send:
        whole = empty_like(send, (chosen.nranks, *send.shape))
        chosen.communicator.all_gather(send, whole)
    deliver(row_parts(whole), tensor_list, "all_gather", tensor)
    return _DONE


def gather(
    tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int = 0, group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:  # fmt: skip
    """Put every member's ``tensor`` into ``gather_list`` of rank ``dst``."""
    chosen = member_group(group, "gather")
    if chosen is None:
        return None
    root = chosen.peer(dst, "gather")
    if chosen.rank == root and gather_list is None:
        raise ValueError("gather: the receiving rank must give gather_list, a list that is empty or has a tensor each")
    if is_capturing():
        captured_collectives.gather(gather_list, tensor, chosen, root)
        return _DONE
    with read_operand(tensor, "gather", is_direct(chosen.communicator, "gather", tensor)) as send:
        agree(chosen.communicator, "gather", dtype=send.dtype, size=send.size, dst=dst)
        chosen.communicator.send(send, root, COMPOSITE)
        if chosen.rank == root and gather_list is not None:
            parts = [empty_like(send, send.shape) for _ in range(chosen.nranks)]
            _receive(chosen, parts)
            deliver(parts, gather_list, "gather", tensor)
    return _DONE


def reduce_scatter(
    tensor: Tensor, tensor_list: Sequence[Tensor], op: int = ReduceOp.SUM, group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:  # fmt: skip
    """Combine ``tensor_list`` of all members position by position; member r gets position r in ``tensor``."""
    name = reduction_name(op, "reduce_scatter")
    chosen = member_group(group, "reduce_scatter")
    if chosen is None:
        return None
    if is_capturing():
        captured_collectives.reduce_scatter(tensor, tensor_list, chosen, name)
        return _DONE
    direct = is_direct(chosen.communicator, "reduce_scatter", tensor, *tensor_list)
    send = stack_operands(tensor_list, chosen.nranks, "reduce_scatter", direct)
    with write_operand(tensor, "reduce_scatter", direct) as array:
        chosen.communicator.reduce_scatter(send, array, name)
    return _DONE


def scatter(
    tensor: Tensor, tensor_list: Sequence[Tensor] | None = None, src: int = 0, group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:  # fmt: skip
    """Give position r of rank ``src``'s ``tensor_list`` to member r, in ``tensor``."""
    chosen = member_group(group, "scatter")
    if chosen is None:
        return None
    root = chosen.peer(src, "scatter")
    if is_capturing():
        captured_collectives.scatter(tensor, tensor_list, chosen, root)
        return _DONE
    given = tuple(tensor_list or ()) if chosen.rank == root else ()
    direct = is_direct(chosen.communicator, "scatter", tensor, *given)
    parts = row_parts(stack_operands(given, chosen.nranks, "scatter", direct)) if chosen.rank == root else ()
    with write_operand(tensor, "scatter", direct) as array:
        agree(chosen.communicator, "scatter", dtype=array.dtype, size=array.size, src=src)
        for peer, part in enumerate(parts):
            chosen.communicator.send(part, peer, COMPOSITE)
        chosen.communicator.recv(array, root, COMPOSITE)
    return _DONE


def alltoall(
    out_tensor_list: list[Tensor], in_tensor_list: Sequence[Tensor], group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Give position r of ``in_tensor_list`` to member r; ``out_tensor_list`` gets what came, in the order of ranks."""
    chosen = member_group(group, "alltoall")
    if chosen is None:
        return None
    if is_capturing():
        captured_collectives.alltoall(out_tensor_list, in_tensor_list, chosen)
        return _DONE
    direct = is_direct(chosen.communicator, "alltoall", *in_tensor_list)
    send = stack_operands(in_tensor_list, chosen.nranks, "alltoall", direct)
    recv = empty_like(send, send.shape)
    chosen.communicator.all_to_all(send, recv)
    deliver(row_parts(recv), out_tensor_list, "alltoall", in_tensor_list[0])
    return _DONE


def alltoall_single(
    out_tensor: Tensor, in_tensor: Tensor, in_split_sizes: Sequence[int] | None = None,
    out_split_sizes: Sequence[int] | None = None, group: Group | None = None, sync_op: bool = True,
) -> Task | None:  # fmt: skip
    """Give part r of ``in_tensor`` to member r; ``out_tensor`` holds what came. Parts are cut along dimension 0:
    equal ones, or as the split sizes say.
    """
    chosen = member_group(group, "alltoall_single")
    if chosen is None:
        return None
    equal = in_split_sizes is None and out_split_sizes is None
    if is_capturing():
        outgoing = None if equal else _sizes(in_tensor.shape, in_split_sizes, chosen.nranks, "in_split_sizes")
        incoming = None if equal else _sizes(out_tensor.shape, out_split_sizes, chosen.nranks, "out_split_sizes")
        captured_collectives.alltoall_single(out_tensor, in_tensor, chosen, outgoing, incoming)
        return _DONE
    direct = is_direct(chosen.communicator, "alltoall_single", in_tensor, out_tensor)
    with (
        read_operand(in_tensor, "alltoall_single", direct) as send,
        write_operand(out_tensor, "alltoall_single", direct) as array,
    ):
        if equal:
            chosen.communicator.all_to_all(send, array)
        else:
            _exchange(chosen, send, array, in_split_sizes, out_split_sizes)
    return _DONE


def _exchange(
    group: Group, send: Operand, recv: Operand, in_sizes: Sequence[int] | None, out_sizes: Sequence[int] | None
) -> None:
    outgoing = _split(send, in_sizes, group.nranks, "in_split_sizes")
    incoming = _split(recv, out_sizes, group.nranks, "out_split_sizes")
    agree(group.communicator, "alltoall_single", dtype=send.dtype)
    for peer, part in enumerate(outgoing):
        group.communicator.send(part, peer, COMPOSITE)
    _receive(group, incoming)


def _split(operand: Operand, sizes: Sequence[int] | None, parts: int, what: str) -> list[Operand]:
    return row_parts(operand, _sizes(operand.shape, sizes, parts, what))


def _sizes(shape: Sequence[int], sizes: Sequence[int] | None, parts: int, what: str) -> list[int]:
    rows = shape[0] if len(shape) else 0
    chosen = list(sizes) if sizes is not None else [rows // parts] * parts
    if len(chosen) != parts or sum(chosen) != rows:
        raise ValueError(f"alltoall_single: {what} {chosen} must be {parts} sizes that add up to {rows}")
    return chosen


def _receive(group: Group, parts: Sequence[Operand]) -> None:
    for peer, part in enumerate(parts):
        group.communicator.recv(part, peer, COMPOSITE)
