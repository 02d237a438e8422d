"""Gradient blockers, which have kept gradients from passing: one for each operation without a derivative that was
applied to something that wants one.

A tensor's ``_gradient_blockers`` are those on the way to it, at most :data:`MOST`; results of operators have
those of their operands, as one tuple that all of them share. They keep no history alive: a blocker refers weakly to
what is before it. What is written in place to a tensor adds nothing to its blockers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from types import CodeType
from typing import Any
from weakref import ref

from argosy_phi_ops.context import AMBIENT
from argosy_phi_ops.user_line import user_frame
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "MOST",
    "GradientBlocker",
    "GradientBlockers",
    "blockers_of",
    "count_orders",
    "join_blockers",
    "note_blockers",
    "note_detach",
    "silence_blockers",
]

MOST = 4
"""GradientBlockers that are kept of a tensor: those that were met first."""


class GradientBlocker:
    """An operation that let no gradient pass. ``name``: the operation; ``why``: what is said of it; ``order``: how many
    derivatives were taken before it; ``before``: weak references to what its operands came from, nodes of the tape with
    the number of the result, or leaves."""

    __slots__ = ("_at", "_code", "before", "name", "order", "why")

    def __init__(self, name: str, why: str, operands: Iterable[Any] = (), function: CodeType | None = None) -> None:
        self.name = name
        self.why = why
        moving = [x for x in operands if type(x) is Tensor and not x.stop_gradient]
        self.before = [(ref(x if x._node is None else x._node), x._slot) for x in moving]
        self.order = 0 if _order_of is None else _order_of(moving)
        if function is None:
            frame = user_frame(sys._getframe(1))
            self._code, self._at = frame.f_code, frame.f_lasti
        else:
            self._code, self._at = function, -1

    def __str__(self) -> str:
        code = self._code
        return f"{self.name} ({code.co_filename}:{self._line()} in {code.co_name}) {self.why}"

    def _line(self) -> int:
        """Looked up when it is shown: it takes longer than to apply an operator."""
        found = next(islice(self._code.co_positions(), self._at // 2, None))[0] if self._at >= 0 else None
        return self._code.co_firstlineno if found is None else found


GradientBlockers = tuple[GradientBlocker, ...]
_order_of: Callable[[Sequence[Tensor]], int] | None = None


def count_orders(order_of: Callable[[Sequence[Tensor]], int]) -> None:
    """Let ``order_of`` tell how many derivatives were taken before tensors: from now on there may be some."""
    global _order_of
    _order_of = order_of


def join_blockers(a: GradientBlockers | None, b: GradientBlockers | None) -> GradientBlockers | None:
    """The blockers of both; one of the two itself where it has all of them."""
    if b is None or a is b:
        return a
    if a is None:
        return b
    more = tuple([blocker for blocker in b if blocker not in a])
    if not more or len(a) >= MOST:
        return a
    return b if len(more) + len(a) == len(b) else (a + more)[:MOST]


def blockers_of(operands: Iterable[Any]) -> GradientBlockers | None:
    """The blockers on the way to what operands are made into."""
    found = None
    for x in operands:
        if type(x) is Tensor and x._gradient_blockers is not None:
            found = join_blockers(found, x._gradient_blockers)
    return found


def note_blockers(op: Any, operands: Sequence[Any], results: Iterable[Tensor]) -> None:
    """Note in ``results``, which have no gradient, that ``op`` let none pass from ``operands``, of which one at least
    wants one."""
    if op.name.endswith("_like"):  # whoever asks for zeros knows that they are no function
        return
    blocker = None
    for result in results:
        if result.stop_gradient:
            if blocker is None:
                kind = result.payload.dtype.name
                why = "gives a constant" if op.constant else f"gives {kind}, which has no derivative"
                blocker = GradientBlocker(op.name, why, operands)
            result._gradient_blockers = join_blockers(result._gradient_blockers, (blocker,))


def note_detach(x: Tensor, made: Tensor) -> None:
    """Note in ``made`` that it is ``x`` without its history."""
    made._gradient_blockers = join_blockers(
        made._gradient_blockers, (GradientBlocker("detach", "cuts what follows off", (x,)),)
    )


def silence_blockers(blockers: GradientBlockers | None) -> GradientBlockers | None:
    """``blockers``; where there are none the block that records nothing."""
    return AMBIENT.cut if blockers is None else blockers


type(Tensor).detached = staticmethod(note_detach)
