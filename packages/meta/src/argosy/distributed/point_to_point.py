"""Messages between two ranks. Sending copies and never waits; receiving waits.

Peers are ranks of the whole job; the shape and dtype of a received tensor are the receiver's, and must be the
sender's. Messages between two ranks keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from argosy.distributed import captured_collectives
from argosy.distributed.buffers import is_direct, read_operand, write_operand
from argosy.distributed.captured_collectives import is_capturing
from argosy.distributed.collective import member_group
from argosy.distributed.group import Group
from argosy.distributed.task import Task
from argosy_tensorcore.tensor import Tensor

__all__ = ["P2POp", "batch_isend_irecv", "coalescing_manager", "irecv", "isend", "recv", "send"]


def isend(tensor: Tensor, dst: int = 0, group: Group | None = None) -> Task | None:
    """Send a copy of ``tensor`` to rank ``dst``."""
    chosen = member_group(group, "send")
    if chosen is None:
        return None
    peer = chosen.peer(dst, "send")
    if is_capturing():
        captured_collectives.send(tensor, chosen, peer)
    else:
        with read_operand(tensor, "send", is_direct(chosen.communicator, "send", tensor)) as array:
            chosen.communicator.send(array, peer)
    return Task()


def send(tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Send a copy of ``tensor`` to rank ``dst``; does not wait until it was received."""
    return isend(tensor, dst, group)


def irecv(tensor: Tensor, src: int | None = None, group: Group | None = None) -> Task | None:
    """Ask for a message from rank ``src`` (default: the first); it is in ``tensor`` once the task was waited for."""
    chosen = member_group(group, "recv")
    if chosen is None:
        return None
    peer, communicator = chosen.peer(src or 0, "recv"), chosen.communicator

    def receive() -> None:
        if is_capturing():
            captured_collectives.recv(tensor, chosen, peer)
            return
        with write_operand(tensor, "recv", is_direct(communicator, "recv", tensor)) as array:
            communicator.recv(array, peer)

    return chosen.postbox(peer).ask(receive)


def recv(tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Wait for a message from rank ``src`` and write it to ``tensor``; with ``sync_op=False`` as :func:`irecv`."""
    task = irecv(tensor, src, group)
    if task is not None and sync_op:
        task.wait()
    return task


class P2POp:
    """One message of a batch: ``P2POp(isend, tensor, peer)`` or ``P2POp(irecv, tensor, peer)``."""

    def __init__(self, op: Callable[..., Task | None], tensor: Tensor, peer: int, group: Group | None = None) -> None:
        if op not in (isend, irecv):
            raise RuntimeError(f"P2POp takes distributed.isend or distributed.irecv, not {op!r}")
        self.op, self.tensor, self.peer, self.group = op, tensor, peer, group


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Task]:
    """Start all messages of the list; returns their tasks."""
    tasks = [item.op(item.tensor, item.peer, item.group) for item in p2p_op_list]
    return [task for task in tasks if task is not None]


@contextmanager
def coalescing_manager(group: Group | None, tasks: list[Task] | None = None) -> Iterator[None]:
    """A block whose messages may be started together. Here each is started by itself, sending copies, so that nothing
    is left for its end; the tasks are those that its calls returned."""
    yield
