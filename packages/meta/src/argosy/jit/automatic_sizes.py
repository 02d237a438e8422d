"""Calls that differ in nothing but sizes. When a function has had many, the sizes that varied become symbols, as if an
``input_spec`` had left them open: one program serves them all, where each would be captured and compiled by itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from argosy.jit.arguments import Call
from argosy.settings import OPEN_AFTER
from argosy_phi_ops.bounded_cache import BoundedCache
from argosy_phi_ops.user_line import user_frame
from argosy_pir.comparisons import observe_comparisons
from argosy_pir.dims import SymExpr
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import DType
from argosy_tensorcore.shape import Size
from argosy_tensorcore.storage import StridedArray

__all__ = ["AutomaticSizes", "SizeHistories", "no_comparisons"]

Shapes = tuple[tuple[int, ...], ...]


class AutomaticSizes:
    """The sizes of calls with such ``shapes``: numbers where all calls have the same, else symbols, one for sizes that
    are equal in each call."""

    spec = None

    def __init__(self, shapes: Sequence[Shapes]) -> None:
        columns = [list(zip(*of_tensor, strict=True)) for of_tensor in zip(*shapes, strict=True)]
        symbols: dict[tuple[int, ...], SymExpr] = {}
        for column in (column for columns_of_tensor in columns for column in columns_of_tensor):
            if len(set(column)) > 1 and column not in symbols:
                symbols[column] = SymExpr.symbol(f"s{len(symbols)}")
        self._shapes = [tuple(symbols.get(column, column[0]) for column in of_tensor) for of_tensor in columns]

    def fit(self, call: Call) -> bool:
        """Whether the program is one for the sizes of a call. What operators do with no element, or with one, which may
        be repeated, is another matter: such calls have programs of their own."""
        known: dict[SymExpr, int] = {}
        for shape, x in zip(self._shapes, call.tensors, strict=True):
            for size, n in zip(shape, x.payload.shape, strict=True):
                if isinstance(size, int) and size != n:
                    return False
                if not isinstance(size, int) and (n < 2 or known.setdefault(size, n) != n):
                    return False
        return True

    def types(self, call: Call) -> list[TensorType]:
        """The types of the inputs of the program."""
        return [TensorType(shape, x.payload.dtype.name) for shape, x in zip(self._shapes, call.tensors, strict=True)]


class _History:
    """The shapes of calls of one kind, and the sizes that they lead to."""

    def __init__(self) -> None:
        self.shapes: dict[Shapes, None] = {}
        self.sizes: AutomaticSizes | None = None
        self.refused = False


class SizeHistories:
    """What is known of the sizes in calls of one function, by kinds of calls that do not count sizes."""

    def __init__(self) -> None:
        self._histories: dict[Any, _History] = BoundedCache(64)

    def sizes(self, call: Call, key: Any) -> AutomaticSizes | None:
        """The sizes of the program that serves calls of all sizes, for a call whose ``key`` has no program of its own;
        None where calls have been few, or there is no such program."""
        limit = OPEN_AFTER.read()
        if not limit or not call.tensors or not all(type(x.payload) is StridedArray for x in call.tensors):
            return None
        history = self._history(key)
        if history.refused:
            return None
        if history.sizes is not None and history.sizes.fit(call):
            return history.sizes
        history.shapes[tuple(tuple(x.payload.shape) for x in call.tensors)] = None
        if len(history.shapes) <= limit:
            return None
        history.sizes = AutomaticSizes(list(history.shapes))
        history.shapes.clear()
        return history.sizes if history.sizes.fit(call) else None

    def refuse(self, key: Any) -> None:
        """Let calls of such a kind have a program for each of their sizes."""
        history = self._history(key)
        history.refused, history.sizes = True, None
        history.shapes.clear()

    def _history(self, key: Any) -> _History:
        kind = _without_sizes(key)
        history = self._histories.get(kind)
        if history is None:
            history = self._histories[kind] = _History()
        return history


def _without_sizes(key: Any) -> Any:
    """A call's key with the numbers of axes in place of shapes."""
    if type(key) is not tuple:
        return key
    if len(key) == 3 and type(key[1]) is DType:
        return len(key[0]), key[1], key[2]
    return tuple(map(_without_sizes, key))


@contextmanager
def no_comparisons() -> Iterator[None]:
    """Raise TypeError where code that is not the framework's own decides by the number of a size that is a symbol: one
    program would decide so for all sizes."""
    with observe_comparisons(_refuse):
        yield


def _refuse() -> None:
    frame = sys._getframe(3)  # who compares; a shape does it for whoever compares shapes
    while frame.f_globals.get("__name__") == Size.__module__ and frame.f_back is not None:
        frame = frame.f_back
    if user_frame(frame) is frame:
        raise TypeError("a size that varies is compared with a number")
