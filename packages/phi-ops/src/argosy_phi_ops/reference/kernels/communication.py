"""Collectives through a `Communicator` (argosy_hwadapt): each call is one call of it, in program order.

Every kernel takes the keyword `communicators`: from a `group` (a tuple of ranks, empty for all) to its
communicator. Tokens carry no value; they are None. Those that write to a given array need no memory of their own where
parts are along the first axis, since these lie one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops.reference.kernels.registry import Array, kernel, kernel_into, numpy_dtype

Communicators = Mapping[tuple[int, ...], Any]


def communicator_of(communicators: Communicators, group: Sequence[int], name: str) -> Any:
    """The communicator of a group. Raises RuntimeError where none was given, naming the primitive."""
    found = communicators.get(tuple(group))
    if found is None:
        raise RuntimeError(
            f"prim.{name}: no communicator for the group {tuple(group) or '() of all ranks'}; "
            f"given were those of {sorted(communicators)}"
        )
    return found


@kernel("create_token")
def create_token(*, communicators: Communicators) -> None:
    """The token that begins a chain of effects."""
    return None


@kernel("all_reduce")
def all_reduce(x: Array, token: None, **attributes: Any) -> tuple[Array, None]:
    """The sum (prod, max, min) of every rank's `x`."""
    result = np.empty(x.shape, x.dtype)
    all_reduce_into(result, x, token, **attributes)
    return result, None


@kernel_into("all_reduce")
def all_reduce_into(
    out: Array,
    x: Array,
    token: None,
    *,
    group: Sequence[int] = (),
    size: int,
    kind: str = "sum",
    communicators: Communicators,
) -> None:
    """`all_reduce` to `out`, which may have the memory of `x`."""
    send = out if _is_same_memory(out, x) else np.ascontiguousarray(x)
    communicator_of(communicators, group, "all_reduce").all_reduce(send, out, op=kind)


@kernel("all_gather")
def all_gather(x: Array, token: None, *, size: int, axis: int = 0, **attributes: Any) -> tuple[Array, None]:
    """Every rank's `x`, joined along `axis` in the order of the ranks."""
    result = np.empty((*x.shape[:axis], size * x.shape[axis], *x.shape[axis + 1 :]), x.dtype)
    all_gather_into(result, x, token, size=size, axis=axis, **attributes)
    return result, None


@kernel_into("all_gather")
def all_gather_into(
    out: Array,
    x: Array,
    token: None,
    *,
    group: Sequence[int] = (),
    size: int,
    axis: int = 0,
    communicators: Communicators,
) -> None:
    """`all_gather` to `out`."""
    parts = out if axis == 0 else np.empty((size, *x.shape), x.dtype)
    communicator_of(communicators, group, "all_gather").all_gather(np.ascontiguousarray(x), parts)
    if parts is not out:
        np.concatenate(list(parts), axis, out=out)


