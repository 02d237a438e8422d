"""Attention and causal masks written by hand become ``scaled_dot_product_attention`` by dataflow.

Attention is a softmax over the last axis between two products with the same batch axes; between the first product and
the softmax may stand factors, a soft cap (``c tanh(x / c)``), masks that are added or select, and casts. Masks are told
by :mod:`argosy_infer.masks`; only those that are causal, within a window or not, are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from argosy_infer.key_masks import key_mask
from argosy_infer.masks import COLUMN, HIDDEN, ROW, Axes, Bands, causal_window, mask_of
from argosy_infer.weights import apply_operator
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.passes import Pass, register_pass
from argosy_pir.passes.dce import DeadCode
from argosy_pir.program import Program
from argosy_pir.values import OpResult, Value

__all__ = ["RecognizeAttention"]

_ATTENTION, _SOFTMAX = "phi.scaled_dot_product_attention", "phi.softmax"
_FLOATS = ("float16", "bfloat16", "float32", "float64")


@register_pass("recognize-attention")
@dataclass(frozen=True)
class RecognizeAttention(Pass):
    """Makes causal attention of hand-written masks and products, in programs of primitives, ``softmax`` and
    ``scaled_dot_product_attention``."""

    def run(self, program: Program) -> bool:
        """Rewrite the program; what is not recognised stays. True where anything was."""
        changed = [_by_mask(op) for op in list(program.walk()) if op.name == _ATTENTION]
        changed += [_by_hand(op) for op in list(program.walk()) if op.name == _SOFTMAX]
        if any(changed):
            DeadCode().run(program)
        return any(changed)


def _by_mask(op: Operation) -> bool:
    """Attention whose mask is causal."""
    given = dict(get_operator(op.kind).signature.regroup(op.operands, op.attributes))
    mask = given.get("attn_mask")
    if mask is None or given["is_causal"]:
        return False
    found = mask_of(mask, (*(None,) * (mask.ndim - 2), ROW, COLUMN)) if mask.ndim >= 2 else None
    window, keys = causal_window(found) if isinstance(found, Bands) else None, None
    if window is None and mask.ndim == 4 and mask.shape[1] == 1:
        keys = key_mask(mask, _score_axes(mask))
        window = None if keys is None else keys.window
    if window is None:
        return False
    with emit_at(Builder.before(op)):
        rule = {"attn_mask": keys and keys.emit(mask), "is_causal": True, "window": window or None}
        made = apply_operator(op.kind, **{**given, **rule})
    op.replace_with([made])
    return True


@dataclass
class _Scores:
    """What stands between a product and the softmax: read from behind."""

    factor: float = 1.0
    softcap: float = 0.0
    windows: list[int] = field(default_factory=list)  #: Of each mask, 0 for none.
    masks: list[Callable[[], Value]] = field(default_factory=list)  #: What emits each mask of keys.

    def read(self, value: Value) -> Operation | None:
        """The product; None where something else stands between."""
        while isinstance(value, OpResult):
            if value.op.name == "prim.dot_general":
                return value.op if len(self.windows) == 1 else None
            before = self._step(value.op)
            if before is None:
                return None
            value = before
        return None

    def _step(self, op: Operation) -> Value | None:
        """What stands before ``op``."""
        if op.name in ("prim.copy", "prim.cast"):
            return op.operand(0) if op.operand(0).dtype in _FLOATS else None
        if op.name == "prim.tanh" and not self.softcap:
            self.softcap, self.factor = self.factor, 1.0
            return op.operand(0) if self.softcap > 0 else None
        if op.name in ("prim.mul", "prim.div"):
            return self._match_scale(op)
        if op.name in ("prim.add", "prim.select") and not self.softcap:
            return self._match_mask(op)
        return None

    def _match_scale(self, op: Operation) -> Value | None:
        for i in (1, 0) if op.name == "prim.mul" else (1,):
            number = _number(op.operand(i))
            if number is not None and number > 0:
                self.factor *= number if op.name == "prim.mul" else 1 / number
                return op.operand(1 - i)
        return None

    def _match_mask(self, op: Operation) -> Value | None:
        if op.name == "prim.add":
            candidates = [(mask_of(op.operand(i), _score_axes(op.result)), op.operand(1 - i)) for i in (1, 0)]
        else:
            which = mask_of(op.operand(0), _score_axes(op.result))
            candidates = [(_selection_bias(which, op, i), op.operand(2 if i == 1 else 1)) for i in (1, 2)]
        for found, rest in candidates:
            window = causal_window(found) if isinstance(found, Bands) else None
            if window is not None:
                self.windows.append(window)
                return rest
        return self._match_key_mask(op)

    def _match_key_mask(self, op: Operation) -> Value | None:
        """A mask that hides keys by inputs."""
        for i, rest in ((1, 0), (0, 1)) if op.name == "prim.add" else ((0, 1), (0, 2)):
            hides = op.name == "prim.select" and rest == 2
            if op.name == "prim.select":
                number = _number(op.operand(3 - rest))
                if number is None or number > HIDDEN:
                    continue
            found = key_mask(op.operand(i), _score_axes(op.result), hides)
            if found is not None and not self.masks:
                self.masks.append(partial(found.emit, op.result, hides))
                self.windows += [] if found.window is None else [found.window]
                return op.operand(rest)
        return None


def _score_axes(scores: Value) -> Axes:
    """Those of scores, or a mask of them, [batch, (heads,) queries, keys]."""
    return ("0", *(None,) * (scores.ndim - 3), ROW, COLUMN) if scores.ndim > 2 else (ROW, COLUMN)


def _selection_bias(which: Any, op: Operation, index: int) -> Bands | None:
    """What a selection adds where it takes a number far below all scores (operand ``index``) instead of scores."""
    number = mask_of(op.operand(index), _score_axes(op.result))
    if not isinstance(which, Bands) or not isinstance(number, Bands) or number.constant is None:
        return None
    hidden, seen = number.constant, np.zeros_like(number.constant)
    return Bands(which.edges, tuple(hidden if bool(x) == (index == 1) else seen for x in which.values))


def _number(value: Value) -> float | None:
    found = mask_of(value, (None,) * value.ndim)
    number = found.constant if isinstance(found, Bands) else None
    return None if number is None or number.dtype == bool else float(number)


def _by_hand(op: Operation) -> bool:
    """Attention of a softmax and two products."""
    weights = op.result
    if op.attributes["axis"] not in (-1, weights.ndim - 1) or op.attributes.get("dtype") not in (None, weights.dtype):
        return False
    scores = _Scores()
    first = scores.read(op.operand(0))
    second = _only_product(weights)
    if first is None or second is None:
        return False
    query, key = _heads(first, 0), _heads(first, 1)
    value = _heads(second, 1, contracted=True)
    if (
        query is None
        or key is None
        or value is None
        or second.attributes["lhs_batch"] != tuple(range(weights.ndim - 2))
    ):
        return False
    scale = scores.factor * (scores.softcap or 1.0)
    rule = {"scale": scale, "window": scores.windows[0] or None, "softcap": scores.softcap}
    with emit_at(Builder.before(second)):
        operands = [_arrange(x, order) for x, order in (query, key, value)]
        operands += [emit() for emit in scores.masks]
        made = apply_operator("scaled_dot_product_attention", *operands, is_causal=True, training=False, **rule)
        made = prim.transpose(made, permutation=(0, 2, 1, 3))
        if second.result.ndim == 3:
            made = prim.reshape(made, shape=second.result.shape)
        if made.dtype != second.result.dtype:
            made = prim.cast(made, dtype=second.result.dtype)
    second.replace_with([made])
    return True


def _only_product(weights: Value) -> Operation | None:
    """The product with values, weights being its first operand."""
    while True:
        users = weights.users
        if len(users) != 1 or len(weights.uses) != 1:
            return None
        if users[0].name in ("prim.copy", "prim.cast") and users[0].result.dtype in _FLOATS:
            weights = users[0].result
            continue
        last = (weights.ndim - 1,)
        fits = users[0].name == "prim.dot_general" and weights.uses[0][1] == 0 and not users[0].attributes["accumulate"]
        return users[0] if fits and users[0].attributes["lhs_contract"] == last else None


def _heads(op: Operation, side: int, contracted: bool = False) -> tuple[Value, tuple[int, ...]] | None:
    """An operand of a product, and its axes as [batch, sequence, (heads,) channels]; ``contracted``: the product sums
    over the sequence, not the channels."""
    name, operand = ("lhs", "rhs")[side], op.operand(side)
    batch, contract = op.attributes[f"{name}_batch"], op.attributes[f"{name}_contract"]
    other = [i for i in range(operand.ndim) if i not in (*batch, *contract)]
    if len(contract) != 1 or len(other) != 1 or len(batch) not in (1, 2):
        return None
    sequence, channels = (contract[0], other[0]) if contracted else (other[0], contract[0])
    return operand, (batch[0], sequence, *batch[1:], channels)


def _arrange(operand: Value, order: tuple[int, ...]) -> Value:
    """[batch, sequence, heads, channels]."""
    if order != tuple(range(operand.ndim)):
        operand = prim.transpose(operand, permutation=order)
    if operand.ndim == 3:
        operand = prim.reshape(operand, shape=(*operand.shape[:2], 1, operand.shape[2]))
    return operand
