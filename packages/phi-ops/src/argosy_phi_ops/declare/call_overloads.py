"""Other ways to write the calls of some operators: sizes one by one (``x.reshape(2, 3)``), and parameters in the order
of torch (``gather(x, dim, index)``), as Paddle takes them since 3.1.

A form looks at the arguments of a call and gives the one that is meant: operator, arguments and keywords. It gives None
where the call is written as declared. Calls with a key of their own have been seen before and never get here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.errors import OperatorError
from argosy_phi_ops.ops.common.arguments import axis_of
from argosy_tensorcore.tensor import Tensor

Meant = tuple[Any, tuple[Any, ...], dict[str, Any]] | None

Form = Callable[[Any, tuple[Any, ...], dict[str, Any]], Meant]


def _is_size(value: Any) -> bool:
    """An integer, a tensor without axes or a size of a program being captured."""
    if isinstance(value, Tensor):
        return not value.ndim
    return isinstance(value, int) or hasattr(value, "evaluate")


def sizes_from(at: int, least: int = 2) -> Form:
    """At least so many integers from the argument ``at`` on are a list."""

    def form(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Meant:
        if len(args) < at + least or not all(map(_is_size, args[at:])):
            return None
        return op, (*args[:at], list(args[at:])), kwargs

    return form


def two_axes(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Meant:
    """``transpose(x, dim0, dim1)``: two axes change places."""
    rest = dict(kwargs)
    named = [rest.pop(f"dim{i}", rest.pop(f"axis{i}", None)) for i in (0, 1)]
    given = [*named, *args[1:3]] if len(args) < 3 else args[1:3]
    axes = [a for a in given if type(a) is int]
    x = args[0] if args else rest.pop("x", rest.pop("input", None))
    if len(axes) != 2 or not hasattr(x, "ndim"):
        return None
    first, second = (axis_of(op.name, a, x.ndim) for a in axes)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return op, (x, order), rest


def index_first(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Meant:
    """``f(x, axis, index, ...)`` of ``f(x, index, axis, ...)``."""
    if len(args) < 2 or type(args[1]) is not int:
        return None
    if len(args) > 2:
        return op, (args[0], args[2], args[1], *args[3:]), kwargs
    return op, (args[0],), {**kwargs, "axis": args[1]}


def keepdim_first(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Meant:
    """``f(x, axis, keepdim, dtype)`` of ``f(x, axis, dtype, keepdim)``."""
    if len(args) < 3 or type(args[2]) is not bool:
        return None
    rest = {"dtype": args[3]} if len(args) > 3 else {}
    return op, args[:2], {**kwargs, "keepdim": args[2], **rest}


def lower_median(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Meant:
    """``f(input, dim=...)``: with torch's names the lower of two elements in the middle is meant, and where it is."""
    if "mode" in kwargs or kwargs.keys().isdisjoint(("input", "dim")):
        return None
    return op, args, {**kwargs, "mode": "min"}


def _axis_form(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call names an axis before the index."""
    return type(args[1]) is int if len(args) > 1 else "dim" in kwargs


def _name(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**dict(zip(names, args, strict=False)), **kwargs}


def choose_gather(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Meant:
    """``gather(input, dim, index)``: one element for each of an index of as many axes."""
    if not _axis_form(args, kwargs):
        return None
    given = _name(("input", "dim", "index"), args, kwargs)
    if "index" not in given:
        raise OperatorError(f"gather(input, dim, index) needs argument 'index', got {', '.join(given)}")
    taken = {"arr": given.pop("input", None), "indices": given.pop("index"), "axis": given.pop("dim")}
    return get_operator("take_along_axis"), (), {**taken, "broadcast": False, **given}


def choose_scatter(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Meant:
    """``scatter(input, dim, index, src, reduce=None)``: one element for each of an index of as many axes."""
    if not _axis_form(args, kwargs):
        return None
    given = _name(("input", "dim", "index", "src", "reduce"), args, kwargs)
    given_sources = [name for name in ("src", "value") if name in given]
    sources = [given.pop(name) for name in given_sources]
    if len(sources) != 1 or "index" not in given:
        wanted = "arguments 'index' and one of 'src' and 'value'"
        raise OperatorError(
            f"scatter(input, dim, index, src) needs {wanted}, got {', '.join([*given, *given_sources])}"
        )
    taken = {"arr": given.pop("input", None), "indices": given.pop("index"), "axis": given.pop("dim")}
    reduce = given.pop("reduce", None) or "assign"
    return (
        get_operator("put_along_axis"),
        (),
        {**taken, "values": sources[0], "reduce": reduce, "broadcast": False, **given},
    )
