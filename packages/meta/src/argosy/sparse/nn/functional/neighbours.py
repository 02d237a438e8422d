"""Which values of a sparse tensor a sliding window brings together: the rule book of sparse convolution.

Graham, Engelcke and van der Maaten, 2018: only positions that a stored value reaches are computed, and of a submanifold
convolution only those that are stored already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from argosy.sparse.patterns import distinct, keys_of, positions_of

__all__ = ["RuleBook", "Window", "rule_book"]


@dataclass(frozen=True)
class Window:
    """A window over the spatial axes. kept: results lie where values do (submanifold), whatever strides and padding."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    kept: bool = False

    def result(self, spatial: Sequence[int]) -> list[int]:
        """Sizes of the results' axes."""
        if self.kept:
            return list(spatial)
        axes = zip(spatial, self.sizes, self.strides, self.padding, self.dilation, strict=True)
        return [(n + sum(p) - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in axes]


@dataclass(frozen=True)
class RuleBook:
    """Pairs of a value and a result it reaches, ordered by the place in the window, of which each has ``counts`` pairs.

    indices: positions [1 + spatial axes, n] of the results; taken, given: for each pair numbers of value and result.
    """

    indices: Any
    taken: Any
    given: Any
    counts: list[int]


def rule_book(indices: Any, sizes: Sequence[int], window: Window) -> RuleBook:
    """The pairs of values at ``indices`` [1 + spatial axes, nnz], of a grid ``sizes`` [batch, *spatial]."""
    result = [sizes[0], *window.result(sizes[1:])]
    taken, reached = [], []
    for offset in product(*map(range, window.sizes)):
        numbers, positions = _reach(indices, offset, window, result[1:])
        taken.append(numbers)
        reached.append(keys_of(positions, result))
    keys = np.concatenate(reached)
    counts = [len(part) for part in taken]
    if not window.kept:
        found, given = distinct(keys)
        return RuleBook(positions_of(found, result, indices.dtype), np.concatenate(taken), given, counts)
    own = keys_of(indices, result)
    order = np.argsort(own, kind="stable")
    places = np.minimum(np.searchsorted(own, keys, sorter=order), max(own.size - 1, 0))
    hit = own[order[places]] == keys if own.size else np.zeros(keys.shape, bool)
    ends = np.cumsum(counts)
    kept = [int(hit[end - n : end].sum()) for n, end in zip(counts, ends, strict=True)]
    return RuleBook(indices, np.concatenate(taken)[hit], order[places][hit], kept)


def _reach(indices: Any, offset: Sequence[int], window: Window, result: Sequence[int]) -> tuple[Any, Any]:
    """Numbers of the values that stand at ``offset`` in the window of some result, and these results' positions."""
    if window.kept:  # the window stands with its middle on the result
        shift = [(k // 2 - o) * d for k, o, d in zip(window.sizes, offset, window.dilation, strict=True)]
        steps = [1] * len(shift)
    else:
        axes = zip(window.padding, offset, window.dilation, strict=True)
        shift, steps = [p[0] - o * d for p, o, d in axes], list(window.strides)
    moved = indices[1:].astype(np.int64) + np.array(shift)[:, None]
    steps_, limits = np.array(steps)[:, None], np.array(result)[:, None]
    at = moved // steps_
    numbers = np.flatnonzero(((moved % steps_ == 0) & (at >= 0) & (at < limits)).all(0))
    return numbers, np.concatenate([indices[:1, numbers], at[:, numbers]])
