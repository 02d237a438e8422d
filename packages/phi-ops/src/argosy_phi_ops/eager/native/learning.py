"""Teaching native code an application, whose result its own kernel or a compiled program makes, or which is a view."""

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
from argosy_phi_ops.eager.native.loading import NativeLibrary, is_running, native_library
from argosy_phi_ops.eager.native.methods import KERNELS, install
from argosy_phi_ops.eager.native.plans import NativePlan, describe, is_small, is_small_type, link, size_class
from argosy_phi_ops.eager.native.signatures import CallSignature
from argosy_phi_ops.eager.results import Parts
from argosy_phi_ops.eager.tiering import TieredKernel
from argosy_tensorcore.shape import contiguous_strides
from argosy_tensorcore.storage import ArrayType

__all__ = ["learn", "learn_parts", "learn_program", "learn_several", "learn_view"]


def learn(application: Any, reading: CallSignature) -> None:
    """Let native code do this application of a binary operator that it has kernels for, where it can, by Python's
    operator and by calls that read so."""
    side = _number_side(application) if application.op.name in KERNELS else None
    if side is None or (side and _waits(application, reading)):
        return
    made = native_library()
    if made is None:
        return
    op, result, types = application.op, application.result, application.types
    if result.dtype.name not in made.build.dtypes or size_class(made, result) is None:
        return
    install(made, op)
    kernel = {"kernel": made.addresses[f"{op.name}_{result.dtype.name}" + (f"_number_{side}" if side else "")]}
    words = (id(types[0]), id(types[1]))
    found = kernel | {"left": words[0], "right": words[1]} | ({"length": 0} if side else {})  # a number's class
    link(NativePlan(made, application, words, found, types, (None, None)))
    if not side and reading.words != words:
        _learn(made, application, kernel, (), (None, None), reading)


def _waits(application: Any, reading: CallSignature) -> bool:
    """Whether an application with a number is left for later: a few sums with a number are no reason to load the native
    build. It is learnt when it has been called some more."""
    if is_running():
        return False
    name = "kernel" if application.ufunc is None else "ufunc"
    kernel = getattr(application, name)
    if type(kernel) is TieredKernel:  # it waits already
        return True

    def install(_: Any) -> None:
        setattr(application, name, kernel)
        if native_library() is not None:
            learn(application, reading)

    setattr(application, name, TieredKernel(kernel, lambda: None, lambda kernel: kernel, install))
    return True


def _number_side(application: Any) -> str | None:
    """Where a number stands beside a tensor of the result's type, or empty for two such tensors; None for all other
    applications."""
    if len(application.types) != 2:
        return None
    others = [side for side, t in zip(("left", "right"), application.types, strict=True) if t is not application.result]
    if not others:
        return "" if application.dtypes is None else None
    number = application.types[0] if others == ["left"] else application.types[1]
    return others[0] if len(others) == 1 and number in (float, int) else None


def learn_program(
    application: Any, program: NativeCode, reading: CallSignature, numbers: Sequence[Any] | None = None
) -> None:
    """Let native code run the compiled ``program`` of an application, where it can: for all calls that read so; those
    with these ``numbers`` in their places (None is where tensors are)."""
    made = native_library()
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


def learn_several(application: Any, program: NativeCode, reading: CallSignature) -> None:
    """Let native code run the compiled ``program`` of an application with several results, all of which it gives, where
    nothing is recorded."""
    made = native_library()
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


def learn_parts(application: Any, parts: Parts, reading: CallSignature) -> None:
    """The same where the results are views of ``parts`` of the operand."""
    made = native_library()
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
    made: NativeLibrary,
    application: Any,
    words: dict[str, int],
    keeping: tuple[Any, ...],
    each: Sequence[dict[str, int]],
    reading: CallSignature,
) -> None:
    records = [
        array("Q", [(describe(kind) | one).get(word, 0) & (1 << 64) - 1 for word in made.build.plan_words])
        for kind, one in zip(application.results, each, strict=True)
    ]
    several = array("Q", [len(records), *[record.buffer_info()[0] for record in records]])
    words = words | {"several": several.buffer_info()[0]}
    parts = [part for t in application.results for part in (t, t.dtype, t.shape, t.ndim)]
    _learn(made, application, words, (*keeping, several, *records, *parts), (None,) * len(application.types), reading)


def learn_view(application: Any) -> None:
    """Let native code make the views of an application, once it has been called some more: a few of them are no reason
    to load the native build."""
    kernel = application.kernel

    def install_view(_: Any) -> None:
        application.kernel = kernel
        made = native_library()
        if made is not None:
            for reading in application.readings:
                _learn_view(made, application, reading)

    application.kernel = TieredKernel(kernel, lambda: None, lambda kernel: kernel, install_view)


def _learn_view(made: NativeLibrary, application: Any, reading: CallSignature) -> None:
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
    made: NativeLibrary,
    application: Any,
    words: dict[str, int],
    keeping: tuple[Any, ...],
    numbers: Sequence[Any],
    reading: CallSignature,
) -> None:
    given = application.types[: len(numbers)]  # without the state of a draw
    types = tuple([t for t, x in zip(given, numbers, strict=True) if x is None])
    if reading.types != types:
        return
    if len(numbers) > made.build.operands or len(reading.words) > made.build.words:
        return
    link(NativePlan(made, application, reading.words, words, (reading, *keeping), numbers))
    install(made, application.op)
