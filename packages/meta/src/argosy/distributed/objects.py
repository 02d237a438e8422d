"""Collectives on picklable Python objects. The ranks of a job trust each other: unpickling executes code."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.distributed.buffers import Array
from argosy.distributed.captured_collectives import leave_capture
from argosy.distributed.collective import member_group
from argosy.distributed.group import Group

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_bytes", "recv_object_list", "scatter_object_list",
    "send_object_list",
]  # fmt: skip


def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None) -> None:
    """Append every member's ``obj`` to ``object_list``, in the order of ranks."""
    leave_capture("all_gather_object")
    chosen = member_group(group, "all_gather_object")
    if chosen is not None:
        object_list.extend(pickle.loads(data) for data in gather_bytes(chosen, pickle.dumps(obj)))


def broadcast_object_list(object_list: list[Any], src: int, group: Group | None = None) -> None:
    """Replace the objects in ``object_list`` by those of rank ``src``."""
    leave_capture("broadcast_object_list")
    chosen = member_group(group, "broadcast_object_list")
    if chosen is not None:
        object_list[:] = _from_root(chosen, object_list, chosen.peer(src, "broadcast_object_list"))


def scatter_object_list(
    out_object_list: list[Any], in_object_list: Sequence[Any] | None = None, src: int = 0, group: Group | None = None
) -> None:
    """Make ``out_object_list`` the one object that rank ``src``'s list has for this member."""
    leave_capture("scatter_object_list")
    chosen = member_group(group, "scatter_object_list")
    if chosen is None:
        return
    root = chosen.peer(src, "scatter_object_list")
    if chosen.rank == root and len(in_object_list or ()) != chosen.nranks:
        raise ValueError(
            f"scatter_object_list: {len(in_object_list or ())} objects for {chosen.nranks} ranks; expected one each"
        )
    out_object_list[:] = [_from_root(chosen, in_object_list, root)[chosen.rank]]


def send_object_list(
    object_list: Sequence[Any], dst: int | None = None, group: Group | None = None, dst_in_group: int | None = None
) -> None:
    """Send the objects to rank ``dst`` of the job, or ``dst_in_group`` of the group, which receives as many."""
    leave_capture("send_object_list")
    chosen = member_group(group, "send_object_list")
    if chosen is None:
        return
    peer = _place(chosen, dst, dst_in_group, "send_object_list")
    data = np.frombuffer(pickle.dumps(list(object_list)), np.uint8)
    chosen.communicator.send(np.array([data.size, len(object_list)], np.int64), peer)
    chosen.communicator.send(data, peer)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Group | None = None, src_in_group: int | None = None
) -> None:
    """Replace the objects in ``object_list`` by those that rank ``src`` sends. Raises ValueError for another number."""
    leave_capture("recv_object_list")
    chosen = member_group(group, "recv_object_list")
    if chosen is None:
        return
    peer = _place(chosen, src, src_in_group, "recv_object_list")
    sizes = np.empty(2, np.int64)
    chosen.communicator.recv(sizes, peer)
    data = np.empty(int(sizes[0]), np.uint8)
    chosen.communicator.recv(data, peer)
    if int(sizes[1]) != len(object_list):
        raise ValueError(f"recv_object_list: {len(object_list)} objects expected, {int(sizes[1])} came")
    object_list[:] = pickle.loads(data.tobytes())


def _place(group: Group, rank: int | None, place: int | None, kind: str) -> int:
    """A member's place, from its number in the job or in the group; the first rank without either."""
    if rank is not None and place is not None:
        raise ValueError(f"{kind}: give the rank in the job or in the group, not both ({rank} and {place})")
    if place is None:
        return group.peer(0 if rank is None else rank, kind)
    if not 0 <= place < group.nranks:
        raise ValueError(f"{kind}: {group!r} has no place {place}")
    return place


def _from_root(group: Group, value: Any, root: int) -> Any:
    data = np.frombuffer(pickle.dumps(value), np.uint8) if group.rank == root else np.empty(0, np.uint8)
    size = np.array([data.size], np.int64)
    group.communicator.broadcast(size, root)
    buffer = data if group.rank == root else np.empty(int(size[0]), np.uint8)
    group.communicator.broadcast(buffer, root)
    return pickle.loads(buffer.tobytes())


def gather_bytes(group: Group, data: bytes) -> list[bytes]:
    """Every member's ``data``, of different lengths, in the order of ranks."""
    sizes: Array = np.empty(group.nranks, np.int64)
    group.communicator.all_gather(np.array([len(data)], np.int64), sizes)
    longest = int(sizes.max())
    whole = np.empty((group.nranks, longest), np.uint8)
    group.communicator.all_gather(np.frombuffer(data.ljust(longest, b"\0"), np.uint8), whole)
    return [row[:size].tobytes() for row, size in zip(whole, sizes, strict=True)]
