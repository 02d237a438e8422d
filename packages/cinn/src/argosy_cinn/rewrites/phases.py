"""Transposed convolutions (gradients by the input of strided ones) without the zeros that spread their input.

With the input spread by ``a``, place ``a q + r`` of the result sees, of tap ``t``, the element ``q + J`` where
``t = a J + low - r``. All ``a`` phases ``r`` are filters of one convolution with stride one over the input as it is,
whose window is that of ``J``; the phases of a place then lie beside each other (the sub-pixel convolution of Shi et
al., 2016, backwards). A window without overlap (a patch embedding's) is a matrix product that reads its input in place.
Where phases have windows of different sizes (three taps, spread by two: two taps and one), filters of one convolution
would multiply zeros: few phases are then convolutions of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from argosy_cinn.rewrites.builders import constant, emit
from argosy_cinn.shapes import sizes
from argosy_pir.core import Operation
from argosy_pir.types import TensorType
from argosy_pir.values import Value

#: Phases that are convolutions of their own at most, the share of products with zeros that is not worth that, and the
#: filters for which reading the input anew for each phase does not show.
_FEW_PHASES, _TOLERATED_ZEROS, _MANY_FILTERS = 8, 1.2, 24


@dataclass(frozen=True, slots=True)
class Axis:
    """One spatial axis: ``size`` of the input, spread ``a``, ``taps``, padding ``low``, ``places`` of the result."""

    size: int
    spread: int
    taps: int
    low: int
    places: int

    @property
    def first_block(self) -> int:
        """The least J."""
        return -(self.low // self.spread)

    @property
    def window(self) -> int:
        """How many J there are."""
        return (self.taps - 1 - self.low + self.spread - 1) // self.spread - self.first_block + 1

    @property
    def zeros_before(self) -> int:
        """Zeros before the taps, so that tap ``u - before`` is that of J ``u // a`` and phase ``a - 1 - u % a``."""
        return self.spread - 1 - self.low - self.spread * self.first_block

    @property
    def phases(self) -> tuple[int, int]:
        """The phases that are computed, as a range: all, or those that a window of one J has taps for."""
        if self.window > 1:
            return 0, self.spread
        return self.spread - self.zeros_before - self.taps, self.spread - self.zeros_before

    def of_phase(self, phase: int) -> tuple[int, int, int]:
        """The first tap of a phase, its J, and how many taps there are."""
        tap = (self.low - phase) % self.spread
        return tap, (tap - self.low + phase) // self.spread, max(-(-(self.taps - tap) // self.spread), 0)

    @property
    def blocks(self) -> int:
        """Places of the result divided by the phases, rounded up."""
        return -(-self.places // self.spread)

    @property
    def padding(self) -> tuple[int, int]:
        """Of the convolution with stride one."""
        return -self.first_block, self.blocks + self.window - 1 - self.size + self.first_block


def is_spread(op: Operation) -> bool:
    """Whether a convolution spreads its input, and does nothing else that is out of the ordinary."""
    a = op.attributes
    plain = all(n == 1 for n in (*a["strides"], *a["rhs_dilation"]))
    known = all(isinstance(n, int) for v in (*op.operands, op.result) for n in v.shape)
    return plain and known and any(n > 1 for n in a["lhs_dilation"])


def by_phases(op: Operation) -> Value:
    """The convolution over the input as it is, with its phases in their places."""
    x, w = op.operands
    axes = [
        Axis(n, a, k, p[0], m)
        for n, a, k, p, m in zip(
            sizes(x)[2:], op.attributes["lhs_dilation"], sizes(w)[2:], op.attributes["padding"], sizes(op.result)[2:],
            strict=True,
        )
    ]  # fmt: skip
    if _prefers_separate_phases(axes) and sizes(w)[0] >= _MANY_FILTERS * op.attributes["groups"]:
        return _in_place(_one_by_one(op, axes), sizes(w)[0], axes)
    ones = (1,) * len(axes)
    padding = tuple(axis.padding for axis in axes)
    result = emit(
        "conv", x, _filters(w, axes), strides=ones, padding=padding, lhs_dilation=ones, rhs_dilation=ones,
        groups=op.attributes["groups"],
    )  # fmt: skip
    return _in_place(result, sizes(w)[0], axes)


def _prefers_separate_phases(axes: list[Axis]) -> bool:
    """Whether few phases share so few taps that each is better a convolution of its own."""
    joint, single = prod(axis.window * axis.spread for axis in axes), prod(axis.taps for axis in axes)
    some = all(axis.of_phase(phase)[2] for axis in axes for phase in range(axis.spread))
    return prod(axis.spread for axis in axes) <= _FEW_PHASES and joint > _TOLERATED_ZEROS * single and some


def _one_by_one(op: Operation, axes: list[Axis]) -> Value:
    """[N, O * phases, *blocks], a convolution for each phase."""
    x, w = op.operands
    n, filters, *_ = sizes(op.result)
    blocks = tuple(axis.blocks for axis in axes)
    made = []
    for phases in product(*(range(axis.spread) for axis in axes)):
        found = [axis.of_phase(phase) for axis, phase in zip(axes, phases, strict=True)]
        start = (0, 0, *(tap for tap, _, _ in found))
        cut = emit("slice", w, start=start, limit=sizes(w), stride=(1, 1, *(axis.spread for axis in axes)))
        around = zip(axes, found, strict=True)
        padding = tuple((-first, axis.blocks + count - 1 - axis.size + first) for axis, (_, first, count) in around)
        ones = (1,) * len(axes)
        part = emit(
            "conv", x, cut, strides=ones, padding=padding, lhs_dilation=ones, rhs_dilation=ones,
            groups=op.attributes["groups"],
        )  # fmt: skip
        made.append(emit("reshape", part, shape=(n, filters, 1, *blocks)))
    return emit("reshape", emit("concat", *made, axis=2), shape=(n, filters * len(made), *blocks))


def _zero(x: Value) -> Value:
    return constant(0, TensorType((), x.dtype))


def _filters(w: Value, axes: list[Axis]) -> Value:
    """The weights [O, C, *K] as [O * phases, C, *windows]."""
    rank = len(axes)
    shape = list(sizes(w)[:2])
    for axis in axes:
        shape += [axis.window, axis.spread] if axis.window > 1 else [1, axis.taps]
    whole = [axis.window > 1 for axis in axes]
    low = (0, 0, *(axis.zeros_before if many else 0 for axis, many in zip(axes, whole, strict=True)))
    ends = [axis.window * axis.spread - axis.taps - axis.zeros_before for axis in axes]
    high = (0, 0, *(end if many else 0 for end, many in zip(ends, whole, strict=True)))
    padded = emit("pad", w, _zero(w), low=low, high=high, interior=(0,) * (2 + rank))
    apart = emit("reverse", emit("reshape", padded, shape=tuple(shape)), axes=tuple(range(3, 3 + 2 * rank, 2)))
    phases = tuple(range(3, 3 + 2 * rank, 2))
    moved = emit("transpose", apart, permutation=(0, *phases, 1, *range(2, 2 + 2 * rank, 2)))
    filters = sizes(w)[0] * prod(sizes(apart)[i] for i in phases)
    return emit("reshape", moved, shape=(filters, sizes(w)[1], *(axis.window for axis in axes)))


def _in_place(y: Value, filters: int, axes: list[Axis]) -> Value:
    """[N, O * phases, *blocks] as [N, O, *places]."""
    n, rank = sizes(y)[0], len(axes)
    phases = [axis.phases for axis in axes]
    counts, blocks = [last - first for first, last in phases], [axis.blocks for axis in axes]
    apart = emit("reshape", y, shape=(n, filters, *counts, *blocks))
    order = [i for k in range(rank) for i in (2 + rank + k, 2 + k)]
    beside = emit("transpose", apart, permutation=(0, 1, *order))
    low = [i for first, _ in phases for i in (0, first)]
    high = [i for (_, last), axis in zip(phases, axes, strict=True) for i in (0, axis.spread - last)]
    full = emit("pad", beside, _zero(y), low=(0, 0, *low), high=(0, 0, *high), interior=(0,) * (2 + 2 * rank))
    joined = emit("reshape", full, shape=(n, filters, *(axis.blocks * axis.spread for axis in axes)))
    start, ones = (0,) * (2 + rank), (1,) * (2 + rank)
    return emit("slice", joined, start=start, limit=(n, filters, *(axis.places for axis in axes)), stride=ones)
