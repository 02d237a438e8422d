"""Programs that are exact: they give the same bits whoever computes them.

A primitive is exact when its result is one of its operands' elements, an integer, or the one number that IEEE 754
names. Sums, products of matrices, transcendental functions and complex products depend on the order and on the
formula, which numpy's library and compiled code choose for themselves.
"""

from __future__ import annotations

from argosy_phi_ops.primitives.checks import COMPLEX, FLOATING
from argosy_phi_ops.reference.constants import constant_array
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import OpResult, Value

__all__ = ["is_exact"]

_ALWAYS = frozenset({
    "broadcast", "reshape", "transpose", "slice", "pad", "concat", "reverse", "iota", "relayout", "place", "dim_size",
    "gather", "dynamic_slice", "dynamic_update_slice", "sort", "rng_bits", "argmax", "argmin", "reduce_and",
    "reduce_or", "copy", "stop_gradient", "select", "bitcast", "neg", "floor", "ceil", "round", "trunc",
    "conj", "real", "imag", "complex", "add", "sub", "eq", "ne", "lt", "le", "gt", "ge", "is_finite", "is_nan",
    "is_inf", "logical_not", "logical_and", "logical_or", "logical_xor", "bitwise_not", "bitwise_and", "bitwise_or",
    "bitwise_xor", "shift_left", "shift_right",
})  # fmt: skip
_OF_REALS = frozenset({
    "abs", "mul", "div", "rem", "floor_div", "floor_mod", "sqrt", "sign", "maximum", "minimum", "reduce_max",
    "reduce_min", "nextafter", "cast",
})  # fmt: skip
_OF_INTEGERS = frozenset({"reduce_sum", "reduce_prod", "dot_general", "conv", "cumulative", "pow"})
_STRUCTURE = frozenset({"builtin.constant", "builtin.return", "control.yield", "control.scan"})
_EXPONENTS = (1.0, 2.0, -1.0)
"""Those of powers that are one product or quotient."""
_SIGNED_ZEROS = frozenset({"maximum", "minimum", "reduce_max", "reduce_min", "sign"})
_NARROW = frozenset({"float16", "bfloat16"})


def is_exact(program: Program) -> bool:
    """Whether every operation of ``program`` is exact."""
    return all(op.name in _STRUCTURE or _is_exact(op) for op in program.walk())


def _is_exact(op: Operation) -> bool:
    name, dtypes = op.kind, _dtypes(op)
    if name in _ALWAYS:
        return True
    if name in _OF_REALS:  # of narrow floats numpy has rules of its own for the sign of zero
        return dtypes.isdisjoint(COMPLEX if name not in _SIGNED_ZEROS else COMPLEX | _NARROW)
    if name in _OF_INTEGERS and dtypes.isdisjoint(FLOATING | COMPLEX):
        return True
    if name == "scatter":
        return op.attributes.get("kind", "set") in ("set", "max", "min") or dtypes.isdisjoint(FLOATING | COMPLEX)
    return name == "pow" and dtypes <= {"float32", "float64"} and _constant(op.operand(1)) in _EXPONENTS


def _dtypes(op: Operation) -> frozenset[str]:
    return frozenset(v.type.dtype for v in (*op.operands, *op.results) if isinstance(v.type, TensorType))


def _constant(value: Value) -> float | None:
    """The number that a value is everywhere, of one that is written in the program; None of any other."""
    while isinstance(value, OpResult) and value.owner.name == "prim.broadcast":
        value = value.owner.operand(0)
    if not isinstance(value, OpResult) or value.owner.name != "builtin.constant":
        return None
    dense = value.owner.attributes["value"]
    return float(constant_array(dense, {}).flat[0]) if dense.is_splat else None
