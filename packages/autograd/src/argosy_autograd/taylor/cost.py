"""The cost of a program of primitives, to compare two ways to write the same one."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from argosy_pir import Operation, Program, SymExpr, TensorType

__all__ = ["cost", "operation_cost"]

_UNKNOWN = 1024
_FREE = frozenset("broadcast reshape transpose slice pad concat reverse iota dim_size stop_gradient copy".split())
_COSTLY = frozenset("exp expm1 log log1p sin cos tan tanh logistic erf erfc pow lgamma digamma erfinv atan2".split())


def cost(program: Program) -> float:
    """Estimated work in floating-point operations of a contraction: an elementwise result weighs as 8 of them, a
    transcendental one as 64; views are free; a symbolic size counts as 1024."""
    return sum(operation_cost(op) for op in program.walk())


def operation_cost(op: Operation) -> float:
    """That of one operation, without those in its regions; none but primitives cost anything."""
    if op.dialect != "prim":
        return 0.0
    name = op.kind
    if name in _FREE:
        return 0.0
    size = float(sum(_elements(r.type.shape) for r in op.results if isinstance(r.type, TensorType)))
    if name == "dot_general":
        lhs = op.operand(0).type
        assert isinstance(lhs, TensorType)
        return 2 * size * _elements([lhs.shape[i] for i in op.attributes["lhs_contract"]])
    if name == "conv":
        window = op.operand(1).type
        assert isinstance(window, TensorType)
        return 2 * size * _elements(window.shape[1:])
    if name.startswith("reduce"):
        read = op.operand(0).type
        assert isinstance(read, TensorType)
        return 4.0 * _elements(read.shape)
    return size * (64 if name in _COSTLY else 8)


def _elements(shape: Iterable[int | SymExpr]) -> float:
    return prod((float(_UNKNOWN) if isinstance(n, SymExpr) else float(n) for n in shape), start=1.0)
