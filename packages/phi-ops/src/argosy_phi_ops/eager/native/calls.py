"""Plans of calls: operators of any tensors and attributes, whose result a compiled program makes or is a view."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from argosy_phi_ops.checks.bounds import known_bounds
from argosy_phi_ops.checks.value_checks import looks_at_constants
from argosy_phi_ops.compiler import NativeCode
from argosy_phi_ops.context import process_context
from argosy_phi_ops.eager.native import plans
from argosy_phi_ops.eager.native.loading import Native, native
from argosy_phi_ops.eager.native.methods import install
from argosy_phi_ops.eager.native.plans import changing, is_small, is_small_type, size_class
from argosy_phi_ops.eager.native.signatures import Reading, hash_words
from argosy_phi_ops.eager.results import Parts
from argosy_phi_ops.eager.tiering import TieredKernel
from argosy_tensorcore.shape import contiguous_strides
from argosy_tensorcore.storage import ArrayType

__all__ = ["forget", "learn", "learn_parts", "learn_program", "learn_several", "learn_view", "remember"]

_plans: dict[int, _CallPlan] = {}
"""By place."""


class _CallPlan:
    """A plan as native code reads it, with what it names."""

    def __init__(
        self,
        made: Native,
        application: Any,
        reading: Reading,
        words: dict[str, int],
        keeping: tuple[Any, ...],
        numbers: Sequence[Any],
    ) -> None:
        self.application = application
        self.made = made
        self.reading = reading
        self.words = array("Q", reading.words)
        self.numbers = array("Q", [0 if x is None else id(x) for x in numbers])
        self.recipes = array("q", [0] * 4 * made.build.recipes)
        self.count = 0
        op, result = application.op, application.result
        given = words | _describe(result) | {
            "operator": id(op), "class": size_class(made, result) or 0,
            "hash": hash_words(id(op), reading.words), "length": len(reading.words),
            "words": self.words.buffer_info()[0], "operands": len(numbers), "numbers": self.numbers.buffer_info()[0],
            "unrecorded": _unrecorded(op, result), "recipes": self.recipes.buffer_info()[0],
        }  # fmt: skip
        self.record = array("Q", [given.get(word, 0) & (1 << 64) - 1 for word in made.build.call_words])
        self.kept: list[Any] = [op, result, result.dtype, result.shape, result.ndim, *numbers, *keeping]

    def remember(self, wants: int, recipe: Any) -> None:
        """Add a recipe, where there is room; ``wants`` has the last operand in its lowest bit."""
        count = len(self.numbers)
        keeps = recipe.keeps
        fits = set(keeps) <= set(range(count + 1)) and list(keeps) == sorted(set(keeps))
        if not fits or self.count == self.made.build.recipes:
            return
        bits = sum(1 << i for i in range(count) if wants >> (count - 1 - i) & 1)
        self.kept += (recipe, recipe.name)
        at = 4 * self.count
        self.recipes[at + 1 : at + 4] = array("q", [id(recipe), id(recipe.name), sum(1 << i for i in keeps)])
        self.recipes[at] = bits
        self.count += 1


def _unrecorded(op: Any, result: Any) -> int:
    """Whether nothing is recorded: 2 where nobody takes the result for a function of the operands either."""
    if op.name.endswith("_like"):
        return 2
    return int(op.constant or not result.differentiable)


def learn(application: Any, reading: Reading) -> None:
    """Let native code do this application of a binary operator that it has kernels for, where it can; its calls are
    read so."""
    plans.learn(application)
    if application.place is None:  # nor is the native build loaded
        return
    made = native()
    if made is None:
        return
    if all(type(t) is ArrayType for t in application.types):
        _learn(made, application, {"kernel": plans.kernel_of(made, application)}, (), (None, None), reading)
    else:
        install(made, application.op)


def learn_program(
    application: Any, program: NativeCode, reading: Reading, numbers: Sequence[Any] | None = None
) -> None:
    """Let native code run the compiled ``program`` of an application, where it can: for all calls that read so; those
    with these ``numbers`` in their places (None is where tensors are)."""
    made = native()
    if made is None or not is_small(application) or len(program.table) > made.build.table:
        return
    if program.arena > made.build.scratch:
        return
    if size_class(made, application.result) is None or program.output != 1 + _tensors(application):
        return
    numbers = numbers or (None,) * len(application.types)
    bounds = _bounds(application)
    if bounds is None or not looks_at_constants(application.op, numbers, application.attributes):
        return
    template = array("q", [*program.table, *[0] * (made.build.table - len(program.table))])
    template[0] = made.addresses["scratch"] if program.arena else 0
    words = {"kernel": program.address, "table": template.buffer_info()[0], "output": program.output}
    if bounds:
        words["bounds"] = bounds.buffer_info()[0]
    generator = process_context.generator if application.draws else None
    state = generator and generator.array
    if application.draws:
        if state is None:
            return
        words |= {"generator": id(generator), "draws": id(state)}
    numbers = numbers[: len(application.types) - application.draws]
    _learn(made, application, words, (program, template, bounds, generator, state), numbers, reading)


def _bounds(application: Any) -> array[int] | None:
    """How many indices native code has to look at, and for each its operand, how many there are, bytes of one, the
    least and the greatest allowed, and one allowed besides; empty for none. None where it cannot."""
    if application.op.bounds is None and application.op.own_bounds is None:
        return array("q")
    if not all(type(t) is ArrayType for t in application.types):
        return None
    found = known_bounds(application.op, application.types, application.attributes)
    if found is None or not all(application.types[bound.operand].dtype.name in ("int32", "int64") for bound in found):
        return None
    made = array("q", [len(found)])
    for at, _, low, size, besides in found:
        kind = application.types[at]
        made.extend([at, prod(kind.shape), kind.dtype.itemsize, low, size - 1, besides])
    return made


def _tensors(application: Any) -> int:
    return sum(type(t) is ArrayType for t in application.types)


def learn_several(application: Any, program: NativeCode, reading: Reading) -> None:
    """Let native code run the compiled ``program`` of an application with several results, all of which it gives, where
    nothing is recorded."""
    made = native()
    if made is None or len(program.table) > made.build.table or program.arena > made.build.scratch:
        return
    if program.output != 1 + len(application.types) or not all(
        is_small_type(t) for t in (*application.types, *application.results)
    ):
        return
    template = array("q", [*program.table, *[0] * (made.build.table - len(program.table))])
    template[0] = made.addresses["scratch"] if program.arena else 0
    words = {"kernel": program.address, "table": template.buffer_info()[0], "output": program.output}
    classes = [{"class": size_class(made, t) or 0} for t in application.results]
    _learn_several(made, application, words, (program, template), classes, reading)


def learn_parts(application: Any, parts: Parts, reading: Reading) -> None:
    """The same where the results are views of ``parts`` of the operand."""
    made = native()
    if made is None or any(s % t.dtype.itemsize for t, strides, _ in parts.places for s in strides):
        return
    ones, keeping = [], []
    for kind, strides, distance in parts.places:
        counted = tuple([s // kind.dtype.itemsize for s in strides])
        whole = counted == contiguous_strides(kind.shape)
        ones.append({"strides": id(counted), "contiguous": id(whole), "distance": distance})
        keeping.append(counted)
    _learn_several(made, application, {"strides": ones[0]["strides"]}, tuple(keeping), ones, reading)


def _learn_several(
    made: Native,
    application: Any,
    words: dict[str, int],
    keeping: tuple[Any, ...],
    each: Sequence[dict[str, int]],
    reading: Reading,
) -> None:
    records = [
        array("Q", [(_describe(kind) | one).get(word, 0) & (1 << 64) - 1 for word in made.build.call_words])
        for kind, one in zip(application.results, each, strict=True)
    ]
    several = array("Q", [len(records), *[record.buffer_info()[0] for record in records]])
    words = words | {"several": several.buffer_info()[0]}
    parts = [part for t in application.results for part in (t, t.dtype, t.shape, t.ndim)]
    _learn(made, application, words, (*keeping, several, *records, *parts), (None,) * len(application.types), reading)


def _describe(kind: ArrayType) -> dict[str, int]:
    """What a plan says of a result's type."""
    return {
        "type": id(kind), "dtype": id(kind.dtype), "shape": id(kind.shape), "ndim": id(kind.ndim),
        "elements": prod(kind.shape), "itemsize": kind.dtype.itemsize,
    }  # fmt: skip


