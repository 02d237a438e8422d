"""Collectives on tensors of a captured function: each is an operation of its program, in the order of the calls.

What they mean is what they mean eagerly. The gradient of a tensor that is overwritten in place passes as it is; what
came from other ranks is a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.distributed.group import Group
from argosy_autograd.modes import no_grad
from argosy_autograd.pylayer import PyLayer
from argosy_autoparallel.dist_tensor import is_dist
from argosy_autoparallel.rank_operators import communicate
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.context import grad_enabled
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "all_gather", "all_reduce", "alltoall", "alltoall_single", "barrier", "broadcast", "gather", "is_capturing",
    "leave_capture", "recv", "reduce", "reduce_scatter", "scatter", "send",
]  # fmt: skip

COMPOSITE = 1
"""The message tag of collectives that are made of messages."""


def is_capturing() -> bool:
    """Whether this rank is capturing a function now."""
    return active_tracer() is not None


def leave_capture(kind: str) -> None:
    """Leave a capture, or raise NotImplementedError where it must be whole: ``kind`` moves Python's objects."""
    tracer: Any = active_tracer()
    if tracer is None:
        return
    why = f"{kind} within a captured function is not implemented: it moves Python objects, which programs do not have"
    if not tracer.breaks:
        raise NotImplementedError(f"{why}; call it outside of to_static(full_graph=True)")
    tracer.give_up(why)


def all_reduce(tensor: Tensor, group: Group, kind: str) -> None:
    """See :func:`argosy.distributed.all_reduce`; ``kind`` is the reduction's name."""
    _overwrite(tensor, lambda x: _record("all_reduce", x, group, size=group.nranks, kind=kind), "all_reduce")


def reduce(tensor: Tensor, group: Group, kind: str, root: int) -> None:
    """See :func:`argosy.distributed.reduce`."""
    total = _record("all_reduce", _check_local(tensor, "reduce"), group, size=group.nranks, kind=kind)
    if group.rank == root:
        _overwrite(tensor, lambda _: total, "reduce")


def broadcast(tensor: Tensor, group: Group, root: int) -> None:
    """See :func:`argosy.distributed.broadcast`."""
    _overwrite(tensor, lambda x: _record("broadcast", x, group, size=group.nranks, root=root), "broadcast")


def barrier(group: Group) -> None:
    """See :func:`argosy.distributed.barrier`: a sum of nothing, for which everybody waits."""
    _record("all_reduce", get_operator("full")([], 0, "int32"), group, size=group.nranks)


def all_gather(into: list[Tensor], tensor: Tensor, group: Group) -> None:
    """See :func:`argosy.distributed.all_gather`."""
    _deliver(
        _record("all_gather", _stack([_check_local(tensor, "all_gather")]), group, size=group.nranks),
        into,
        "all_gather",
    )


def gather(into: list[Tensor] | None, tensor: Tensor, group: Group, root: int) -> None:
    """See :func:`argosy.distributed.gather`."""
    _record("send", _check_local(tensor, "gather"), group, peer=root, tag=COMPOSITE)
    if group.rank == root and into is not None:
        parts = [_record("recv", tensor, group, peer=peer, tag=COMPOSITE) for peer in range(group.nranks)]
        _deliver(_stack(parts), into, "gather")


def reduce_scatter(tensor: Tensor, parts: Sequence[Tensor], group: Group, kind: str) -> None:
    """See :func:`argosy.distributed.reduce_scatter`."""
    send = _stack(_check_equal(parts, group, "reduce_scatter"))
    _replace(tensor, _record("reduce_scatter", send, group, size=group.nranks, kind=kind), "reduce_scatter")


def scatter(tensor: Tensor, parts: Sequence[Tensor] | None, group: Group, root: int) -> None:
    """See :func:`argosy.distributed.scatter`."""
    if group.rank == root:
        for peer, part in enumerate(_check_equal(parts or (), group, "scatter")):
            _record("send", _check_local(part, "scatter"), group, peer=peer, tag=COMPOSITE)
    _replace(tensor, _record("recv", _check_local(tensor, "scatter"), group, peer=root, tag=COMPOSITE), "scatter")


