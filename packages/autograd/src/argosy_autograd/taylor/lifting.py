"""Linear primitives applied to stacks: values of one type along a new leading axis.

A stack of values of shape ``shape`` has the shape ``[size, *shape]``, where axes may have size 1 along which all
elements are the same, as those of the seeds of a batch are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_autograd.algebra import Value, zeros
from argosy_autograd.reverse import plain_attributes
from argosy_autograd.taylor.families import StackingError
from argosy_phi_ops import prim
from argosy_pir import Operation

__all__ = ["contract", "convolve", "expand", "lift"]


def expand(stack: Value, shape: Sequence[Any]) -> Value:
    """``stack`` with every axis of ``shape`` written out."""
    full = (stack.shape[0], *shape)
    return stack if stack.shape == full else prim.broadcast_to(stack, full)


def _shift_axes(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(axis + 1 for axis in axes)


_SHIFTED: dict[str, Callable[[int, dict[str, Any]], dict[str, Any]]] = {
    "neg": lambda size, given: given,
    "copy": lambda size, given: given,
    "real": lambda size, given: given,
    "imag": lambda size, given: given,
    "conj": lambda size, given: given,
    "cast": lambda size, given: given,
    "broadcast": lambda size, given: {"shape": (size, *given["shape"]), "axes": (0, *_shift_axes(given["axes"]))},
    "reshape": lambda size, given: {"shape": (size, *given["shape"])},
    "transpose": lambda size, given: {"permutation": (0, *_shift_axes(given["permutation"]))},
    "slice": lambda size, given: {
        "start": (0, *given["start"]), "limit": (size, *given["limit"]), "stride": (1, *given["stride"]),
    },
    "reverse": lambda size, given: {**given, "axes": _shift_axes(given["axes"])},
    "reduce_sum": lambda size, given: {**given, "axes": _shift_axes(given["axes"])},
    "cumulative": lambda size, given: {**given, "axis": given["axis"] + 1},
    "fft": lambda size, given: {**given, "axes": _shift_axes(given["axes"])},
}  # fmt: skip
"""Attributes of linear primitives of one operand for a stack of so many."""

_ELEMENTWISE = frozenset("neg copy real imag conj cast".split())


def lift(op: Operation, stacks: Sequence[Value | None], size: int) -> Value:
    """The linear ``op`` applied to every member of its operands' ``stacks``; None stands for zeros."""
    name, given = op.kind, plain_attributes(op)
    if name in _SHIFTED and (name != "cumulative" or given["kind"] == "sum"):
        stack = stacks[0]
        assert stack is not None
        if name not in _ELEMENTWISE:
            stack = expand(stack, op.operand(0).shape)
        return getattr(prim, "slice" if name == "slice" else name)(stack, **_SHIFTED[name](size, given))
    if name == "select" and stacks[0] is None:
        condition = prim.broadcast_to(op.operand(0), (size, *op.result.shape))
        return prim.select(condition, *(_fill(x, s, size) for x, s in zip(op.operands[1:], stacks[1:], strict=True)))
    if name == "concat":
        parts = (_fill(x, stack, size) for x, stack in zip(op.operands, stacks, strict=True))
        return prim.concat(*parts, axis=given["axis"] + 1)
    if name == "complex":
        return prim.complex(*(_fill(x, stack, size) for x, stack in zip(op.operands, stacks, strict=True)))
    if name == "gather" and stacks[0] is not None:
        return _gather(op, expand(stacks[0], op.operand(0).shape), given)
    if name == "pad" and stacks[0] is not None and stacks[1] is None:
        edges = {key: (0, *given[key]) for key in ("low", "high", "interior")}
        zero = prim.constant(0, op.result.dtype)
        return prim.pad(expand(stacks[0], op.operand(0).shape), zero, **edges)
    raise StackingError(f"'{op.name}' ({op.location}) has no rule for stacks of coefficients")


