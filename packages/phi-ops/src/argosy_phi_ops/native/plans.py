"""The table of plans: which applications native code does itself."""

from __future__ import annotations

from typing import Any

from argosy_phi_ops.native.memory import poke
from argosy_phi_ops.native.start import Native, native
from argosy_tensorcore.storage import ArrayType

__all__ = ["forget", "learn", "remember"]

_METHODS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
}
_kept: dict[int, tuple[Any, ...]] = {}
"""What each plan names, by the plan's place; the first is its route."""


def learn(route: Any) -> None:
    """Let native code do applications of this route of a binary operator, where it can."""
    name, types = route.op.name, route.types
    if name not in _METHODS or not _fits(route):
        return
    made = native()
    if made is None or types[0].dtype.name not in made.build.dtypes:
        return
    nbytes = route.result.dtype.itemsize * _count(route.result)
    size_class = next((i for i, size in enumerate(made.build.sizes) if nbytes <= size), None)
    if size_class is None:
        return
    if not made.installed(name):
        made.install_operator(name, _METHODS[name])
    number = made.build.operators.index(name) + 1
    result, place = route.result, _place(made, types, number)
    words = {
        "right": id(types[1]), "operator": number, "kernel": made.addresses[f"{name}_{types[0].dtype.name}"],
        "type": id(result), "dtype": id(result.dtype), "shape": id(result.shape), "ndim": id(result.ndim),
        "elements": _count(result), "class": size_class,
    }  # fmt: skip
    _write(made, place, "left", 0)
    old = _kept.get(place)
    _kept[place] = (route, *types, result, result.dtype, result.shape, result.ndim)
    for word in made.build.plan_words[1:]:
        _write(made, place, word, words.get(word, 0))
    _write(made, place, "left", id(types[0]))  # from now on it is found
    del old
    route.place = place


def remember(route: Any, wants: int, recipe: Any) -> None:
    """Let native code record applications of this route whose operands want gradients as ``wants`` says (2 for the left
    one, 1 for the right one), by the tape's ``recipe``."""
    place = route.place
    made = native()
    if place is None or made is None or _kept.get(place, (None,))[0] is not route:
        return
    if not set(recipe.keeps) <= {0, 1, 2} or list(recipe.keeps) != sorted(set(recipe.keeps)):
        return
    _kept[place] += (recipe, recipe.name)
    _write(made, place, f"name{wants}", id(recipe.name))
    _write(made, place, f"keeps{wants}", sum(1 << i for i in recipe.keeps))
    _write(made, place, f"recipe{wants}", id(recipe))


def forget() -> None:
    """Drop all plans."""
    if _kept:
        made = native()
        assert made is not None
        made.clear_plans()
        _kept.clear()


def _fits(route: Any) -> bool:
    """Whether it is for two tensors of one type, which is that of the result."""
    left, right = route.types if len(route.types) == 2 else (None, None)
    return type(left) is ArrayType and left is right and route.dtypes is None and route.result is left


def _count(kind: ArrayType) -> int:
    count = 1
    for size in kind.shape:
        count *= size
    return count


def _place(made: Native, types: Any, number: int) -> int:
    """Where native code looks for a plan."""
    mixed = (id(types[0]) >> 4) ^ (id(types[1]) >> 5)
    return (mixed ^ (number * 37)) & (made.build.plans - 1)


def _write(made: Native, place: int, word: str, value: int) -> None:
    words = made.build.plan_words
    poke(made.addresses["plans"] + 8 * (place * len(words) + words.index(word)), value)
