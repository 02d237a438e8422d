"""Block floating point: the terms of a group become integers times a power of two that the largest of them sets.

(Wilkinson, *Rounding Errors in Algebraic Processes*, 1963.) The terms are bfloat16, the integers are of 16 bits: they
are exact down to 2**-7 of the largest, and smaller ones are at most 2**-15 of it away. A group with a number that is
not finite, or whose numbers are so small or large that their scale would not be a float, has no scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from argosy_cinn.contraction.problem import Contraction, exact_in_bfloat
from argosy_cinn.contraction.terms import Operands
from argosy_cinn.printers.types import BFLOAT, FLOAT, I1, I32, I64, Index, Value, vector

#: Bits of an integer that are below its sign and the first one.
_FRACTION = 14
_MANTISSA = 23
#: Exponents, biased as in a float, of the largest term of a group; its scale times that of weights is a float.
_LEAST, _MOST = 127 - 64, 127 + 32


class BlockIntegers(NamedTuple):
    """A group: ``integers``, vectors of i32 that are at most 32640 away from zero, times ``scale``, a float, unless
    ``has_no_scale`` (i1)."""

    integers: list[Value]
    scale: Value
    has_no_scale: Value


def becomes_integers(problem: Contraction, few_rows: bool = True) -> bool:
    """Whether the skinny vectors of a product are bfloat16, or rounded to these."""
    skinny = problem.a if few_rows else problem.b
    return problem.narrow or (exact_in_bfloat(skinny.element) and skinny.prologue is None)


def block_integers(operands: Operands, t: Index, k: Index, group: int, lanes: int) -> BlockIntegers:
    """The ``group`` terms of skinny vector ``t`` from k on, ``lanes`` of them in a vector."""
    b, kind = operands.b, vector(I32, lanes)
    terms = [_narrow_terms(operands, t, b.add(k, i), lanes) for i in range(0, group, lanes)]
    sizes = [b.binary("and", b.bitcast(x, kind), 0x7FFFFFFF) for x in terms]
    largest = sizes[0]
    for size in sizes[1:]:
        largest = b.intrinsic("llvm.umax", kind, largest, size)
    size = b.reduce("umax", largest)
    # Rounded up by a unit of a bfloat16, lest the largest one of an exponent be more than two digits of a byte.
    exponent = b.binary("and", b.binary("add", size, 1 << 16), 0xFF << _MANTISSA)
    exponent = b.intrinsic("llvm.umax", I32, exponent, b.constant(I32, _LEAST << _MANTISSA))
    up = b.splat(b.bitcast(b.binary("sub", (2 * 127 + _FRACTION) << _MANTISSA, exponent), FLOAT), lanes)
    integers = [b.convert("fptosi", b.unary("roundeven", b.fmul(x, up)), I32) for x in terms]
    small = b.icmp("ult", b.binary("sub", size, 1), (_LEAST << _MANTISSA) - 1)
    unsafe = b.binary("or", small, b.icmp("uge", size, _MOST << _MANTISSA))
    return BlockIntegers(integers, b.bitcast(b.binary("sub", exponent, _FRACTION << _MANTISSA), FLOAT), unsafe)


def prepare_groups(operands: Operands, group: int, prepare: Callable[[Index, Index], Value]) -> Value:
    """``prepare(t, k)`` for every group of the skinny vectors, which gives whether it has no scale: a bit for each
    vector of which one has none (i64)."""
    b = operands.b
    with b.loop(0, operands.count, 1, [b.constant(I64, 0)]) as t:
        with b.loop(0, operands.k, group, [b.constant(I1, False)]) as k:
            k.yield_values(b.binary("or", k.carry[0], prepare(t.index, k.index)))
        bit = b.binary("shl", b.convert("zext", k.results[0], I64), t.index)
        t.yield_values(b.binary("or", t.carry[0], bit))
    return t.results[0]


def _narrow_terms(operands: Operands, t: Index, k: Index, lanes: int) -> Value:
    """Terms of a skinny vector, rounded to bfloat16."""
    b, skinny = operands.b, operands.skinny
    wide = operands.skinny_vector(t, k, lanes, None)
    if skinny.element == BFLOAT and skinny.prologue is None:
        return wide
    return b.widen_float(b.narrow_float(wide, BFLOAT), FLOAT)