@kernel("reduce_scatter")
def reduce_scatter(x: Array, token: None, *, size: int, axis: int = 0, **attributes: Any) -> tuple[Array, None]:
    """This rank's part along `axis` of the reduced `x`."""
    result = np.empty((*x.shape[:axis], x.shape[axis] // size, *x.shape[axis + 1 :]), x.dtype)
    reduce_scatter_into(result, x, token, size=size, axis=axis, **attributes)
    return result, None


@kernel_into("reduce_scatter")
def reduce_scatter_into(
    out: Array,
    x: Array,
    token: None,
    *,
    group: Sequence[int] = (),
    size: int,
    axis: int = 0,
    kind: str = "sum",
    communicators: Communicators,
) -> None:
    """`reduce_scatter` to `out`."""
    communicator_of(communicators, group, "reduce_scatter").reduce_scatter(_parts(x, size, axis), out, op=kind)


@kernel("all_gather_coalesced")
def all_gather_coalesced(*operands: Any, size: int, **attributes: Any) -> tuple[Any, ...]:
    """Every rank's tensors, each joined along its first axis."""
    results = [np.empty((size * x.shape[0], *x.shape[1:]), x.dtype) for x in operands[:-1]]
    all_gather_coalesced_into(results, *operands, size=size, **attributes)
    return *results, None


@kernel_into("all_gather_coalesced")
def all_gather_coalesced_into(
    outs: Sequence[Array], *operands: Any, group: Sequence[int] = (), size: int, communicators: Communicators
) -> None:
    """`all_gather_coalesced` to `outs`."""
    given = [np.ascontiguousarray(x) for x in operands[:-1]]
    communicator_of(communicators, group, "all_gather_coalesced").all_gather_coalesced(given, outs)


@kernel("reduce_scatter_coalesced")
def reduce_scatter_coalesced(*operands: Any, size: int, **attributes: Any) -> tuple[Any, ...]:
    """This rank's part along the first axis of each reduced tensor."""
    results = [np.empty((x.shape[0] // size, *x.shape[1:]), x.dtype) for x in operands[:-1]]
    reduce_scatter_coalesced_into(results, *operands, size=size, **attributes)
    return *results, None


@kernel_into("reduce_scatter_coalesced")
def reduce_scatter_coalesced_into(
    outs: Sequence[Array],
    *operands: Any,
    group: Sequence[int] = (),
    size: int,
    kind: str = "sum",
    communicators: Communicators,
) -> None:
    """`reduce_scatter_coalesced` to `outs`, of which each may begin where its operand does."""
    given = [np.ascontiguousarray(x) for x in operands[:-1]]
    communicator_of(communicators, group, "reduce_scatter_coalesced").reduce_scatter_coalesced(given, outs, op=kind)


@kernel("all_to_all")
def all_to_all(
    x: Array,
    token: None,
    *,
    group: Sequence[int] = (),
    size: int,
    split_axis: int,
    concat_axis: int,
    communicators: Communicators,
) -> tuple[Array, None]:
    """Part `r` along `split_axis` goes to rank `r`; what arrives is joined along `concat_axis`."""
    parts = _parts(x, size, split_axis)
    arrived = np.empty_like(parts)
    communicator_of(communicators, group, "all_to_all").all_to_all(parts, arrived)
    return np.concatenate(list(arrived), concat_axis), None


@kernel("broadcast_rank")
def broadcast_rank(
    x: Array, token: None, *, group: Sequence[int] = (), size: int, root: int, communicators: Communicators
) -> tuple[Array, None]:
    """The `x` of the group's member number `root`."""
    result = np.array(x, order="C")
    communicator_of(communicators, group, "broadcast_rank").broadcast(result, root)
    return result, None


@kernel("send")
def send(
    x: Array, token: None, *, group: Sequence[int] = (), peer: int, tag: int = 0, communicators: Communicators
) -> None:
    """Send `x` to the group's member number `peer`."""
    communicator_of(communicators, group, "send").send(np.ascontiguousarray(x), peer, tag)


@kernel("recv")
def recv(
    token: None, *, shape: Sequence[int], dtype: str, group: Sequence[int] = (), peer: int, tag: int = 0,
    communicators: Communicators,
) -> tuple[Array, None]:  # fmt: skip
    """A tensor from the group's member number `peer`."""
    result = np.empty(shape, numpy_dtype(dtype))
    communicator_of(communicators, group, "recv").recv(result, peer, tag)
    return result, None


@kernel("permute")
def permute(
    x: Array, token: None, *, pairs: Sequence[Sequence[int]], communicators: Communicators
) -> tuple[Array, None]:
    """`x` sent along the (source, target) pairs, by messages; zeros where this rank is no target."""
    result = np.empty(x.shape, x.dtype)
    communicator_of(communicators, (), "permute").permute(np.ascontiguousarray(x), result, pairs)
    return result, None


@kernel("start")
def start(
    x: Array, token: None, *, collective: str, group: Sequence[int] = (), size: int = 0, axis: int = 0,
    concat_axis: int = 0, kind: str = "sum", root: int = 0, pairs: Sequence[Sequence[int]] = (),
    communicators: Communicators,
) -> tuple[Array, _StartedCollective, None]:  # fmt: skip
    """Begin a collective on a copy of `x`, whose memory may be used again before it is done."""
    communicator = communicator_of(communicators, group, "start")
    send = _parts(x, size, axis) if collective in ("reduce_scatter", "all_to_all") else np.array(x, order="C")
    send = send.copy() if np.may_share_memory(send, x) else send
    if collective == "all_reduce":
        made = _StartedCollective(communicator.start_all_reduce(send, send, kind), send)
    elif collective == "all_gather":
        parts = np.empty((size, *x.shape), x.dtype)
        made = _StartedCollective(communicator.start_all_gather(send, parts), parts, axis)
    elif collective == "reduce_scatter":
        part = np.empty(send.shape[1:], x.dtype)
        made = _StartedCollective(communicator.start_reduce_scatter(send, part, kind), part)
    elif collective == "all_to_all":
        arrived = np.empty_like(send)
        made = _StartedCollective(communicator.start_all_to_all(send, arrived), arrived, concat_axis)
    elif collective == "permute":
        arrived = np.empty_like(send)
        made = _StartedCollective(communicator.start_permute(send, arrived, pairs), arrived)
    else:
        made = _StartedCollective(communicator.start_broadcast(send, root), send)
    return made.placeholder(), made, None


@kernel("start_recv")
def start_recv(
    token: None, *, shape: Sequence[int], dtype: str, group: Sequence[int] = (), peer: int, tag: int = 0,
    communicators: Communicators,
) -> tuple[Array, _StartedCollective, None]:  # fmt: skip
    """Begin to wait for a tensor from the group's member number `peer`."""
    result = np.empty(shape, numpy_dtype(dtype))
    made = _StartedCollective(communicator_of(communicators, group, "start_recv").start_recv(result, peer, tag), result)
    return made.placeholder(), made, None


@kernel("wait")
def wait(x: Array, handle: _StartedCollective, token: None, *, communicators: Communicators) -> tuple[Array, None]:
    """What the collective that was started gives, once it is done."""
    return handle.wait(), None


@kernel_into("wait")
def wait_into(out: Array, x: Array, handle: _StartedCollective, token: None, *, communicators: Communicators) -> None:
    """`wait` to `out`."""
    handle.wait_into(out)


class _StartedCollective:
    """A collective on its way: its handle, where it puts its parts, and the axis that they are joined along."""

    def __init__(self, handle: Any, parts: Array, axis: int | None = None) -> None:
        self._handle, self._parts, self._axis = handle, parts, axis

    def placeholder(self) -> Array:
        """An array of the result's shape, which nobody reads."""
        shape = self._parts.shape
        if self._axis is not None:
            shape = tuple(n * shape[0] if i == self._axis else n for i, n in enumerate(shape[1:]))
        return np.broadcast_to(np.zeros((), self._parts.dtype), shape)

    def wait(self) -> Array:
        """The result."""
        self._handle.wait()
        return self._parts if self._axis is None else np.concatenate(list(self._parts), self._axis)

    def wait_into(self, out: Array) -> None:
        """Write the result to ``out``."""
        self._handle.wait()
        if self._axis is None:
            out[...] = self._parts
        else:
            np.concatenate(list(self._parts), self._axis, out=out)


def _parts(x: Array, size: int, axis: int) -> Array:
    """Equal parts of `x` along `axis`, one after the other: `x` itself where they lie so."""
    if axis == 0:
        return np.ascontiguousarray(x).reshape(size, x.shape[0] // size, *x.shape[1:])
    return np.ascontiguousarray(np.stack(np.split(x, size, axis)))  # stack keeps the order of strides


def _is_same_memory(one: Array, other: Array) -> bool:
    same: bool = one.__array_interface__["data"] == other.__array_interface__["data"]
    return same and one.flags.c_contiguous and other.flags.c_contiguous and one.shape == other.shape
