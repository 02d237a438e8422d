"""The one collective contract: what ranks can do together, and the checks that every implementation shares.

Operands are C-contiguous numpy arrays on the host. Entry-point group ``argosy.communicators``.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Names of the reductions. ``avg`` is the sum divided by the number of ranks, for inexact dtypes only.
REDUCE_OPS = ("sum", "prod", "max", "min", "avg")

_UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "avg": np.add}
_NARROW_FLOATS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


class Communicator(Protocol):
    """A group of ranks, seen from one of them.

    Collectives must be called by every rank of the group, in the same order, with operands of equal size
    and dtype; ``send`` and ``recv`` may be the same array where their sizes agree. Errors: ValueError and
    TypeError for an operand that is wrong by itself, CollectiveMismatch where ranks disagree (if the
    implementation can tell), RankFailure when a rank of the group is gone. After an error the communicator
    is of no more use.
    """

    rank: int  #: of this process or thread, from 0
    size: int  #: number of ranks
    name: str  #: of the implementation

    def all_reduce(self, send: Array, recv: Array, op: str = "sum") -> None:
        """Combine ``send`` of all ranks elementwise into ``recv``; all ranks get the same bits.

        The order of the additions is the implementation's, so float results of two of them may differ.
        """

    def all_gather(self, send: Array, recv: Array) -> None:
        """Put every rank's ``send`` one after another into ``recv`` (``size`` times as large), everywhere."""

    def reduce_scatter(self, send: Array, recv: Array, op: str = "sum") -> None:
        """Combine ``send`` of all ranks; rank r keeps part r of ``size`` equal parts in ``recv``."""

    def all_to_all(self, send: Array, recv: Array) -> None:
        """Give part r of ``send`` to rank r; ``recv`` holds the parts received, in order of their ranks."""

    def broadcast(self, buffer: Array, root: int) -> None:
        """Copy ``buffer`` of rank ``root`` into ``buffer`` of every other rank."""

    def send(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """Send a copy of ``buffer``; never waits for the receiver, so that neighbours may send to
        each other.
        """

    def recv(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """Wait for a message of this tag from ``peer``; messages of one tag arrive in the order
        they were sent.
        """

    def barrier(self) -> None:
        """Wait until every rank is here."""

    def split(self, color: int, key: int) -> "Communicator | None":
        """Form one new group per ``color``, ordered by (key, rank); a negative colour joins none
        and gets None.
        """

    def abort(self, reason: str) -> None:
        """Make every rank's present and future operations fail with RankFailure."""

    def close(self) -> None:
        """Leave the group; later operations of this object fail."""


def check_array(what: str, array: Any) -> None:
    """Raise TypeError or ValueError unless the operand is a C-contiguous numpy array."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{what} must be a numpy array, got {type(array).__name__}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{what} must be C-contiguous, got shape {array.shape} with strides {array.strides}")


def check_pair(kind: str, send: Any, recv: Any, send_parts: int, recv_parts: int) -> None:
    """Check both operands of a collective: equal dtypes, and ``send_parts`` to ``recv_parts`` in size."""
    check_array(f"{kind}: send", send)
    check_array(f"{kind}: recv", recv)
    check_writable(kind, recv)
    if send.dtype != recv.dtype:
        raise TypeError(f"{kind}: send has dtype {send.dtype}, recv has {recv.dtype}; they must be equal")
    if send.size * recv_parts != recv.size * send_parts or send.size % send_parts:
        raise ValueError(
            f"{kind}: send has {send.size} elements and recv {recv.size}; "
            f"expected a ratio of {send_parts} to {recv_parts}"
        )


def check_writable(kind: str, array: Array) -> None:
    """Raise ValueError if an operand that receives is read-only."""
    if not array.flags.writeable:
        raise ValueError(f"{kind}: the receiving array is read-only")


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


def reduce_arrays(arrays: list[Array], op: str) -> Array:
    """Combine flat arrays elementwise, in order. Floats narrower than 32 bits are accumulated in float32."""
    dtype = arrays[0].dtype
    total = arrays[0].astype(accumulator(dtype))
    for array in arrays[1:]:
        _UFUNCS[op](total, array, out=total, casting="unsafe")
    if op == "avg":
        total /= len(arrays)
    return total.astype(dtype, copy=False)


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which values of ``dtype`` are summed."""
    return np.dtype("float32") if dtype.name in _NARROW_FLOATS else dtype