def learn_view(application: Any) -> None:
    """Let native code make the views of an application, once it has been called some more: a few of them are no reason
    to load the native build."""
    kernel = application.kernel

    def installed(_: Any) -> None:
        application.kernel = kernel
        made = native()
        if made is not None:
            for reading in application.readings:
                _learn_view(made, application, reading)

    application.kernel = TieredKernel(kernel, lambda: None, lambda kernel: kernel, installed)


def _learn_view(made: Native, application: Any, reading: Reading) -> None:
    base = application.types[0]
    if (
        len(application.types) != 1
        or not isinstance(base, ArrayType)
        or not (prod(base.shape) and prod(application.result.shape))
    ):
        return
    sample = np.empty(base.shape, base.dtype.numpy)
    view = application.kernel(sample)
    itemsize = base.dtype.itemsize
    if type(view) is not np.ndarray or not np.may_share_memory(view, sample) or not view.flags.writeable:
        return
    if view.dtype != sample.dtype or view.shape != application.result.shape or any(s % itemsize for s in view.strides):
        return
    whole = view.flags.c_contiguous
    strides = contiguous_strides(view.shape) if whole else tuple([s // itemsize for s in view.strides])
    words = {
        "strides": id(strides), "contiguous": id(whole), "distance": view.ctypes.data - sample.ctypes.data,
    }  # fmt: skip
    _learn(made, application, words, (strides, whole), (None,), reading)


def _learn(
    made: Native,
    application: Any,
    words: dict[str, int],
    keeping: tuple[Any, ...],
    numbers: Sequence[Any],
    reading: Reading,
) -> None:
    given = application.types[: len(numbers)]  # without the state of a draw
    types = tuple([t for t, x in zip(given, numbers, strict=True) if x is None])
    if reading.types != types:
        return
    if len(numbers) > made.build.operands or len(reading.words) > made.build.words:
        return
    plan = _CallPlan(made, application, reading, words, keeping, numbers)
    with changing:
        for wants, recipe in () if "several" in words else list(application.recipes.items()):
            plan.remember(wants, recipe)
        place = _place(made, plan)
        old = _plans.get(place)
        made.set_call(place, plan.record.buffer_info()[0])
        _plans[place] = plan
        application.calls.append(plan)
        del old
        install(made, application.op)


def _place(made: Native, plan: _CallPlan) -> int:
    """Where native code looks for a plan: the place that follows from its number, or its neighbour, where an equal one
    is there, or only that one is free."""
    first = hash_words(id(plan.application.op), plan.reading.words) & (made.build.calls - 1)
    places = (first, first ^ 1)
    for place in places:
        old = _plans.get(place)
        if old is not None and old.application.op is plan.application.op and old.reading.words == plan.reading.words:
            return place
    return next((place for place in places if place not in _plans), first)


def remember(application: Any, wants: int, recipe: Any) -> None:
    """Let native code record an application whose operands want gradients as ``wants`` says (1 for the last
    one, 2 for the one before), by the tape's ``recipe``."""
    with changing:
        plans.remember(application, wants, recipe)
        for plan in application.calls:
            plan.remember(wants, recipe)


def forget() -> None:
    """Drop all plans."""
    with changing:
        plans.forget()
        _plans.clear()