def alltoall(into: list[Tensor], parts: Sequence[Tensor], group: Group) -> None:
    """See :func:`argosy.distributed.alltoall`."""
    send = _stack(_check_equal(parts, group, "alltoall"))
    _deliver(_record("all_to_all", send, group, size=group.nranks), into, "alltoall")


def alltoall_single(
    into: Tensor, tensor: Tensor, group: Group, sent: Sequence[int] | None, received: Sequence[int] | None
) -> None:
    """See :func:`argosy.distributed.alltoall_single`: equal parts, or of the sizes that both sides say."""
    if sent is None or received is None:
        made = _record("all_to_all", _check_local(tensor, "alltoall_single"), group, size=group.nranks)
    else:
        with no_grad():
            outgoing, places = _cut(tensor, sent), _cut(into, received)
            for peer, part in enumerate(outgoing):
                _record("send", _check_local(part, "alltoall_single"), group, peer=peer, tag=COMPOSITE)
            arrived = [_record("recv", place, group, peer=p, tag=COMPOSITE) for p, place in enumerate(places)]
            made = get_operator("concat")(arrived)
    _replace(into, made, "alltoall_single")


def send(tensor: Tensor, group: Group, peer: int) -> None:
    """See :func:`argosy.distributed.send`."""
    _record("send", _check_local(tensor, "send"), group, peer=peer)


def recv(tensor: Tensor, group: Group, peer: int) -> None:
    """See :func:`argosy.distributed.recv`."""
    _replace(tensor, _record("recv", _check_local(tensor, "recv"), group, peer=peer), "recv")


class _IdentityGradient(PyLayer):
    """What happens to the values; the gradient passes as it is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, run: Callable[[Tensor], Tensor]) -> Tensor:
        return run(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g


def _record(name: str, x: Tensor, group: Group, **attributes: Any) -> Tensor:
    with no_grad():
        return communicate(name, x, group=group.key, **attributes)


def _overwrite(tensor: Tensor, run: Callable[[Tensor], Tensor], kind: str) -> None:
    """Write what ``run`` makes of the tensor to it; gradients of what it was go on."""
    _check_local(tensor, kind)
    if tensor.payload.is_traced and not tensor.stop_gradient and grad_enabled():
        write(tensor, _IdentityGradient.apply(tensor, run))
        return
    with no_grad():
        write(tensor, run(tensor))


def _replace(tensor: Tensor, value: Tensor, kind: str) -> None:
    """Write a value of the tensor's size to it."""
    _check_local(tensor, kind)
    if tensor.size != value.size:
        raise ValueError(f"{kind}: {list(value.shape)} does not fit a result of shape {list(tensor.shape)}")
    with no_grad():
        write(tensor, value.reshape(tensor.shape))


def _deliver(stacked: Tensor, into: list[Tensor], kind: str) -> None:
    """One result for each rank: appended to an empty list, else written into its tensors."""
    with no_grad():
        parts = list(get_operator("unbind")(stacked))
    if not into:
        into.extend(parts)
        return
    if len(into) != len(parts):
        raise ValueError(f"{kind}: the list of results has {len(into)} tensors; expected none or {len(parts)}")
    for tensor, part in zip(into, parts, strict=True):
        _replace(tensor, part, kind)


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    with no_grad():
        return get_operator("stack")(list(tensors))  # type: ignore[no-any-return]


def _cut(tensor: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    return list(get_operator("split")(tensor, list(sizes)))


def _check_equal(tensors: Sequence[Tensor], group: Group, kind: str) -> Sequence[Tensor]:
    found = {(tuple(x.shape), x.dtype.name) for x in tensors if _check_local(x, kind) is x}
    if len(tensors) != group.nranks or len(found) != 1:
        raise ValueError(
            f"{kind}: expected {group.nranks} tensors of one shape and dtype, one for each rank; got {len(tensors)}: "
            f"{[(list(x.shape), x.dtype.name) for x in tensors]}"
        )
    return tensors


def _check_local(tensor: Any, kind: str) -> Tensor:
    if type(tensor) is not Tensor:
        raise TypeError(f"{kind}: expected a tensor, got {type(tensor).__name__}")
    if is_dist(tensor):
        raise TypeError(f"{kind}: takes a local tensor, got a distributed one; use reshard, or its _local_value()")
    return tensor
