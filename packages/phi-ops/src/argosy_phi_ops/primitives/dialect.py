"""The ``prim`` dialect of the IR, made from the declarations; and arithmetic on IR values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops.primitives.declaration import PRIMITIVES, Primitive
from argosy_pir.attributes import Dense
from argosy_pir.core import Operation
from argosy_pir.dialect import Dialect
from argosy_pir.folding import constant_of
from argosy_pir.opdef import COMMUTATIVE, EFFECT, PURE, OpDef
from argosy_pir.types import TensorType, Type
from argosy_pir.values import set_value_operators
from argosy_tensorcore.dtype import as_dtype

__all__ = ["DIALECT", "install_operators"]

_COMMUTATIVE = {
    "add", "mul", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or",
    "logical_xor", "eq", "ne",
}  # fmt: skip
_MOVING = frozenset({"broadcast", "reshape", "transpose", "slice", "reverse"})
"""What gives elements of its one operand, and no others."""
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
    fold = (
        _fold_elementwise
        if primitive.category == "elementwise"
        else _fold_layout
        if primitive.name in _MOVING
        else None
    )
    return OpDef(f"prim.{primitive.name}", names, results=results, traits=traits, infer=_infer(primitive), fold=fold)


def _fold_elementwise(op: Operation) -> Dense | None:
    """The one number that is computed of one number for all elements of each operand."""
    numbers = []
    for value in op.operands:
        dense = constant_of(value)
        if dense is None or not dense.is_splat:
            return None
        numbers.append(np.frombuffer(dense.data, as_dtype(dense.type.dtype).numpy).reshape(()))
    from argosy_phi_ops.reference.kernels import kernel_for

    attributes = {name: value for name, value in op.attributes.items() if name in PRIMITIVES[op.kind].attributes}
    type = op.result.type
    assert isinstance(type, TensorType)
    folded = np.asarray(kernel_for(op.kind)(*numbers, **attributes), as_dtype(type.dtype).numpy)
    return _splat(type, folded.tobytes())


def _fold_layout(op: Operation) -> Dense | None:
    """The one number of all elements, wherever they go."""
    dense = constant_of(op.operand(0))
    type = op.result.type
    assert isinstance(type, TensorType)
    return None if dense is None or not dense.is_splat else _splat(type, dense.data)


def _splat(type: TensorType, data: bytes) -> Dense:
    return Dense(type, b"" if 0 in type.shape else data)


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
    table |= {f"__r{name}__": _reflect(p[_OPERATORS[name]]) for name in _REFLECTED}
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


def _reflect(primitive: Primitive) -> Callable[..., Any]:
    return lambda x, y: primitive(y, x)
