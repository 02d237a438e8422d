"""Sums and products of floats with what rounding takes of them."""

from __future__ import annotations

from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import DOUBLE, I64, Operand, Value, element_of, lanes_of, vector

Pair = tuple[Value, Value]


def two_sum(b: Instructions, x: Value, y: Operand) -> Pair:
    """x + y rounded, and the rest (Knuth)."""
    total = b.fadd(x, y)
    part = b.fsub(total, x)
    return total, b.fadd(b.fsub(x, b.fsub(total, part)), b.fsub(y, part))


def two_product(b: Instructions, x: Value, y: Value) -> Pair:
    """x y rounded, and the rest; of doubles where there is no multiply-add with one rounding (Dekker)."""
    product = b.fmul(x, y)
    if b.module.target.has_fma:
        return product, b.fma(x, y, b.fneg(product))
    (x, x_tail), (y, y_tail) = _halves(b, x), _halves(b, y)
    rest = b.fadd(b.fsub(b.fmul(x, y), product), b.fmul(x, y_tail))
    return product, b.fadd(b.fadd(rest, b.fmul(x_tail, y)), b.fmul(x_tail, y_tail))


def _halves(b: Instructions, x: Value) -> Pair:
    """26 leading bits and the rest."""
    assert element_of(x.type) == DOUBLE
    bits = b.bitcast(x, vector(I64, lanes_of(x.type)))
    head = b.bitcast(b.binary("and", bits, -(1 << 27)), x.type)
    return head, b.fsub(x, head)
