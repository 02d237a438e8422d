"""Native plans: what native code knows of an application. They are the application's own; native code finds them in its
one table of addresses, by the operator and the words that a call reads as (`signatures`).

The table's entry counts as a reference to the plan, so that what native code reads lives while it can be found; an
application that leaves its table of applications takes its plans out (:func:`drop`).
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from math import prod
from threading import RLock
from typing import Any

from argosy_phi_ops.eager.native.loading import NativeLibrary, native_library
from argosy_phi_ops.eager.native.memory import peek, poke
from argosy_phi_ops.eager.native.signatures import hash_words, place_of
from argosy_pir.fork import hold_at_fork
from argosy_tensorcore.storage import ArrayType

__all__ = [
    "NativePlan", "describe", "drop", "is_small", "is_small_type", "least_steps", "link", "remember", "size_class",
]  # fmt: skip

_LARGEST, _ELEMENTS = 1 << 16, 1 << 14  # bytes of a result, elements of operands: a call holds the global lock briefly
_changing = hold_at_fork(RLock())
"""Held while plans change: what native code finds and what an application has must be of the same thread."""


class NativePlan:
    """A plan of ``application`` for calls that read as ``words``, as native code reads it, with what it names.

    ``fields`` say how to compute, ``keeping`` is what they point at; ``numbers`` are the operands, with None for
    tensors.
    """

    __slots__ = ("application", "count", "keeping", "made", "numbers", "record", "words")

    def __init__(
        self,
        made: NativeLibrary,
        application: Any,
        words: tuple[int, ...],
        fields: dict[str, int],
        keeping: tuple[Any, ...],
        numbers: Sequence[Any],
    ) -> None:
        self.made, self.application = made, application
        self.words = array("Q", words)
        self.numbers = array("Q", [0 if x is None else id(x) for x in numbers])
        self.count = 0
        op, result = application.op, application.result
        given = {
            "plan": id(self), "operator": id(op), "class": size_class(made, result) or 0,
            "hash": hash_words(id(op), words), "length": len(words), "words": self.words.buffer_info()[0],
            "operands": len(numbers), "numbers": self.numbers.buffer_info()[0],
            "unrecorded": _needs_no_record(op, result),
        } | describe(result) | fields  # fmt: skip
        self.record = array("Q", [given.get(word, 0) & (1 << 64) - 1 for word in made.build.plan_words])
        self.keeping: list[Any] = [op, result, result.dtype, result.shape, result.ndim, *numbers, *keeping]

    @property
    def address(self) -> int:
        """Where native code reads it."""
        return self.record.buffer_info()[0]

    def remember(self, wants: int, recipe: Any) -> None:
        """Add a recipe, where there is room; ``wants`` has the last operand in its lowest bit."""
        count, room = len(self.numbers), self.made.build.recipes
        keeps = recipe.keeps
        fits = set(keeps) <= set(range(count + 1)) and list(keeps) == sorted(set(keeps))
        bits = sum(1 << i for i in range(count) if wants >> (count - 1 - i) & 1)
        at = bits - 1 if count <= 2 else self.count  # Python's operators look at one place alone
        if not fits or at >= room:
            return
        self.keeping += (recipe, recipe.name)
        at = len(self.record) - 4 * (room - at)
        self.record[at + 1 : at + 4] = array("Q", [id(recipe), id(recipe.name), sum(1 << i for i in keeps)])
        self.record[at] = bits
        self.count += 1


def _needs_no_record(op: Any, result: Any) -> int:
    """Whether nothing is recorded: 2 where nobody takes the result for a function of the operands either."""
    if op.name.endswith("_like"):
        return 2
    return int(op.constant or not result.differentiable)


def describe(kind: ArrayType) -> dict[str, int]:
    """What a plan says of a result's type."""
    return {
        "type": id(kind), "dtype": id(kind.dtype), "shape": id(kind.shape), "ndim": id(kind.ndim),
        "elements": prod(kind.shape), "itemsize": kind.dtype.itemsize,
    }  # fmt: skip


# ---- the table of addresses


def link(plan: NativePlan) -> None:
    """Let native code find a plan of an application that is still used."""
    with _changing:
        application = plan.application
        if application.plans is None:
            return
        if application.is_single:  # the tape has a node for all of several results
            for wants, recipe in application.recipes.copy().items():
                plan.remember(wants, recipe)
        application.plans = [old for old in application.plans if old.words != plan.words] + [plan]
        _write_plan(plan.made, _place(plan), plan)


def remember(application: Any, wants: int, recipe: Any) -> None:
    """Let native code record an application whose operands want gradients as ``wants`` says (1 for the last
    one, 2 for the one before), by the tape's ``recipe``."""
    with _changing:
        for plan in application.plans or ():
            plan.remember(wants, recipe)


def drop(application: Any) -> None:
    """Take the plans of an application out, and let it have none any more."""
    with _changing:
        plans, application.plans = application.plans, None
        for plan in plans or ():
            made = plan.made
            for place in _places(plan):
                if _read_plan(made, place) is plan:
                    _write_plan(made, place, None)


def _places(plan: NativePlan) -> tuple[int, int]:
    """Where native code looks for a plan: the place that follows from the words, and its neighbour."""
    first = place_of(hash_words(id(plan.application.op), plan.words), plan.made.build.plans)
    return first, first ^ 1


def _place(plan: NativePlan) -> int:
    """The place where an equal plan is, or else one that is free, or the first."""
    places = _places(plan)
    found = {place: _read_plan(plan.made, place) for place in places}
    for place, old in found.items():
        if old is not None and old.application.op is plan.application.op and old.words == plan.words:
            return place
    return next((place for place, old in found.items() if old is None), places[0])


def _read_plan(made: NativeLibrary, place: int) -> NativePlan | None:
    """The plan that native code finds at a place."""
    record = peek(made.addresses["plans"] + 8 * place)
    if not record:
        return None
    plan: NativePlan = ctypes.cast(peek(record + 8 * made.build.plan_words.index("plan")), ctypes.py_object).value
    return plan


def _write_plan(made: NativeLibrary, place: int, plan: NativePlan | None) -> None:
    """Let native code find a plan at a place, or none, in which case it finds it no more."""
    old = _read_plan(made, place)
    if plan is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(plan))
    poke(made.addresses["plans"] + 8 * place, 0 if plan is None else plan.address)
    if old is not None:
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(old))


# ---- what native code takes


def is_small(application: Any) -> bool:
    """Whether native code might make the result itself: of tensors and perhaps numbers that are constants, none of
    them large (the global lock is held meanwhile)."""
    if not application.readings or (application.dtypes is not None and application.constants is None):
        return False
    if not all(type(t) is not ArrayType or prod(t.shape) <= _ELEMENTS for t in application.types):
        return False
    return bool(_nbytes(application.result) <= _LARGEST)


def is_small_type(kind: Any) -> bool:
    """Whether a type is that of an array which native code might read, or make."""
    return type(kind) is ArrayType and prod(kind.shape) <= _ELEMENTS and _nbytes(kind) <= _LARGEST


def least_steps(application: Any) -> int:
    """How many light steps of its program native code gains something for: one where calls enter native code."""
    return 1 if is_small(application) and native_library() is not None else 2


def size_class(made: NativeLibrary, kind: ArrayType) -> int | None:
    """The class of memory that a result is made in; None where it is too large."""
    nbytes = _nbytes(kind)
    return next((i for i, size in enumerate(made.build.sizes) if nbytes <= size), None)


def _nbytes(kind: ArrayType) -> int:
    return kind.dtype.itemsize * prod(kind.shape)
