"""Values of local variables where control flow on tensors meets: undefined ones, and making two sides agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.jit.structure import is_named_tuple, map_items
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.location import Location
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["NOT_RETURNED", "MaybeUndefined", "Mismatch", "UndefinedValue", "agree", "as_tensor", "is_number", "match"]

NUMBERS = (bool, int, float, complex)


class Mismatch(TypeError):
    """Two values of one variable that no single tensor can hold."""


class MaybeUndefined(NameError):
    """A variable that is read after control flow on tensors, which may not have set it."""

    def __init__(self, name: str, where: str, location: Location) -> None:
        super().__init__(
            f"variable {name!r} is set {where} that depends on a tensor ({location.file}:{location.line}) and read "
            "after it; give it a value of the same shape and dtype before"
        )


class UndefinedValue:
    """What stands for the value of a variable that has none, where values are passed on."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class _NotReturned:
    """The value to return of a call that has not reached a ``return`` yet; a flag tells, so any value does."""

    def __repr__(self) -> str:
        return "<not returned>"


NOT_RETURNED = _NotReturned()


def is_number(x: Any) -> bool:
    """Whether ``x`` is a Python number, which becomes a 0-D tensor where tensors flow."""
    return type(x) in NUMBERS


def as_tensor(x: Any, dtype: Any = None) -> Tensor:
    """A Python number as a tensor: int64, bool, or the default floating dtype."""
    if type(x) is Tensor:
        return x if dtype is None or x.dtype is dtype else get_operator("cast")(x, dtype)
    if dtype is None:
        dtype = "bool" if type(x) is bool else "int64" if type(x) is int else default_dtype()
    made: Tensor = get_operator("full")([], x, dtype)
    return made


def agree(a: Any, b: Any, name: str) -> Any:
    """What variable ``name`` is after it was ``a`` on one side and ``b`` on the other: ``a`` itself, where they are the
    same; a tree whose leaves are pairs to merge; or :class:`UndefinedValue`. Raises Mismatch naming the variable.
    """
    if a is b or (type(a) is type(b) and type(a) in (*NUMBERS, str, bytes) and a == b):
        return a
    if a is NOT_RETURNED or b is NOT_RETURNED:
        return _select_side(b if a is NOT_RETURNED else a, a is NOT_RETURNED)
    if isinstance(a, UndefinedValue) or isinstance(b, UndefinedValue):
        return UndefinedValue(name)
    if _is_leaf(a) and _is_leaf(b):
        return Pair(a, b)
    if type(a) is type(b) and type(a) in (list, tuple) and len(a) == len(b):
        return type(a)(agree(x, y, f"{name}[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True)))
    if type(a) is type(b) and is_named_tuple(a):
        return type(a)(*(agree(x, y, f"{name}.{field}") for x, y, field in zip(a, b, a._fields, strict=True)))
    if type(a) is dict and type(b) is dict and list(a) == list(b):
        return {key: agree(a[key], b[key], f"{name}[{key!r}]") for key in a}
    raise Mismatch(
        f"variable {name!r} is {_text_of(a)} on one side and {_text_of(b)} on the other of control flow that "
        "depends on a tensor; both must be tensors or numbers, or the same value"
    )


class Pair:
    """Two leaves to merge; None on a side stands for zeros like the other."""

    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


def _select_side(x: Any, first: bool) -> Any:
    if _is_leaf(x):
        return Pair(None, x) if first else Pair(x, None)
    return map_items(x, lambda item: _select_side(item, first))


def _is_leaf(x: Any) -> bool:
    return type(x) is Tensor or is_number(x)


def match(tree: Any, leaf: Callable[[Pair], Any]) -> Any:
    """``tree`` with ``leaf(pair)`` in place of each pair."""
    return leaf(tree) if type(tree) is Pair else map_items(tree, lambda item: match(item, leaf))


def _text_of(x: Any) -> str:
    return f"a tensor {x.dtype.name} {list(x.shape)}" if type(x) is Tensor else f"{type(x).__name__} {x!r:.40}"
