"""Messages from nodes to nodes along edges, and reductions over segments of rows."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from typing import Any

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy.argument_checks import validate_call
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["segment_max", "segment_mean", "segment_min", "segment_sum", "send_u_recv", "send_ue_recv", "send_uv"]

REDUCTIONS = ("sum", "mean", "max", "min")
MESSAGES = ("add", "sub", "mul", "div")


def reduce_rows(owner: str, rows: Any, index: Any, count: Any, reduce: str) -> Tensor:
    """``rows`` gathered into ``count`` rows by ``index``; rows that get nothing are 0."""
    if reduce not in REDUCTIONS:
        raise ValueError(f"{owner}: reduce_op should be one of {', '.join(REDUCTIONS)}, got {reduce!r}")
    zeros = get_operator("zeros")([count, *rows.shape[1:]], rows.dtype.name)
    if reduce in ("max", "min"):
        return _extreme(zeros, rows, index, "a" + reduce)
    total: Any = get_operator("index_add")(zeros, index, 0, rows)
    if reduce == "sum":
        return total
    exact = rows.dtype.name if rows.dtype.kind == "f" else "float64"  # means of integers are cut to integers
    ones = get_operator("ones")([index.shape[0]], exact)
    counts = get_operator("index_add")(get_operator("zeros")([count], exact), index, 0, ones)
    mean = total.cast(exact) / get_operator("clip")(counts, 1.0).reshape([-1, *[1] * (len(rows.shape) - 1)])
    return mean.cast(rows.dtype.name)


def _extreme(zeros: Any, rows: Any, index: Any, reduce: str) -> Tensor:
    """The largest or least of the rows that meet in a row. As in Paddle each of equal ones gets the whole gradient;
    a reduction along an axis would share it out."""
    every = index.reshape([-1, *[1] * (len(rows.shape) - 1)]).expand(list(rows.shape))
    found: Any = get_operator("put_along_axis")(zeros, every, rows.detach(), 0, reduce, include_self=False)
    if rows.stop_gradient:
        return found
    tied = (rows == get_operator("gather")(found, index, 0)).logical_and(rows.isfinite())
    kept = get_operator("where")(tied, rows, 0.0)
    return found + get_operator("index_add")(zeros, index, 0, kept - kept.detach())


def _segments(owner: str, data: Any, segment_ids: Any, reduce: str) -> Tensor:
    if len(segment_ids.shape) != 1 or list(segment_ids.shape) != list(data.shape[:1]):
        raise ValueError(f"{owner}: segment_ids should have the shape {list(data.shape[:1])}, got {segment_ids.shape}")
    return reduce_rows(owner, data, segment_ids, _segment_count(owner, segment_ids), reduce)


def _segment_count(owner: str, segment_ids: Any) -> Any:
    """One more than the largest id. While capturing, ids that are not computed there are taken as they are: the program
    is for these; of others the tracer finds a way to tell."""
    tracer = active_tracer()
    if tracer is not None and not segment_ids.payload.is_traced and not tracer.has_written(segment_ids):
        tracer.reads(segment_ids)
        ids = segment_ids.payload.to_host()
        return int(ids.max()) + 1 if ids.size else 0
    if not segment_ids.payload.is_traced:
        return int(segment_ids.max()) + 1 if segment_ids.size else 0
    if segment_ids.shape[0] == 0:
        return 0
    why = f"{owner}: the result has a row for each id up to the largest of segment_ids, which"
    return segment_ids.payload.tracer.size_of(segment_ids.max() + 1, why)


@validate_call
def segment_sum(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """The sums of the rows of ``data`` [n, ...] with equal ``segment_ids`` [n]: a row for each id up to the largest,
    whose value is read. Segments without rows are 0, here and in the other reductions."""
    return _segments("segment_sum", data, segment_ids, "sum")


@validate_call
def segment_mean(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """The means of the rows of each segment; see :func:`segment_sum`."""
    return _segments("segment_mean", data, segment_ids, "mean")


@validate_call
def segment_max(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """The largest elements of each segment; see :func:`segment_sum`. Each of equal ones gets the whole gradient."""
    return _segments("segment_max", data, segment_ids, "max")


@validate_call
def segment_min(data: Tensor, segment_ids: Tensor, name: str | None = None) -> Tensor:
    """The least elements of each segment; see :func:`segment_sum`. Each of equal ones gets the whole gradient."""
    return _segments("segment_min", data, segment_ids, "min")


def _rows(owner: str, x: Any, out_size: Any) -> Any:
    if out_size is None:
        return x.shape[0]
    if type(out_size) is Tensor and out_size.payload.is_traced:
        wanted = get_operator("where")(out_size > 0, out_size, x.shape[0])
        return out_size.payload.tracer.size_of(wanted, f"{owner}: the result has out_size rows, which")
    wanted = int(out_size)
    return wanted if wanted > 0 else x.shape[0]


@validate_call
def send_u_recv(
    x: Tensor,
    src_index: Tensor,
    dst_index: Tensor,
    reduce_op: str = "sum",
    out_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """Rows of ``x`` [nodes, ...] sent along edges from ``src_index`` to ``dst_index`` and reduced where they arrive.

    reduce_op: sum, mean, max or min, of which each of equal ones gets the whole gradient; out_size: how many rows the
    result has, as many as ``x`` by default. Nodes where nothing arrives get 0.
    """
    return reduce_rows("send_u_recv", _pick(x, src_index), dst_index, _rows("send_u_recv", x, out_size), reduce_op)


@validate_call
def send_ue_recv(
    x: Tensor,
    y: Tensor,
    src_index: Tensor,
    dst_index: Tensor,
    message_op: str = "add",
    reduce_op: str = "sum",
    out_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """:func:`send_u_recv` of rows of ``x`` combined with features ``y`` [edges, ...] of the edges they travel.

    message_op: add, sub, mul or div; features of nodes and edges broadcast against each other.
    """
    sent = _message("send_ue_recv", _pick(x, src_index), y, message_op)
    return reduce_rows("send_ue_recv", sent, dst_index, _rows("send_ue_recv", x, out_size), reduce_op)


@validate_call
def send_uv(
    x: Tensor, y: Tensor, src_index: Tensor, dst_index: Tensor, message_op: str = "add", name: str | None = None
) -> Tensor:
    """For each edge the row of ``x`` where it starts combined with the row of ``y`` where it ends: [edges, ...]."""
    return _message("send_uv", _pick(x, src_index), _pick(y, dst_index), message_op)


def _pick(x: Any, index: Any) -> Any:
    return get_operator("gather")(x, index, 0)


def _message(owner: str, sent: Any, feature: Any, message_op: str) -> Any:
    if message_op not in MESSAGES:
        raise ValueError(f"{owner}: message_op should be one of {', '.join(MESSAGES)}, got {message_op!r}")
    difference = len(sent.shape) - len(feature.shape)  # axes are told apart from the first, which is that of edges
    if difference > 0:
        feature = feature.reshape([*feature.shape[:1], *[1] * difference, *feature.shape[1:]])
    elif difference < 0:
        sent = sent.reshape([*sent.shape[:1], *[1] * -difference, *sent.shape[1:]])
    if message_op == "div":
        return sent / (feature + 1e-12)  # as Paddle does: an edge of 0 gives a large number
    return {"add": sent.__add__, "sub": sent.__sub__, "mul": sent.__mul__}[message_op](feature)
