"""What has kept gradients from passing: a :class:`Wall` for each operation without a derivative that was applied to
something that wants one.

A tensor's ``_walls`` are those on the way to it, at most :data:`MOST`; results of operators have those of their
operands, as one tuple that all of them share. They keep no history alive: a wall refers weakly to what is before it.
What is written in place to a tensor adds nothing to its walls.
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

__all__ = ["MOST", "Wall", "Walls", "count_orders", "joined", "note_detached", "note_walls", "silenced", "walls_of"]

MOST = 4
"""Walls that are kept of a tensor: those that were met first."""


class Wall:
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


Walls = tuple[Wall, ...]
_order_of: Callable[[Sequence[Tensor]], int] | None = None


def count_orders(order_of: Callable[[Sequence[Tensor]], int]) -> None:
    """Let ``order_of`` tell how many derivatives were taken before tensors: from now on there may be some."""
    global _order_of
    _order_of = order_of


def joined(a: Walls | None, b: Walls | None) -> Walls | None:
    """The walls of both; one of the two itself where it has all of them."""
    if b is None or a is b:
        return a
    if a is None:
        return b
    more = tuple([wall for wall in b if wall not in a])
    if not more or len(a) >= MOST:
        return a
    return b if len(more) + len(a) == len(b) else (a + more)[:MOST]


def walls_of(operands: Iterable[Any]) -> Walls | None:
    """The walls on the way to what operands are made into."""
    found = None
    for x in operands:
        if type(x) is Tensor and x._walls is not None:
            found = joined(found, x._walls)
    return found


def note_walls(op: Any, operands: Sequence[Any], results: Iterable[Tensor]) -> None:
    """Note in ``results``, which have no gradient, that ``op`` let none pass from ``operands``, of which one at least
    wants one."""
    if op.name.endswith("_like"):  # whoever asks for zeros knows that they are no function
        return
    wall = None
    for result in results:
        if result.stop_gradient:
            if wall is None:
                kind = result.payload.dtype.name
                why = "gives a constant" if op.constant else f"gives {kind}, which has no derivative"
                wall = Wall(op.name, why, operands)
            result._walls = joined(result._walls, (wall,))


def note_detached(x: Tensor, made: Tensor) -> None:
    """Note in ``made`` that it is ``x`` without its history."""
    made._walls = joined(made._walls, (Wall("detach", "cuts what follows off", (x,)),))


def silenced(walls: Walls | None) -> Walls | None:
    """``walls``; where there are none the block that records nothing."""
    return AMBIENT.cut if walls is None else walls


type(Tensor).detached = staticmethod(note_detached)
