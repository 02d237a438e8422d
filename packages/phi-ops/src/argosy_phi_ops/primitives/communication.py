"""Collectives and point-to-point communication.

Each takes a token as its last operand and gives one as its last result: the chain of tokens is the order in which all
ranks of ``group`` (global rank numbers; the empty tuple is every rank) must call. ``size`` is the number of ranks in
the group. A collective can also be begun by ``start``, a receipt by ``start_recv``, and ended by ``wait``: what stands
between them runs meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from argosy_phi_ops.primitives.checks import check_axes, format_shape, require
from argosy_phi_ops.primitives.declaration import PRIMITIVES, Primitive, Shape, primitive
from argosy_pir.types import TensorType, TokenType, Type

if TYPE_CHECKING:
    from argosy_pir.core import Operation

REDUCE_KINDS = ("sum", "prod", "max", "min", "avg")
_Result = tuple[TensorType, TokenType]


def _check(name: str, token: Type, kind: str = "sum") -> None:
    require(isinstance(token, TokenType), f"prim.{name}: the last operand must be a token, got {token}")
    require(kind in REDUCE_KINDS, f"prim.{name}: kind {kind!r}, expected one of {', '.join(REDUCE_KINDS)}")


@primitive("communication", effect=True, work=0)
def create_token() -> TokenType:
    """The token that begins a chain."""
    return TokenType()


@primitive("communication", effect=True)
def all_reduce(x: TensorType, token: TokenType, *, group: Shape = (), size: int, kind: str = "sum") -> _Result:
    """The ``kind`` of every rank's ``x``, on every rank."""
    _check("all_reduce", token, kind)
    return x, token


@primitive("communication", effect=True, work=0)
def all_gather(x: TensorType, token: TokenType, *, group: Shape = (), size: int, axis: int = 0) -> _Result:
    """Every rank's ``x`` joined along ``axis`` in the order of the group."""
    _check("all_gather", token)
    check_axes("all_gather", (axis,), len(x.shape))
    return TensorType((*x.shape[:axis], x.shape[axis] * size, *x.shape[axis + 1 :]), x.dtype), token


@primitive("communication", effect=True)
def reduce_scatter(
    x: TensorType, token: TokenType, *, group: Shape = (), size: int, axis: int = 0, kind: str = "sum"
) -> _Result:
    """This rank's equal part along ``axis`` of the reduced ``x``."""
    _check("reduce_scatter", token, kind)
    return _divide("reduce_scatter", x, axis, size), token


@primitive("communication", effect=True, work=0)
def all_gather_coalesced(*operands: Type, group: Shape = (), size: int) -> tuple[Type, ...]:
    """Several tensors of one dtype, then the token: every rank's, each joined along its first axis."""
    return _coalesce("all_gather_coalesced", all_gather.rule, operands, group=group, size=size)


@primitive("communication", effect=True)
def reduce_scatter_coalesced(*operands: Type, group: Shape = (), size: int, kind: str = "sum") -> tuple[Type, ...]:
    """Several tensors of one dtype, then the token: this rank's equal part along the first axis of each one reduced."""
    return _coalesce("reduce_scatter_coalesced", reduce_scatter.rule, operands, group=group, size=size, kind=kind)


@primitive("communication", effect=True, work=0)
def all_to_all(
    x: TensorType, token: TokenType, *, group: Shape = (), size: int, split_axis: int, concat_axis: int
) -> _Result:
    """Send part ``r`` along ``split_axis`` to rank ``r``; join what arrives along ``concat_axis``."""
    _check("all_to_all", token)
    part = _divide("all_to_all", x, split_axis, size).shape
    check_axes("all_to_all", (concat_axis,), len(part))
    return TensorType((*part[:concat_axis], part[concat_axis] * size, *part[concat_axis + 1 :]), x.dtype), token


@primitive("communication", effect=True, work=0)
def broadcast_rank(x: TensorType, token: TokenType, *, group: Shape = (), size: int, root: int) -> _Result:
    """The ``x`` of the rank ``root``, on every rank."""
    _check("broadcast_rank", token)
    return x, token


@primitive("communication", effect=True, work=0)
def send(x: TensorType, token: TokenType, *, group: Shape = (), peer: int, tag: int = 0) -> TokenType:
    """Send ``x`` to the member number ``peer`` of the group."""
    _check("send", token)
    return token


