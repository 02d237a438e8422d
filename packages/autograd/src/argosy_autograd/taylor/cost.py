"""The cost of a program of primitives, to compare two ways to write the same one."""

from __future__ import annotations

from argosy_autograd.reverse import plain_attributes
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Operation, Program

__all__ = ["cost", "operation_cost"]

_WEIGHTS = {"contraction": 1, "decomposition": 1, "transform": 1, "reduction": 4}
"""How long an operation of a category takes, a contraction's being the unit."""
_ELSEWHERE = 8


def cost(program: Program) -> float:
    """Estimated work in floating-point operations of a contraction; views are free; a symbolic size counts as 1024."""
    return sum(operation_cost(op) for op in program.walk())


def operation_cost(op: Operation) -> float:
    """That of one operation, without those in its regions; none but primitives cost anything."""
    if op.dialect != "prim":
        return 0.0
    primitive = PRIMITIVES[op.kind]
    types = [v.type for v in op.operands], [v.type for v in op.results]
    found = primitive.cost(types[0], plain_attributes(op), types[1])
    return float(_WEIGHTS.get(primitive.category, _ELSEWHERE) * found.operations)
