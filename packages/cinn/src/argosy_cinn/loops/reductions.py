"""How values are combined: identities, steps and horizontal folds of the reductions."""

from __future__ import annotations

from argosy_cinn import functions, math
from argosy_cinn.forms.dtypes import FLOATS, UNSIGNED
from argosy_cinn.loops import elementwise
from argosy_cinn.loops.elementwise import REGISTER
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import DOUBLE, Value, bits_of, constant, element_of, lanes_of, vector


def identity(kind: str, dtype: str, lanes: int) -> Value:
    """The value that changes nothing, in ``lanes`` lanes of a register."""
    type = vector(REGISTER[dtype], lanes)
    if kind in ("sum", "or"):
        return constant(type, 0.0 if dtype in FLOATS else 0)
    if kind in ("prod", "and"):
        return constant(type, 1)
    return constant(type, _highest_value(dtype) if kind == "min" else _lowest_value(dtype))


def _lowest_value(dtype: str) -> float | int:
    if dtype in FLOATS:
        return float("-inf")
    return 0 if dtype in UNSIGNED or dtype == "bool" else -(1 << (bits_of(REGISTER[dtype]) - 1))


def _highest_value(dtype: str) -> float | int:
    if dtype in FLOATS:
        return float("inf")
    if dtype == "bool":
        return 1
    return -1 if dtype in UNSIGNED else (1 << (bits_of(REGISTER[dtype]) - 1)) - 1


def combine(b: Instructions, kind: str, dtype: str, x: Value, y: Value) -> Value:
    """One step."""
    if kind in ("max", "min"):
        return elementwise.extreme(b, "gt" if kind == "max" else "lt", dtype, x, y)
    if kind == "logsumexp":
        return _log_of_sum(b, x, y)
    if kind in ("and", "or"):
        return b.binary(kind, x, y)
    if dtype in FLOATS:
        return b.binary("fadd" if kind == "sum" else "fmul", x, y)
    return b.binary("add" if kind == "sum" else "mul", x, y)


def _log_of_sum(b: Instructions, x: Value, y: Value) -> Value:
    """log(e^x + e^y) without overflow; equal infinities stay what they are."""
    double = element_of(x.type) == DOUBLE
    small = b.fneg(b.unary("fabs", b.fsub(x, y)))
    beyond = functions.apply(b, "log1p", functions.apply(b, "exp", small))
    larger = elementwise.extreme(b, "gt", "float64" if double else "float32", x, y)
    return b.select(b.fcmp("oeq", x, y), b.fadd(x, math.LN2), b.fadd(larger, beyond))


def fold(b: Instructions, kind: str, dtype: str, x: Value) -> Value:
    """All lanes combined, as a fixed tree of halves."""
    lanes = lanes_of(x.type)
    while lanes > 2:
        lanes //= 2
        low, high = b.shuffle(x, None, range(lanes)), b.shuffle(x, None, range(lanes, 2 * lanes))
        x = combine(b, kind, dtype, low, high)
    return combine(b, kind, dtype, b.extract(x, 0), b.extract(x, 1)) if lanes == 2 else x
