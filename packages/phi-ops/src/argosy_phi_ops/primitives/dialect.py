"""The ``prim`` dialect of the IR, made from the declarations; and arithmetic on IR values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argosy_phi_ops.primitives.declaration import PRIMITIVES, Primitive
from argosy_pir.dialect import Dialect
from argosy_pir.opdef import COMMUTATIVE, EFFECT, PURE, OpDef
from argosy_pir.types import Type
from argosy_pir.values import set_value_operators

__all__ = ["DIALECT", "install_operators"]

_COMMUTATIVE = {
    "add", "mul", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or",
    "logical_xor", "eq", "ne",
}  # fmt: skip
_RESULTS = {"lu": 3, "qr": 2, "svd": 3, "eigh": 2, "eig": 2, "sort": None, "host_call": None, "check_index": 0}


def _infer(primitive: Primitive) -> Callable[..., Sequence[Type]]:
    names = tuple(primitive.attributes)

    def infer(
        operand_types: Sequence[Type], attributes: Mapping[str, Any], regions: Sequence[Any] = ()
    ) -> Sequence[Type]:
        return primitive.infer(operand_types, {name: attributes[name] for name in names if name in attributes})

    return infer


def _definition(primitive: Primitive) -> OpDef:
    names = list(primitive.operands)
    if primitive.variadic:
        names[-1] = "*" + names[-1]
    if primitive.category == "communication":
        results = None
    else:
        results = _RESULTS.get(primitive.name, 1)
    traits = [EFFECT if primitive.effect else PURE]
    if primitive.name in _COMMUTATIVE:
        traits.append(COMMUTATIVE)
    return OpDef(f"prim.{primitive.name}", names, results=results, traits=traits, infer=_infer(primitive))


DIALECT = Dialect("prim", (_definition(p) for p in PRIMITIVES.values()))
"""The dialect of all primitives."""


def install_operators() -> None:
    """Give IR values Python's arithmetic: ``x * (1 - y)`` emits primitives at the ambient builder."""
    p = PRIMITIVES
    table: dict[str, Callable[..., Any]] = {
        f"__{name}__": _method(p[primitive])
        for name, primitive in _OPERATORS.items()
        if name not in ("neg", "abs", "invert")
    }
    table |= {f"__r{name}__": _reflected(p[_OPERATORS[name]]) for name in _REFLECTED}
    table |= {"__neg__": _method(p["neg"]), "__abs__": _method(p["abs"]), "__invert__": _method(p["bitwise_not"])}
    set_value_operators(table)


_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_div", "mod": "floor_mod",
    "pow": "pow", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "shift_left",
    "rshift": "shift_right", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
}  # fmt: skip
_REFLECTED = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")


def _method(primitive: Primitive) -> Callable[..., Any]:
    return lambda *operands: primitive(*operands)


def _reflected(primitive: Primitive) -> Callable[..., Any]:
    return lambda x, y: primitive(y, x)
