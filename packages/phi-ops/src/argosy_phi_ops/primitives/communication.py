"""Collectives and point-to-point communication.

Each takes a token as its last operand and gives one as its last result: the chain of tokens is the order in which all
ranks of ``group`` (global rank numbers; the empty tuple is every rank) must call. ``size`` is the number of ranks in
the group.
"""

from __future__ import annotations

from argosy_phi_ops.primitives.checks import check_axes, format_shape, require
from argosy_phi_ops.primitives.declaration import Shape, primitive
from argosy_pir.types import TensorType, TokenType, Type

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
    return _divided("reduce_scatter", x, axis, size), token


@primitive("communication", effect=True, work=0)
def all_to_all(
    x: TensorType, token: TokenType, *, group: Shape = (), size: int, split_axis: int, concat_axis: int
) -> _Result:
    """Send part ``r`` along ``split_axis`` to rank ``r``; join what arrives along ``concat_axis``."""
    _check("all_to_all", token)
    part = _divided("all_to_all", x, split_axis, size).shape
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


def _divided(name: str, x: TensorType, axis: int, size: int) -> TensorType:
    check_axes(name, (axis,), len(x.shape))
    length = x.shape[axis]
    require(
        not isinstance(length, int) or length % size == 0,
        f"prim.{name}: axis {axis} of {format_shape(x.shape)} is not divisible by {size} ranks",
    )
    return TensorType((*x.shape[:axis], length // size, *x.shape[axis + 1 :]), x.dtype)
