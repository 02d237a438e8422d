"""Loops within loops: what an inner one came to carry, so that it need not be found again.

A loop is traced until the types of what it carries settle, and each of these trials traces the loops within: from
scratch, their trials would multiply with every level. From one trial of a loop to the next, what its variables are only
becomes less certain (a number becomes a tensor, never the other way round), so what an inner loop carried in the one it
carries in the other: there it begins with that, and settles at once.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import CodeType
from typing import Any, NamedTuple

__all__ = ["InnerLoops", "LoopSignature", "LoopVariable"]


class LoopVariable(NamedTuple):
    """A variable that a loop carries: what it ``started`` as (a number, or None for what is no number), and the dtype,
    shape and marks of the tensor that it is from step to step."""

    started: Any
    dtype: Any
    shape: tuple[Any, ...]
    active: bool
    wants: bool


class LoopSignature(NamedTuple):
    """What a loop carries: variables by position; states of the program that it writes; tensors with gradient slots;
    whether it draws random numbers; and what the loops within it carry."""

    variables: dict[int, LoopVariable]
    places: list[Any]
    slots: list[Any]
    draws: bool
    inner: InnerLoops


class InnerLoops:
    """What the loops within a loop have settled on, by the way from its body to their statement."""

    def __init__(self) -> None:
        self._known: dict[Any, LoopSignature] = {}
        self._met: Counter[Any] = Counter()

    def begin(self) -> None:
        """Another trial of the loop around them begins."""
        self._met.clear()

    def key(self, body: CodeType) -> Any:
        """Where the calling loop stands: the calls on the way from ``body``, a function that runs the outer one's step,
        and how often this trial has been there."""
        path = []
        frame = sys._getframe(1)
        while frame.f_code is not body and frame.f_back is not None:
            path.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back
        way = tuple(path)
        self._met[way] += 1
        return way, self._met[way]

    def get(self, key: Any) -> LoopSignature | None:
        """What the loop there carried in the trial before."""
        return self._known.get(key)

    def put(self, key: Any, settled: LoopSignature) -> None:
        """Note what the loop there carries."""
        self._known[key] = settled
