"""Losses over all alignments of a sequence of labels with a longer one: sums over paths by dynamic programming.

Legend: T steps, N samples, C classes with the blank, L labels, S = 2 L + 1 labels with blanks around each.
Probabilities are logarithms; what cannot be is a large negative number, so that derivatives stay finite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import check_static_sizes, restore, section
from argosy_phi_ops.ops.common.loops import scan
from argosy_phi_ops.ops.nn.activation import largest
from argosy_tensorcore.tensor import Tensor

_NEVER = -1e30


def _log_softmax(x: Any, axis: int) -> Any:
    shifted = prim.sub(x, largest(x, (axis,)))
    return prim.sub(shifted, restore(prim.log(prim.reduce_sum(prim.exp(shifted), axes=(axis,))), x.shape, (axis,)))


def _log_add(*terms: Any) -> Any:
    """The logarithm of the sum of exponentials."""
    top = terms[0]
    for term in terms[1:]:
        top = prim.maximum(top, term)
    top = prim.stop_gradient(top)
    total = None
    for term in terms:
        part = prim.exp(prim.sub(term, top))
        total = part if total is None else prim.add(total, part)
    return prim.add(top, prim.log(total))


def _shift(x: Any, by: int) -> Any:
    """`x` moved by `by` places along its last axis, what comes in being impossible."""
    last = x.ndim - 1
    low = tuple(by if i == last else 0 for i in range(x.ndim))
    value = prim.constant(_NEVER, x.dtype)
    return prim.pad(x, value, low=low, high=tuple(-n for n in low), interior=(0,) * x.ndim)


def _to_int64(x: Any) -> Any:
    return x if x.dtype == "int64" else prim.cast(x, dtype="int64")


def _pick(x: Any, index: Any) -> Any:
    """x [N, K, ...] at index [N, ...]: [N, ..., ...]."""
    return prim.gather(x, prim.reshape(index, shape=(*index.shape, 1)), axes=(1,), batch=1)


@operator()
def ctc_paths(
    log_probs: Tensor, labels: Tensor, input_lengths: Tensor, label_lengths: Tensor, blank: int = 0
) -> Tensor:
    """Minus the log-probability [N] of `labels` [N, L] under all alignments with `log_probs` [T, N, C].

    `log_probs` are normalised here; lengths [N] count the steps and labels of each sample that are no padding. The loss
    of labels that no alignment gives is infinite. Source: Graves et al., 2006.
    """
    if log_probs.ndim != 3 or labels.ndim != 2 or labels.shape[0] != log_probs.shape[1]:
        raise ShapeError(f"ctc_loss takes log_probs [T, N, C] and labels [N, L], got {log_probs.type}, {labels.type}")
    steps, batch, classes = log_probs.shape
    if isinstance(classes, int) and not 0 <= blank < classes:
        raise ValueError(f"ctc_loss: blank {blank} is no class of {classes}")
    labels, input_lengths, label_lengths = _to_int64(labels), _to_int64(input_lengths), _to_int64(label_lengths)
    extended = _with_blanks(labels, blank)
    by_class = prim.transpose(_log_softmax(log_probs, 2), permutation=(1, 2, 0))
    emitted = prim.transpose(_pick(by_class, extended), permutation=(2, 0, 1))  # [T, N, S]
    place = prim.iota(shape=extended.shape, axis=1, dtype="int64")
    first = prim.select(prim.lt(place, 1), 0.0, prim.constant(_NEVER, log_probs.dtype, extended.shape))
    skips = _may_skip(extended, blank)
    clock = prim.iota(shape=(steps, batch), axis=0, dtype="int64")
    going_on = prim.lt(clock, prim.broadcast(input_lengths, shape=(steps, batch), axes=(1,)))

    def step(slices: Sequence[Any], carried: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        stay = carried[0]
        jump = prim.select(skips, _shift(stay, 2), _NEVER)
        after = prim.add(_log_add(stay, _shift(stay, 1), jump), slices[0])
        after = prim.maximum(after, _NEVER)
        return [], [prim.select(prim.broadcast(slices[1], shape=after.shape, axes=(0,)), after, stay)]

    # Before the first step all is at a blank in front of the first one.
    _, (last,) = scan(step, [emitted, going_on], [first])
    end = prim.mul(label_lengths, 2)
    both = [_pick(last, end), _pick(last, prim.maximum(prim.sub(end, 1), 0))]
    both[1] = prim.select(prim.gt(end, 0), both[1], _NEVER)
    loss = prim.neg(_log_add(*both))
    return prim.select(prim.gt(loss, -_NEVER / 2), float("inf"), loss)


def _with_blanks(labels: Any, blank: int) -> Any:
    """[N, S]: a blank before each label and at the end."""
    value = prim.constant(blank, labels.dtype)
    return prim.pad(labels, value, low=(0, 1), high=(0, 1), interior=(0, 1))


def _may_skip(extended: Any, blank: int) -> Any:
    """Where a path may come from two places before: at labels that differ from the one before them."""
    before = prim.pad(extended, prim.constant(blank, extended.dtype), low=(0, 2), high=(0, -2), interior=(0, 0))
    return prim.logical_and(prim.ne(extended, blank), prim.ne(extended, before))


@ctc_paths.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    labels = np.array([[1, 1, 2], [3, 1, 0]], np.int32)
    lengths = np.array([6, 4]), np.array([3, 2])
    yield Sample(rng.standard_normal((6, 2, 4)), labels, *lengths)
    yield Sample(rng.standard_normal((6, 2, 4)), labels, *lengths, blank=3)


@operator()
def rnnt_paths(
    input: Tensor,
    label: Tensor,
    input_lengths: Tensor,
    label_lengths: Tensor,
    blank: int = 0,
    fastemit_lambda: float = 0.001,
) -> Tensor:
    """Minus the log-probability [N] of `label` [N, L] under all paths of a transducer `input` [N, T, L + 1, C].

    `input` holds log-probabilities. With `fastemit_lambda` the gradients of emissions count that share more, which
    favours paths that emit early. Sources: Graves, 2012; Yu et al., 2021.
    """
    if input.ndim != 4 or label.ndim != 2 or label.shape[0] != input.shape[0]:
        raise ShapeError(f"rnnt_loss takes input [N, T, L + 1, C] and label [N, L], got {input.type}, {label.type}")
    batch, steps, rows, _ = input.shape
    check_static_sizes("rnnt_loss", (steps, rows))
    if rows != label.shape[1] + 1:
        raise ShapeError(f"rnnt_loss: input {input.type} has {rows} rows for {label.shape[1]} labels, not one more")
    label, input_lengths, label_lengths = _to_int64(label), _to_int64(input_lengths), _to_int64(label_lengths)
    silent = prim.reshape(section(input, 3, blank, blank + 1), shape=(batch, steps, rows))
    emitted = _of_labels(input, label)
    if fastemit_lambda:  # nothing is added to the value
        emitted = prim.add(emitted, prim.mul(prim.sub(emitted, prim.stop_gradient(emitted)), fastemit_lambda))
    waves = steps + rows - 1
    stay = _skew(silent, waves, rows, 1)
    move = _skew(prim.pad(emitted, prim.constant(_NEVER, input.dtype), low=(0, 0, 1), high=(0, 0, 0),
                            interior=(0, 0, 0)), waves, rows, 0)  # fmt: skip
    place = prim.iota(shape=(batch, rows), axis=1, dtype="int64")
    first = prim.select(prim.lt(place, 1), 0.0, prim.constant(_NEVER, input.dtype, (batch, rows)))

    def step(slices: Sequence[Any], carried: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        moved = _log_add(prim.add(carried[0], slices[0]), prim.add(_shift(carried[0], 1), slices[1]))
        after = prim.maximum(moved, _NEVER)
        return [carried[0]], [after]

    (before,), _ = scan(step, [section(stay, 0, 1, waves + 1), section(move, 0, 1, waves + 1)], [first])
    wave = prim.add(prim.sub(input_lengths, 1), label_lengths)
    by_sample = prim.transpose(before, permutation=(1, 0, 2))  # [N, waves, rows]
    last = _pick(_pick(by_sample, wave), label_lengths)
    closing = _pick(_pick(silent, prim.sub(input_lengths, 1)), label_lengths)
    return prim.neg(prim.add(last, closing))


def _of_labels(scores: Any, label: Any) -> Any:
    """scores [N, T, L + 1, C] at the label of each row: [N, T, L]."""
    rows = section(scores, 2, 0, label.shape[1])
    moved = prim.transpose(rows, permutation=(0, 2, 3, 1))  # [N, L, C, T]
    index = prim.reshape(label, shape=(*label.shape, 1))
    return prim.transpose(prim.gather(moved, index, axes=(2,), batch=2), permutation=(0, 2, 1))


def _skew(x: Any, waves: int, rows: int, late: int) -> Any:
    """x [N, T, rows] by diagonals, [waves + 1, N, rows]: at (d, n, u) the element (n, d - late - u, u)."""
    shape = (waves + 1, rows)
    time = prim.sub(
        prim.sub(prim.iota(shape=shape, axis=0, dtype="int64"), late), prim.iota(shape=shape, axis=1, dtype="int64")
    )
    inside = prim.logical_and(prim.ge(time, 0), prim.lt(time, x.shape[1]))
    bounded = prim.minimum(prim.maximum(time, 0), x.shape[1] - 1)
    row = prim.iota(shape=(*shape, 1), axis=1, dtype="int64")
    index = prim.concat(prim.reshape(bounded, shape=(*shape, 1)), row, axis=2)
    moved = prim.transpose(x, permutation=(1, 2, 0))
    found = prim.transpose(prim.gather(moved, index, axes=(0, 1)), permutation=(0, 2, 1))
    return prim.select(prim.broadcast(inside, shape=found.shape, axes=(0, 2)), found, _NEVER)


@rnnt_paths.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    label = np.array([[1, 2], [3, 0]], np.int32)
    yield Sample(rng.standard_normal((2, 4, 3, 4)), label, np.array([4, 3]), np.array([2, 1]), fastemit_lambda=0.0)
