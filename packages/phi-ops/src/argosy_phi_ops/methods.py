"""Methods and operators of ``Tensor``, found by name on first use.

``x.reshape(...)`` is the operator ``reshape`` with ``x`` first; ``x.add_(y)`` its in-place form; ``x + y`` the operator
``add``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from argosy_phi_ops import extension
from argosy_phi_ops.declare.composition import Composition, find_function
from argosy_phi_ops.declare.index import MEMBERS
from argosy_phi_ops.declare.operator import NO_KEYWORDS, Operator, get_operator
from argosy_phi_ops.declare.signature import OperatorTypeError
from argosy_phi_ops.eager.calls import call
from argosy_phi_ops.eager.dispatch import is_recording, rebind, write
from argosy_phi_ops.eager.entries import binary
from argosy_tensorcore.tensor import Tensor

__all__ = ["find", "inplace", "resolve"]

_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "lt": "less_than",
    "le": "less_equal", "gt": "greater_than", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
_UNARY = {"neg": "neg", "abs": "abs", "invert": "bitwise_not", "pos": "assign"}
_COMPARISONS = ("eq", "ne")
_ENTERED = ("add", "sub", "mul", "truediv")  # native code stands before them; before others where they are called


def resolve(name: str) -> object | None:
    """What ``Tensor`` gets under ``name``, or None when no operator provides it."""
    if name in extension.METHODS:
        provided: object = extension.load(extension.METHODS[name])
        return provided
    if name.startswith("__"):
        return _special_method(name[2:-2])
    if name in MEMBERS:
        member: object = import_module("argosy_phi_ops.members." + MEMBERS[name]).MEMBERS[name]
        return member
    found = find_function(name)
    return _method(found) if found is not None else _inplace_form(name)


def find(name: str) -> object | None:
    """The function that users get under ``name``: composed, an operator or the in-place form ``name_`` of either."""
    return find_function(name) or _inplace_form(name)


def _inplace_form(name: str) -> object | None:
    if not name.endswith("_"):
        return None
    base = find_function(name[:-1])
    return inplace(base) if base is not None and base.inplace else None


def _method(op: Operator | Composition) -> Callable[..., Any]:
    if isinstance(op, Operator) and op.plain == 1:
        applications = op.applications

        def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            return call(op, (self, *args), kwargs) if args or kwargs else applications.method(self)

    elif isinstance(op, Operator):

        def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            return call(op, (self, *args), kwargs) if args or kwargs else op(self)

    else:

        def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            return op(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = op.name
    method.__doc__ = op.__doc__
    method.__wrapped__ = op  # type: ignore[attr-defined]  # inspect.signature shows the operator's
    return method


def inplace(op: Operator | Composition) -> Callable[..., Tensor]:
    """The in-place form of ``op``: it writes the result over its first operand and returns that."""

    def method(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if type(x) is not Tensor:
            kind = type(x).__name__
            raise OperatorTypeError(f"{op.name}_(): argument 'x' must be a Tensor, got {kind} {x!r:.60}")
        operand = _saved_copy(x, args) if is_recording() and not op.view else x
        result = op(operand, *args, **kwargs)
        if op.view:
            rebind(x, result)
        else:
            write(x, result)
        return x

    method.__name__ = method.__qualname__ = op.name + "_"
    method.__doc__ = f"In-place form of ``{op.name}``."
    method.__wrapped__ = op  # type: ignore[attr-defined]
    return method


def _saved_copy(x: Tensor, args: tuple[Any, ...]) -> Tensor:
    """A copy of ``x`` when the operation is recorded: its gradient may need the value that is about to be lost."""
    if x.stop_gradient and not any([type(t) is Tensor and not t.stop_gradient for t in args]):
        return x
    return x if x.payload.is_traced else get_operator("assign")(x)


def _special_method(name: str) -> object | None:
    if name in _BINARY:
        return _binary(get_operator(_BINARY[name]), name)
    if name[:1] == "r" and name[1:] in _BINARY:
        return _reflect(get_operator(_BINARY[name[1:]]))
    if name[:1] == "i" and name[1:] in _BINARY:
        return _augment(get_operator(_BINARY[name[1:]]))
    if name in _UNARY:
        return _method(get_operator(_UNARY[name]))
    if name in ("getitem", "setitem", "contains"):
        subscript = import_module("argosy_phi_ops.ops.indexing.subscript_methods")
        found: object = getattr(subscript, name + "_method")
        return found
    return None


_NUMBERS = (int, float, bool, complex)


def _is_operand(y: object) -> bool:
    return type(y) is Tensor or isinstance(y, _NUMBERS) or (hasattr(y, "dtype") and not isinstance(y, Tensor))


def _as_operand(y: Any) -> Any:
    if type(y) is Tensor or type(y) in _NUMBERS:
        return y
    if isinstance(y, float):  # numpy's float64 is a float of Python, too, and counts as one, as in Paddle
        return float(y)
    if isinstance(y, complex):
        return complex(y)
    if isinstance(y, int):  # a member of an enumeration, or how many elements a tensor has
        return int(y)
    return Tensor(y)  # another scalar or an array of numpy keeps its dtype


def _binary(op: Operator, name: str) -> Callable[[Tensor, Any], Any]:
    comparison = name in _COMPARISONS

    def otherwise(self: Tensor, other: Any) -> Any:
        if type(other) is Tensor or type(other) in _NUMBERS:
            return call(op, (self, other), NO_KEYWORDS)
        if comparison and other is None:
            return name == "ne"
        return op(self, _as_operand(other)) if _is_operand(other) else NotImplemented

    entry = binary(op, op.applications, otherwise) if op.plain == 2 else otherwise

    def call_operator(self: Tensor, other: Any) -> Any:
        return op(self, other) if type(other) is Tensor else entry(self, other)

    method = entry if name in _ENTERED else call_operator
    method.__name__ = f"__{name}__"
    method.__doc__ = op.__doc__
    return method


def _reflect(op: Operator) -> Callable[[Tensor, Any], Any]:
    def method(self: Tensor, other: Any) -> Any:
        return op(_as_operand(other), self) if _is_operand(other) else NotImplemented

    return method


def _augment(op: Operator) -> Callable[[Tensor, Any], Any]:
    """``x += y``: like Paddle, a new tensor takes the name; memory is not shared with the old one."""

    def method(self: Tensor, other: Any) -> Any:
        return op(self, _as_operand(other)) if _is_operand(other) else NotImplemented

    return method
