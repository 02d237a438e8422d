"""One rank's part in an operation as an object: what it asks for, its operands, and the line that asks.

Each function makes the call of one kind after checking its operands, so that every communicator refuses the same
things with the same words. ``size`` is the number of ranks in the group.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argosy_hwadapt.device_operand import DeviceOperand

if TYPE_CHECKING:
    from argosy_hwadapt.device import Device

Array = NDArray[Any]

#: Names of the reductions. ``avg`` is the sum divided by the number of ranks, for inexact dtypes only.
REDUCE_OPS = ("sum", "prod", "max", "min", "avg")


class Call:
    """One rank's part in an operation.

    ``agreed`` must be equal on all ranks of the group, ``own`` may differ. ``send`` and ``recv`` are flat views of the
    operands, one object where they are one array. ``background`` asks for progress while nobody waits. ``site`` may be
    set to name another line.
    """

    __slots__ = ("agreed", "background", "kind", "own", "recv", "send", "site")

    def __init__(
        self, kind: str, agreed: Mapping[str, Hashable] | None = None, send: Any = None, recv: Any = None,
        own: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.agreed = dict(agreed or {})
        self.own = dict(own or {})
        self.send: Any = None if send is None else send.reshape(-1)
        self.recv: Any = None if recv is None else self.send if recv is send else recv.reshape(-1)
        self.background = False
        self.site: object = call_site()

    @property
    def nbytes(self) -> int:
        """Bytes of what this rank gives."""
        return 0 if self.send is None else int(self.send.nbytes)

    def in_background(self) -> Call:
        """Return this call, which is to move on while nobody waits for it."""
        self.background = True
        return self

    def __str__(self) -> str:
        return f"{self.text()} at {self.site}"

    def text(self, own: bool = True) -> str:
        """Return the call without its line, and without what may differ unless ``own``."""
        shown = {**self.agreed, **self.own} if own else self.agreed
        return f"{self.kind}({', '.join(f'{name}={value}' for name, value in shown.items())})"


def all_reduce(size: int, send: Array, recv: Array, op: str) -> Call:
    """The call behind :meth:`Communicator.all_reduce`."""
    check_pair("all_reduce", send, recv, 1, 1)
    check_op("all_reduce", op, send.dtype)
    return Call("all_reduce", {**_operand(send), "op": op}, send, recv)


def all_gather(size: int, send: Array, recv: Array) -> Call:
    """The call behind :meth:`Communicator.all_gather`."""
    check_pair("all_gather", send, recv, 1, size)
    return Call("all_gather", _operand(send), send, recv)


def reduce_scatter(size: int, send: Array, recv: Array, op: str) -> Call:
    """The call behind :meth:`Communicator.reduce_scatter`."""
    check_pair("reduce_scatter", send, recv, size, 1)
    check_op("reduce_scatter", op, send.dtype)
    return Call("reduce_scatter", {**_operand(send), "op": op}, send, recv)


def all_to_all(
    size: int, send: Array, recv: Array, send_counts: Sequence[int] | None, recv_counts: Sequence[int] | None
) -> Call:
    """The call behind :meth:`Communicator.all_to_all`."""
    if send_counts is None and recv_counts is None:
        check_pair("all_to_all", send, recv, 1, 1)
        if send.size % size:
            raise ValueError(f"all_to_all: {send.size} elements do not divide into {size} equal parts")
        return Call("all_to_all", _operand(send), send, recv)
    if send_counts is None or recv_counts is None:
        raise ValueError("all_to_all: uneven parts need both send_counts and recv_counts")
    check_operands("all_to_all", send, recv)
    own = {"send_counts": tuple(send_counts), "recv_counts": tuple(recv_counts)}
    for name, counts, array in zip(own, own.values(), (send, recv), strict=True):
        if len(counts) != size or min(counts) < 0 or sum(counts) != array.size:
            raise ValueError(f"all_to_all: {name} {counts} must be {size} counts that add up to {array.size} elements")
    return Call("all_to_all", {"dtype": str(send.dtype), "parts": "uneven"}, send, recv, own)


def broadcast(rank: int, size: int, buffer: Array, root: int) -> Call:
    """The call behind :meth:`Communicator.broadcast`."""
    check_array("broadcast: buffer", buffer)
    check_peer("broadcast", root, size)
    if rank != root:
        check_writable("broadcast", buffer)
    return Call("broadcast", {**_operand(buffer), "root": root}, buffer, buffer)


def barrier() -> Call:
    """The call behind :meth:`Communicator.barrier`."""
    return Call("barrier")


def send(size: int, buffer: Array, peer: int, tag: int) -> Call:
    """The call behind :meth:`Communicator.send`."""
    check_array("send: buffer", buffer)
    check_peer("send", peer, size)
    return Call("send", _operand(buffer), send=buffer, own={"to": peer, "tag": tag})


def recv(size: int, buffer: Array, peer: int, tag: int) -> Call:
    """The call behind :meth:`Communicator.recv`."""
    check_array("recv: buffer", buffer)
    check_writable("recv", buffer)
    check_peer("recv", peer, size)
    return Call("recv", _operand(buffer), recv=buffer, own={"from": peer, "tag": tag})


def check_permute(size: int, send: Array, recv: Array, pairs: Sequence[tuple[int, int]]) -> None:
    """Check operands of equal size, and pairs of (source, target) in which no rank is a target twice."""
    check_pair("permute", send, recv, 1, 1)
    targets = [target for _, target in pairs]
    for rank in {*targets, *(source for source, _ in pairs)}:
        check_peer("permute", rank, size)
    if len(set(targets)) != len(targets):
        raise ValueError(f"permute: a rank is the target of two pairs in {tuple(pairs)}")


def check_array(what: str, array: Any) -> None:
    """Raise TypeError or ValueError unless the operand is a C-contiguous numpy array, or in a device's memory."""
    if isinstance(array, DeviceOperand):
        return
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{what} must be a numpy array, got {type(array).__name__}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{what} must be C-contiguous, got shape {array.shape} with strides {array.strides}")


