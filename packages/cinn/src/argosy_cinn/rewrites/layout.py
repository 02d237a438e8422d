"""Moves that are none, or that are one move less."""

from __future__ import annotations

from math import prod

from argosy_cinn.rewrites.builders import Rule, defined_by, emit
from argosy_pir.core import Operation
from argosy_pir.values import Value


def _reshape(op: Operation) -> Value | None:
    x = op.operand(0)
    if x.shape == op.result.shape:
        return x
    inner = defined_by(x, "prim.reshape")
    return emit("reshape", inner.operand(0), shape=op.result.shape) if inner is not None else None


def _transpose(op: Operation) -> Value | None:
    x, permutation = op.operand(0), op.attributes["permutation"]
    if list(permutation) == sorted(permutation):
        return x
    inner = defined_by(x, "prim.transpose")
    if inner is not None:
        first = inner.attributes["permutation"]
        return emit("transpose", inner.operand(0), permutation=tuple(first[i] for i in permutation))
    moved = [i for i in permutation if x.shape[i] != 1]
    return emit("reshape", x, shape=op.result.shape) if moved == sorted(moved) else None


def _broadcast(op: Operation) -> Value | None:
    x, shape, axes = op.operand(0), op.attributes["shape"], op.attributes["axes"]
    if x.shape == tuple(shape):
        return x
    inner = defined_by(x, "prim.broadcast")
    if inner is not None:
        through = tuple(axes[a] for a in inner.attributes["axes"])
        return emit("broadcast", inner.operand(0), shape=shape, axes=through)
    if 1 in x.shape:
        kept = [(n, a) for n, a in zip(x.shape, axes, strict=True) if n != 1]
        thin = emit("reshape", x, shape=tuple(n for n, _ in kept))
        return emit("broadcast", thin, shape=shape, axes=tuple(a for _, a in kept))
    if prod(x.shape) == prod(shape):
        return emit("reshape", x, shape=shape)
    return None


def _slice(op: Operation) -> Value | None:
    return op.operand(0) if op.operand(0).shape == op.result.shape else None


def _reverse(op: Operation) -> Value | None:
    x = op.operand(0)
    return x if all(x.shape[a] == 1 for a in op.attributes["axes"]) else None


def _pad(op: Operation) -> Value | None:
    a = op.attributes
    nothing = all(v == 0 for v in (*a["low"], *a["high"], *a["interior"]))
    if 0 in op.operand(0).shape and not nothing:
        return emit("broadcast", op.operand(1), shape=op.result.shape, axes=())
    return op.operand(0) if nothing else None


def _concat(op: Operation) -> Value | None:
    axis = op.attributes["axis"]
    kept = [x for x in op.operands if x.shape[axis] != 0]
    if len(kept) == 1:
        return kept[0]
    return emit("concat", *kept, axis=axis) if kept and len(kept) < len(op.operands) else None


def _forward_operand(op: Operation) -> Value | None:
    return op.operand(0)


RULES: dict[str, Rule] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "reverse": _reverse,
    "pad": _pad,
    "concat": _concat,
    "copy": _forward_operand,
    "stop_gradient": _forward_operand,
}
"""By primitive."""
