"""The table of plans: which applications native code does itself."""

from __future__ import annotations

import os
from math import prod
from threading import RLock
from typing import Any

from argosy_phi_ops.eager.native.loading import Native, is_running, native
from argosy_phi_ops.eager.native.memory import poke
from argosy_phi_ops.eager.tiering import TieredKernel
from argosy_tensorcore.storage import ArrayType

__all__ = [
    "KERNELS",
    "changing",
    "forget",
    "is_small",
    "is_small_type",
    "learn",
    "least_steps",
    "remember",
    "size_class",
]

KERNELS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
}
_LARGEST, _ELEMENTS = 1 << 16, 1 << 14  # bytes of a result, elements of operands: a call holds the global lock briefly
_kept: dict[int, tuple[Any, ...]] = {}
"""What each plan names, by the plan's place; the first is its application."""
changing = RLock()
"""Held while plans change: what native code finds and what is kept alive for it must be of the same thread."""
if hasattr(os, "register_at_fork"):  # nobody waits for anything meanwhile, so a child finds it free
    os.register_at_fork(
        before=lambda: changing.acquire(),
        after_in_parent=lambda: changing.release(),
        after_in_child=lambda: changing.release(),
    )


def learn(application: Any) -> None:
    """Let native code do this application of a binary operator that it has kernels for, where it can."""
    name = application.op.name
    number = _number_of(application) if name in KERNELS else None
    if number is None or (number and _waits(application)):
        return
    made = native()
    if (
        made is None
        or application.result.dtype.name not in made.build.dtypes
        or size_class(made, application.result) is None
    ):
        return
    if not made.installed(name):
        made.install_operator(application.op, KERNELS[name])
    with changing:
        _plan(made, application, {"kernel": kernel_of(made, application)}, ())


def kernel_of(made: Native, application: Any) -> int:
    """The address of the kernel of a binary operator."""
    number = _number_of(application)
    return made.addresses[
        f"{application.op.name}_{application.result.dtype.name}" + (f"_number_{number}" if number else "")
    ]


def _waits(application: Any) -> bool:
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
        if native() is not None:
            learn(application)

    setattr(application, name, TieredKernel(kernel, _no_program, _as_it_is, install))
    return True


def _no_program() -> None:
    """Nothing is compiled."""


def _as_it_is(kernel: Any) -> Any:
    return kernel


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
    return 1 if is_small(application) and native() is not None else 2


def _number_of(application: Any) -> str | None:
    """Where a number stands beside a tensor of the result's type, or empty for two such tensors; None for all other
    applications."""
    if len(application.types) != 2:
        return None
    others = [side for side, t in zip(("left", "right"), application.types, strict=True) if t is not application.result]
    if not others:
        return "" if application.dtypes is None else None
    number = application.types[0] if others == ["left"] else application.types[1]
    return others[0] if len(others) == 1 and number in (float, int) else None


def _nbytes(kind: ArrayType) -> int:
    return kind.dtype.itemsize * prod(kind.shape)


def size_class(made: Native, kind: ArrayType) -> int | None:
    nbytes = _nbytes(kind)
    return next((i for i, size in enumerate(made.build.sizes) if nbytes <= size), None)


def _plan(made: Native, application: Any, words: dict[str, int], keeping: tuple[Any, ...]) -> None:
    """Write the plan of an application; ``words`` are what says how to compute, ``keeping`` is what they point at."""
    types, result, op = application.types, application.result, application.op
    right = id(types[1])
    place = _place(made, application, id(types[0]), right)
    words = words | {
        "right": right, "operator": id(op), "type": id(result), "dtype": id(result.dtype), "shape": id(result.shape),
        "ndim": id(result.ndim), "elements": prod(result.shape), "class": size_class(made, result) or 0,
    }  # fmt: skip
    _write(made, place, "left", 0)
    old = _kept.get(place)
    _kept[place] = (application, op, *types, result, result.dtype, result.shape, result.ndim, *keeping)
    for word in made.build.plan_words[1:]:
        _write(made, place, word, words.get(word, 0))
    _write(made, place, "left", id(types[0]))  # from now on it is found
    del old
    application.place = place
    for wants, recipe in list(application.recipes.items()):
        _remember(made, application, wants, recipe)


def remember(application: Any, wants: int, recipe: Any) -> None:
    """Let native code record an application whose operands want gradients as ``wants`` says (1 for the last
    one, 2 for the one before), by the tape's ``recipe``."""
    made = native()
    if made is not None:
        with changing:
            _remember(made, application, wants, recipe)


def _remember(made: Native, application: Any, wants: int, recipe: Any) -> None:
    place = application.place
    if place is None or _kept.get(place, (None,))[0] is not application:
        return
    if not set(recipe.keeps) <= {0, 1, 2} or list(recipe.keeps) != sorted(set(recipe.keeps)):
        return
    wants = (0, 2, 1, 3)[wants]  # native code has the first operand in the lowest bit
    _kept[place] += (recipe, recipe.name)
    _write(made, place, f"name{wants}", id(recipe.name))
    _write(made, place, f"keeps{wants}", sum(1 << i for i in recipe.keeps))
    _write(made, place, f"recipe{wants}", id(recipe))


def forget() -> None:
    """Drop all plans."""
    with changing:
        if is_running():
            made = native()
            assert made is not None
            made.clear_plans()
        _kept.clear()


def _place(made: Native, application: Any, left: int, right: int) -> int:
    """Where native code looks for a plan: the place that follows from what it is for, or its neighbour, where an equal
    one is there, or only that one is free."""
    first = ((left >> 4) ^ (right >> 5) ^ (id(application.op) >> 6)) & (made.build.plans - 1)
    places = (first, first ^ 1)
    for place in places:
        old = _kept[place][0] if place in _kept else None
        if (
            old is not None
            and old.op is application.op
            and list(map(id, old.types)) == list(map(id, application.types))
        ):
            return place
    return next((place for place in places if place not in _kept), first)


def _write(made: Native, place: int, word: str, value: int) -> None:
    words = made.build.plan_words
    poke(made.addresses["plans"] + 8 * (place * len(words) + words.index(word)), value)