def _gather(op: Operation, stack: Value, given: dict[str, Any]) -> Value:
    """A gather from each member: the axis of members goes behind those that run together with the indices'."""
    indices, batch = op.operand(1), given.get("batch", 0)
    inner = prim.transpose(stack, permutation=(*range(1, batch + 1), 0, *range(batch + 1, stack.ndim)))
    made = prim.gather(inner, indices, axes=_shift_axes(given["axes"]), batch=batch)
    at = indices.ndim - 1
    return prim.transpose(made, permutation=(at, *(i for i in range(made.ndim) if i != at)))


def _fill(x: Value, stack: Value | None, size: int) -> Value:
    """The stack of ``x`` written out, zeros where it is None."""
    return zeros((size, *x.shape), x.dtype) if stack is None else expand(stack, x.shape)


def contract(op: Operation, left: Value, right: Value, stacked: str) -> Value:
    """``dot_general`` of stacks: of the ``"left"`` or ``"right"`` operand, or of ``"both"``, member by member."""
    given = plain_attributes(op)
    used = {side: (*given[f"{side}_batch"], *given[f"{side}_contract"]) for side in ("lhs", "rhs")}
    if stacked != "right":
        left = _broadcast_stack(left, op.operand(0).shape, used["lhs"])
        given |= {key: _shift_axes(given[key]) for key in ("lhs_contract", "lhs_batch")}
    if stacked != "left":
        right = _broadcast_stack(right, op.operand(1).shape, used["rhs"])
        given |= {key: _shift_axes(given[key]) for key in ("rhs_contract", "rhs_batch")}
    if stacked == "both":
        given |= {"lhs_batch": (0, *given["lhs_batch"]), "rhs_batch": (0, *given["rhs_batch"])}
    made = prim.dot_general(left, right, **given)
    batch = len(given["lhs_batch"])
    at = {"both": 0, "left": batch, "right": batch + left.ndim - len(used["lhs"])}[stacked]
    if at == 0:
        return made
    return prim.transpose(made, permutation=(at, *(i for i in range(made.ndim) if i != at)))


def convolve(op: Operation, left: Value, right: Value, stacked: str) -> Value:
    """``conv`` of stacks: of the ``"left"`` or ``"right"`` operand, or of ``"both"``, member by member. Members of the
    left one are further samples, of the right one further output channels; of both further groups."""
    x, w = op.operands
    given, space = plain_attributes(op), tuple(range(3, x.ndim + 1))
    groups, size = given["groups"], (right if stacked == "right" else left).shape[0]
    whole = (size, x.shape[0], w.shape[0], *op.result.shape[2:])
    if stacked == "left":
        rows = prim.reshape(expand(left, x.shape), shape=(size * x.shape[0], *x.shape[1:]))
        return prim.reshape(prim.conv(rows, w, **given), shape=whole)
    right, outputs = expand(right, w.shape), w.shape[0] // groups
    if stacked == "right":
        apart = prim.reshape(right, shape=(size, groups, outputs, *w.shape[1:]))
        turned = prim.transpose(apart, permutation=(1, 0, 2, *(axis + 1 for axis in (2, *space))))
        made = prim.conv(x, prim.reshape(turned, shape=(size * w.shape[0], *w.shape[1:])), **given)
        made = prim.reshape(made, shape=(x.shape[0], groups, size, outputs, *made.shape[2:]))
        made = prim.transpose(made, permutation=(2, 0, 1, 3, *(axis + 1 for axis in space)))
        return prim.reshape(made, shape=whole)
    beside = prim.transpose(expand(left, x.shape), permutation=(1, 0, 2, *space))
    beside = prim.reshape(beside, shape=(x.shape[0], size * x.shape[1], *x.shape[2:]))
    filters = prim.reshape(right, shape=(size * w.shape[0], *w.shape[1:]))
    made = prim.conv(beside, filters, **(given | {"groups": size * groups}))
    made = prim.reshape(made, shape=(x.shape[0], size, *whole[2:]))
    return prim.transpose(made, permutation=(1, 0, 2, *space))


def _broadcast_stack(stack: Value, shape: Sequence[Any], axes: Sequence[int]) -> Value:
    wanted = (stack.shape[0], *(n if i in axes else stack.shape[i + 1] for i, n in enumerate(shape)))
    return stack if stack.shape == wanted else prim.broadcast_to(stack, wanted)