def check_operands(kind: str, send: Any, recv: Any) -> None:
    """Check both operands of a collective by themselves, and that their dtypes are equal."""
    check_array(f"{kind}: send", send)
    check_array(f"{kind}: recv", recv)
    check_writable(kind, recv)
    if send.dtype != recv.dtype:
        raise TypeError(f"{kind}: send has dtype {send.dtype}, recv has {recv.dtype}; they must be equal")


def check_pair(kind: str, send: Any, recv: Any, send_parts: int, recv_parts: int) -> None:
    """Check both operands of a collective: equal dtypes, and ``send_parts`` to ``recv_parts`` in size."""
    check_operands(kind, send, recv)
    if send.size * recv_parts != recv.size * send_parts or send.size % send_parts:
        raise ValueError(
            f"{kind}: send has {send.size} elements and recv {recv.size}; "
            f"expected a ratio of {send_parts} to {recv_parts}"
        )


def check_writable(kind: str, array: Any) -> None:
    """Raise ValueError if an operand that receives is read-only."""
    if not isinstance(array, DeviceOperand) and not array.flags.writeable:
        raise ValueError(f"{kind}: the receiving array is read-only")


def check_memory(call: Call, takes: Callable[[Device], bool]) -> Call:
    """Return a call whose operands are on the host, or on devices that the communicator takes; else raise TypeError."""
    check_operands_memory(call.kind, (call.send, call.recv), takes)
    return call


def check_operands_memory(kind: str, operands: Sequence[Any], takes: Callable[[Device], bool]) -> None:
    """Raise TypeError for operands on devices that the communicator does not take."""
    for operand in operands:
        if isinstance(operand, DeviceOperand) and not takes(operand.device):
            raise TypeError(f"{kind}: this communicator takes no buffers of {operand.device}")


def check_op(kind: str, op: str, dtype: np.dtype[Any]) -> None:
    """Raise ValueError for an unknown reduction and TypeError for an average of integers."""
    if op not in REDUCE_OPS:
        raise ValueError(f"{kind}: reduction {op!r} is unknown; there are {', '.join(REDUCE_OPS)}")
    if op == "avg" and dtype.kind in "biu":
        raise TypeError(f"{kind}: 'avg' needs an inexact dtype, got {dtype}; sum and divide instead")


def check_peer(kind: str, peer: int, size: int) -> None:
    """Raise ValueError for a rank outside the group."""
    if not 0 <= peer < size:
        raise ValueError(f"{kind}: rank {peer} is not in a group of {size}")


def call_site() -> str:
    """Return file and line of the innermost frame outside argosy's packages: the user's line, if there is one."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _is_ours(module: str) -> bool:
    return (module.startswith(("argosy_", "argosy.")) or module == "argosy") and ".testing" not in module


def _operand(array: Array) -> dict[str, Hashable]:
    dtype = array.dtype
    name = _DTYPE_NAMES.get(dtype) or _DTYPE_NAMES.setdefault(dtype, str(dtype))
    return {"dtype": name, "size": array.size}


_DTYPE_NAMES: dict[np.dtype[Any], str] = {}
