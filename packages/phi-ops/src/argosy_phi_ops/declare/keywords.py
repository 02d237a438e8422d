"""Keywords that several operators take beside their operands and attributes: what they change in a call.

An operator names those it takes (``@operator(keywords=("alpha",))``). A handler gets the operator, the keyword's value
and the rest of the call, and makes the call; so the operators themselves, their decompositions and the fast path know
nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy_phi_ops.declare.operator import Operator, get_operator
from argosy_phi_ops.errors import OperatorError
from argosy_phi_ops.extension import evaluator
from argosy_tensorcore.place import as_place

__all__ = ["DEFAULTS", "HANDLERS", "call_with_keyword"]

Handler = Callable[[Operator, Any, tuple[Any, ...], dict[str, Any]], Any]

DEFAULTS: dict[str, Any] = {
    "alpha": 1, "rounding_mode": None, "device": None, "requires_grad": False, "pin_memory": False, "side": None,
    "sorter": None, "output_size": None,
}  # fmt: skip
"""The value that changes nothing."""


def call_with_keyword(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``op``, of whose own keywords ``kwargs`` holds at least one."""
    name = next(key for key in op.keywords if key in kwargs)
    value = kwargs.pop(name)
    if value is DEFAULTS[name]:
        return op(*args, **kwargs)
    return HANDLERS[name](op, value, args, kwargs)


def _alpha(op: Operator, alpha: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``x + alpha * y``: the second operand is scaled first."""
    out = kwargs.pop("out", None)
    x, y = op.signature.bind(args, kwargs)[0]
    result = op(x, get_operator("multiply")(y, alpha))
    return result if out is None else evaluator().deliver(op, result, out)


def _rounding_mode(op: Operator, mode: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Division rounded down ("floor") or towards zero ("trunc")."""
    if mode == "floor":
        return get_operator("floor_divide")(*args, **kwargs)
    if mode != "trunc":
        raise OperatorError(f"{op.name}: rounding_mode {mode!r} is none of None, 'trunc' and 'floor'")
    out = kwargs.pop("out", None)
    x, y = op.signature.bind(args, kwargs)[0]
    whole = all(getattr(getattr(v, "dtype", None), "kind", "") in "iu" or type(v) is int for v in (x, y))
    result = get_operator("trunc")(op(x, y))
    if whole:
        result = get_operator("cast")(result, getattr(x, "dtype", None) or y.dtype)
    return result if out is None else evaluator().deliver(op, result, out)


def _device(op: Operator, device: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A place for the result, which is made there, or copied where an operand is elsewhere."""
    place = as_place(device)
    wanted = kwargs.pop("requires_grad", False)
    made = evaluator().create_on(place.device(), op, args, kwargs)
    return _as_leaf(made.to(place), wanted)


def _requires_grad(op: Operator, wanted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _as_leaf(op(*args, **kwargs), wanted)


def _pin_memory(op: Operator, pinned: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A result in host memory from which the current device copies fast."""
    wanted = kwargs.pop("requires_grad", False)
    made = op(*args, **kwargs)
    return _as_leaf(made.pin_memory() if pinned else made, wanted)


def _as_leaf(result: Any, requires_grad: bool) -> Any:
    result.stop_gradient = not requires_grad
    return result


def _side(op: Operator, side: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``right=True`` by another name; the two must not contradict each other."""
    if side not in ("left", "right"):
        raise OperatorError(f"{op.name}: side {side!r} is neither 'left' nor 'right'")
    if kwargs.get("right") and side == "left":
        raise OperatorError(f"{op.name}: right=True contradicts side='left'")
    return op(*args, **{**kwargs, "right": side == "right"})


def _sorter(op: Operator, sorter: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The sequence is in order when read through these indices."""
    sequence = args[0] if args else kwargs.pop("sorted_sequence")
    ordered = get_operator("take_along_axis")(sequence, sorter, -1)
    return op(ordered, *args[1:], **kwargs)


def _output_size(op: Operator, size: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A promise about the result's size along the axis, checked."""
    result = op(*args, **kwargs)
    axis = kwargs.get("axis", kwargs.get("dim", args[2] if len(args) > 2 else None))
    if result.shape[axis or 0] != size:
        raise OperatorError(f"{op.name}: output_size {size} was promised, the result has shape {list(result.shape)}")
    return result


HANDLERS: dict[str, Handler] = {
    "alpha": _alpha,
    "rounding_mode": _rounding_mode,
    "device": _device,
    "requires_grad": _requires_grad,
    "pin_memory": _pin_memory,
    "side": _side,
    "sorter": _sorter,
    "output_size": _output_size,
}
"""Keyword -> what it does."""
