"""How collectives of a bucket become one: as one tensor that their operands are parts of, or as one collective of
several tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from math import prod

from argosy_autoparallel.passes.tokens import builder_at, materialize_before
from argosy_autoparallel.resharding.emitter import static_shape
from argosy_autoparallel.value_layouts import bytes_of
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Operation, Value

__all__ = ["emit_bucket"]

_COALESCED = ("all_gather", "reduce_scatter")
_LARGE, _LINE = 1 << 14, 64
"""Bytes from which on a part of a bucket is worth a place of its own, and those of a cache line."""


def emit_bucket(ops: Sequence[Operation], before: Operation, coalesces: bool = False) -> tuple[list[Value], Value]:
    """Emit one collective instead of several ``before`` an operation; returns their results, where the first of them is
    asked for, and the token after it. With ``coalesces`` what is large stays a tensor of its own, which is made and
    taken where it lies; only the rest is put together, or all where a collective takes one tensor."""
    first = next((op for op in ops if op.kind in _COALESCED), ops[0])
    with emit_at(builder_at(before, first)):
        operands = [materialize_before(op.operand(0), before) for op in ops]
        if len(ops) == 1:
            whole, token = getattr(prim, first.kind)(operands[0], first.operand(1), **first.attributes)
            whole.op.annotations = first.annotations
            return [whole], token
        apart = coalesces and first.kind in _COALESCED
        buckets = _buckets_of(operands) if apart else [[*range(len(ops))]]
        joined = [_join(first.kind, [ops[i] for i in bucket], [operands[i] for i in bucket]) for bucket in buckets]
        wholes, token = _communicate(first, [whole for whole, _ in joined], ops[0].operand(1))
    needed_by = tuple(sorted({name for op in ops for name in op.annotations.get("needed_by", ())}))
    if needed_by:
        token.op.annotate(needed_by=needed_by)  # type: ignore[attr-defined]
    results: dict[int, Value] = {}
    with emit_at(builder_at(_first_of(ops), first)):
        for bucket, whole, (_, starts) in zip(buckets, wholes, joined, strict=True):
            results.update(zip(bucket, _split(whole, first.kind, [ops[i] for i in bucket], starts), strict=True))
    return [results[i] for i in range(len(ops))], token


def _buckets_of(operands: Sequence[Value]) -> list[list[int]]:
    """What is large by itself, by number, and all that is small together."""
    small = [i for i, x in enumerate(operands) if not _has_lines(x)]
    return [[i] for i in range(len(operands)) if i not in small] + ([small] if small else [])


def _communicate(first: Operation, tensors: Sequence[Value], token: Value) -> tuple[Sequence[Value], Value]:
    """The collective that ``first`` is one of, of these tensors along their first axes, after a token."""
    attributes = {name: value for name, value in first.attributes.items() if name != "axis"}
    emit = getattr(prim, first.kind if len(tensors) == 1 else f"{first.kind}_coalesced")
    *wholes, token = emit(*tensors, token, **attributes)
    return wholes, token


def _first_of(ops: Sequence[Operation]) -> Operation:
    return reduce(lambda one, other: other if other.is_before(one) else one, ops)


def _is_alone(ops: Sequence[Operation]) -> bool:
    """Whether a tensor is communicated as it is: one whose parts are those of its first axis."""
    return len(ops) == 1 and ops[0].attributes.get("axis") == 0


def _join(kind: str, ops: Sequence[Operation], operands: Sequence[Value]) -> tuple[Value, list[int]]:
    """Operands as one tensor, and where each begins in it (in a rank's part of it)."""
    if _is_alone(ops):
        return operands[0], [0]
    return _join_rows_of(operands, ops) if kind == "reduce_scatter" else _join_end_to_end(operands)


def _split(whole: Value, kind: str, ops: Sequence[Operation], starts: Sequence[int]) -> list[Value]:
    """The results of ``ops`` within a whole."""
    if _is_alone(ops):
        return [whole]
    rows = ops[0].attributes["size"] if kind == "all_gather" else 1
    table = prim.reshape(whole, shape=(rows, prod(static_shape(whole)) // rows))
    return [_part(table, start, op) for op, start in zip(ops, starts, strict=True)]


def _join_rows_of(operands: Sequence[Value], ops: Sequence[Operation]) -> tuple[Value, list[int]]:
    """Parts for each rank, one rank's behind another's, as one tensor without other axes, and where each operand's
    begin among a rank's."""
    rows = ops[0].attributes["size"]
    tables = [_parts_of(x, op, rows) for x, op in zip(operands, ops, strict=True)]
    starts = [*accumulate((static_shape(table)[1] for table in tables), initial=0)]
    return prim.reshape(_concat(tables, 1), shape=(rows * starts.pop(),)), starts


def _parts_of(x: Value, op: Operation, rows: int) -> Value:
    """The part of each rank as a row; all of a sum that every rank gets."""
    if op.kind == "all_reduce":
        flat = prim.reshape(x, shape=(prod(static_shape(x)),))
        return prim.broadcast(flat, shape=(rows, *flat.shape), axes=(1,))  # type: ignore[no-any-return]
    return _rows_first(x, op.attributes["axis"], rows)


def _join_end_to_end(operands: Sequence[Value]) -> tuple[Value, list[int]]:
    """Operands as one tensor without other axes, and where each begins. What is large comes first, then all that is
    small as one: each may be made in its place, at the start of a cache line, and little is left to be copied."""
    flat = [prim.reshape(x, shape=(prod(static_shape(x)),)) for x in operands]
    order = sorted(range(len(flat)), key=lambda i: not _has_lines(flat[i]))
    starts = [0] * len(flat)
    for i, start in zip(order, accumulate((static_shape(flat[i])[0] for i in order), initial=0), strict=False):
        starts[i] = start
    large = [flat[i] for i in order if _has_lines(flat[i])]
    small = [flat[i] for i in order[len(large) :]]
    rest = [_concat(small, 0)] if small else []
    return _concat([*large, *rest], 0), starts


def _concat(parts: Sequence[Value], axis: int) -> Value:
    return parts[0] if len(parts) == 1 else prim.concat(*parts, axis=axis)


def _has_lines(x: Value) -> bool:
    """Whether a part is large, and whole cache lines long."""
    nbytes = bytes_of(x)
    return nbytes >= _LARGE and nbytes % _LINE == 0


def _part(table: Value, start: int, op: Operation) -> Value:
    """The result of ``op``, from column ``start`` of a bucket on."""
    shape, rows = static_shape(op.results[0]), static_shape(table)[0]
    stop = start + prod(shape) // rows
    part = prim.slice(table, start=(0, start), limit=(rows, stop), stride=(1, 1))
    return _join_rows(part, shape, op.attributes.get("axis", 0))


def _rows_first(x: Value, axis: int, rows: int) -> Value:
    """``x`` as a table of as many rows as ``axis`` has equal parts, each part one row."""
    shape = static_shape(x)
    if axis:
        x = prim.reshape(x, shape=(*shape[:axis], rows, shape[axis] // rows, *shape[axis + 1 :]))
        x = prim.transpose(x, permutation=(axis, *[i for i in range(len(shape) + 1) if i != axis]))
    return prim.reshape(x, shape=(rows, prod(shape) // rows))  # type: ignore[no-any-return]


def _join_rows(table: Value, shape: tuple[int, ...], axis: int) -> Value:
    """The rows as parts of a tensor of ``shape``, one behind the other along ``axis``."""
    rows = static_shape(table)[0]
    if axis and rows > 1:
        parts = prim.reshape(table, shape=(rows, *shape[:axis], shape[axis] // rows, *shape[axis + 1 :]))
        table = prim.transpose(parts, permutation=(*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)))
    return prim.reshape(table, shape=shape)  # type: ignore[no-any-return]