@primitive("communication", effect=True, work=0)
def recv(token: TokenType, *, shape: Shape, dtype: str, group: Shape = (), peer: int, tag: int = 0) -> _Result:
    """A tensor from the member number ``peer`` of the group."""
    _check("recv", token)
    return TensorType(tuple(shape), dtype), token


@primitive("communication", effect=True, work=0)
def permute(x: TensorType, token: TokenType, *, pairs: Shape) -> _Result:
    """Send ``x`` along ``pairs`` of (source, target) ranks; a rank that is no target gets zeros."""
    _check("permute", token)
    targets = [pair[1] for pair in pairs]
    require(len(set(targets)) == len(targets), f"prim.permute: a rank is the target of two pairs in {pairs}")
    return x, token


@primitive("communication", effect=True, work=0)
def start(
    x: TensorType, token: TokenType, *, collective: str, group: Shape = (), size: int = 0, axis: int = 0,
    concat_axis: int = 0, kind: str = "sum", root: int = 0, pairs: Shape = (),
) -> tuple[TensorType, TokenType, TokenType]:  # fmt: skip
    """Begin a collective; only :func:`wait` may read its first result, and takes its second. ``axis`` is split or
    joined (``split_axis`` of an all-to-all); a permutation has ``pairs``, the others have a ``size``.
    """
    _check("start", token, kind)
    chosen = {"axis": axis, "concat_axis": concat_axis, "kind": kind, "root": root, "pairs": pairs}
    blocking, attributes = blocking_form(collective, {**chosen, "group": group, "size": size})
    result, _ = blocking.rule(x, token, **attributes)
    return result, TokenType(), token


@primitive("communication", effect=True, work=0)
def start_recv(
    token: TokenType, *, shape: Shape, dtype: str, group: Shape = (), peer: int, tag: int = 0
) -> tuple[TensorType, TokenType, TokenType]:
    """Begin to wait for a tensor from the member number ``peer`` of the group; its results are as those of
    :func:`start`. Receipts get messages in the order in which they began."""
    _check("start_recv", token)
    return TensorType(tuple(shape), dtype), TokenType(), token


@primitive("communication", effect=True, work=0)
def wait(x: TensorType, handle: TokenType, token: TokenType) -> _Result:
    """The result of the collective or the receipt that gave ``x`` and ``handle``, once it is done."""
    _check("wait", handle)
    _check("wait", token)
    return x, token


def is_communication(op: Operation) -> bool:
    """Whether an operation of a program is one of these."""
    return op.dialect == "prim" and PRIMITIVES[op.kind].category == "communication"


def blocking_form(collective: str, attributes: Mapping[str, Any]) -> tuple[Primitive, dict[str, Any]]:
    """The primitive that starts and waits at once, with its attributes, of the attributes of :func:`start`."""
    require(collective in _STARTED, f"prim.start: collective {collective!r}, expected one of {', '.join(_STARTED)}")
    names = {"axis": "split_axis"} if collective == "all_to_all" else {}
    chosen = {name: attributes[name] for name in _STARTED[collective]}
    return PRIMITIVES[collective], {names.get(name, name): value for name, value in chosen.items()}


_GROUP = ("group", "size")
_STARTED = {
    "all_reduce": (*_GROUP, "kind"), "all_gather": (*_GROUP, "axis"), "reduce_scatter": (*_GROUP, "axis", "kind"),
    "all_to_all": (*_GROUP, "axis", "concat_axis"), "broadcast_rank": (*_GROUP, "root"), "permute": ("pairs",),
}  # fmt: skip
"""From a collective that can be started to its attributes."""


def _coalesce(
    name: str, rule: Callable[..., _Result], operands: tuple[Type, ...], **attributes: Any
) -> tuple[Type, ...]:
    *tensors, token = operands
    _check(name, token)
    types = [x.dtype if isinstance(x, TensorType) else str(x) for x in tensors]
    of_one_dtype = len(types) > 1 and len({*types}) == 1
    require(of_one_dtype, f"prim.{name}: several tensors of one dtype are expected, got {', '.join(types) or 'none'}")
    return *(rule(x, token, axis=0, **attributes)[0] for x in tensors), token


def _divide(name: str, x: TensorType, axis: int, size: int) -> TensorType:
    check_axes(name, (axis,), len(x.shape))
    length = x.shape[axis]
    require(
        not isinstance(length, int) or length % size == 0,
        f"prim.{name}: axis {axis} of {format_shape(x.shape)} is not divisible by {size} ranks",
    )
    return TensorType((*x.shape[:axis], length // size, *x.shape[axis + 1 :]), x.dtype)
