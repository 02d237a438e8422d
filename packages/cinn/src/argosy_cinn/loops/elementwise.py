"""Elementwise primitives as instructions on registers.

In registers a bool is an ``i1``, floats narrower than 32 bits are a ``float`` that is rounded after every operation,
and other dtypes are their own type. The arithmetic is the reference kernels': an integer divided by zero gives 0, too.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy_cinn import functions
from argosy_cinn.forms.dtypes import FLOATS, INTEGERS, NARROW, SIGNED, UNSIGNED
from argosy_cinn.forms.expressions import Expression
from argosy_cinn.loops.float8 import FORMATS, round_to_bytes, widen
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I64, Value, bits_of, constant, lanes_of, vector

_MACHINE = {"float16": HALF, "bfloat16": BFLOAT}
#: Type in a register by dtype.
REGISTER = {
    "bool": I1, "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32",
    "int64": I64, "uint64": I64, "float32": FLOAT, "float64": DOUBLE, **dict.fromkeys(NARROW, FLOAT),
}  # fmt: skip

Emit = Callable[[Instructions, Expression, list[Value]], Value]


def emit(b: Instructions, node: Expression, arguments: list[Value]) -> Value:
    """The code of one elementwise node on scalars or vectors of equal lanes."""
    result = OPERATIONS[node.kind](b, node, arguments)
    if node.dtype in NARROW and node.kind not in _EXACT:
        return round_to(b, result, node.dtype)
    return result


_EXACT = frozenset({"neg", "abs", "sign", "floor", "ceil", "round", "trunc", "maximum", "minimum", "select"})


def round_to(b: Instructions, x: Value, dtype: str) -> Value:
    """A float in a register rounded to a narrow dtype."""
    return _from_memory(b, _to_memory(b, x, dtype), dtype)


def _source(node: Expression) -> str:
    return node.arguments[0].dtype


def _float(dtype: str) -> bool:
    return dtype in FLOATS


def _mathematical(name: str) -> Emit:
    return lambda b, node, x: functions.apply(b, name, *x)


def _unary_float(name: str) -> Emit:
    return lambda b, node, x: b.unary(name, x[0])


def _rounding_rule(name: str) -> Emit:
    return lambda b, node, x: b.unary(name, x[0]) if _float(node.dtype) else x[0]


def _neg(b: Instructions, node: Expression, x: list[Value]) -> Value:
    return b.fneg(x[0]) if _float(node.dtype) else b.binary("sub", b.zero(x[0].type), x[0])


def _abs(b: Instructions, node: Expression, x: list[Value]) -> Value:
    if _float(node.dtype):
        return b.unary("fabs", x[0])
    return x[0] if node.dtype in UNSIGNED else b.select(b.icmp("slt", x[0], 0), _neg(b, node, x), x[0])


def _sign(b: Instructions, node: Expression, x: list[Value]) -> Value:
    v = x[0]
    one, zero = constant(v.type, 1), b.zero(v.type)
    if _float(node.dtype):
        positive = b.select(b.fcmp("ogt", v, 0.0), one, v)
        signed = b.select(b.fcmp("olt", v, 0.0), constant(v.type, -1), positive)
        return b.select(b.fcmp("oeq", v, 0.0), zero, signed)
    positive = b.select(b.icmp("ne", v, 0), one, zero)
    return positive if node.dtype in UNSIGNED else b.select(b.icmp("slt", v, 0), constant(v.type, -1), positive)


def _rsqrt(b: Instructions, node: Expression, x: list[Value]) -> Value:
    return b.fdiv(constant(x[0].type, 1.0), b.unary("sqrt", x[0]))


def _arithmetic(float_opcode: str, integer_opcode: str) -> Emit:
    return lambda b, node, x: b.binary(float_opcode if _float(node.dtype) else integer_opcode, x[0], x[1])


def _safe_divisor(b: Instructions, node: Expression, x: Value, y: Value) -> tuple[Value, Value]:
    """The divisor with what would trap (0, and -1) replaced by 1, and whether it is 0."""
    zero = b.icmp("eq", y, 0)
    bad = zero if node.dtype in UNSIGNED else b.binary("or", zero, b.icmp("eq", y, -1))
    return b.select(bad, constant(y.type, 1), y), zero


def _divide(b: Instructions, node: Expression, x: list[Value]) -> Value:
    if _float(node.dtype):
        return b.fdiv(x[0], x[1])
    divisor, zero = _safe_divisor(b, node, x[0], x[1])
    quotient = b.binary("udiv" if node.dtype in UNSIGNED else "sdiv", x[0], divisor)
    if node.dtype in SIGNED:
        quotient = b.select(b.icmp("eq", x[1], -1), b.binary("sub", b.zero(x[0].type), x[0]), quotient)
    return b.select(zero, b.zero(x[0].type), quotient)


def _remainder(b: Instructions, node: Expression, x: list[Value]) -> Value:
    if _float(node.dtype):
        return _mathematical("rem")(b, node, x)
    divisor, zero = _safe_divisor(b, node, x[0], x[1])
    rest = b.binary("urem" if node.dtype in UNSIGNED else "srem", x[0], divisor)
    return b.select(zero, b.zero(x[0].type), rest)


def _floor_mod(b: Instructions, node: Expression, x: list[Value]) -> Value:
    rest = _remainder(b, node, x)
    if node.dtype in UNSIGNED:
        return rest
    if node.dtype in SIGNED:
        wrong = b.icmp("slt", b.binary("xor", rest, x[1]), 0)
        return b.select(b.binary("and", b.icmp("ne", rest, 0), wrong), b.binary("add", rest, x[1]), rest)
    differ = b.binary("xor", b.fcmp("olt", rest, 0.0), b.fcmp("olt", x[1], 0.0))
    nonzero = b.fcmp("une", rest, 0.0)
    signed_zero = b.intrinsic("llvm.copysign", rest.type, b.zero(rest.type), x[1])
    moved = b.select(b.binary("and", nonzero, differ), b.fadd(rest, x[1]), rest)
    return b.select(nonzero, moved, signed_zero)


def _floor_div(b: Instructions, node: Expression, x: list[Value]) -> Value:
    if _float(node.dtype):
        return _floor_div_float(b, node, x)
    quotient = _divide(b, node, x)
    if node.dtype in UNSIGNED:
        return quotient
    rest = _remainder(b, node, x)
    down = b.binary("and", b.icmp("ne", rest, 0), b.icmp("slt", b.binary("xor", rest, x[1]), 0))
    return b.select(down, b.binary("sub", quotient, constant(quotient.type, 1)), quotient)


def _floor_div_float(b: Instructions, node: Expression, x: list[Value]) -> Value:
    """As Python's divmod does it: through the exact remainder."""
    rest = _remainder(b, node, x)
    down = b.binary(
        "and", b.fcmp("une", rest, 0.0), b.binary("xor", b.fcmp("olt", rest, 0.0), b.fcmp("olt", x[1], 0.0))
    )
    quotient = b.fdiv(b.fsub(x[0], rest), x[1])
    quotient = b.select(down, b.fsub(quotient, constant(quotient.type, 1.0)), quotient)
    whole = b.unary("floor", quotient)
    whole = b.select(b.fcmp("ogt", b.fsub(quotient, whole), 0.5), b.fadd(whole, 1.0), whole)
    true = b.fdiv(x[0], x[1])
    signed_zero = b.intrinsic("llvm.copysign", true.type, b.zero(true.type), true)
    whole = b.select(b.fcmp("une", quotient, 0.0), whole, signed_zero)
    return b.select(b.fcmp("oeq", x[1], 0.0), true, whole)


def _extreme(predicate: str) -> Emit:
    def code(b: Instructions, node: Expression, x: list[Value]) -> Value:
        return extreme(b, predicate, node.dtype, x[0], x[1])

    return code


def extreme(b: Instructions, predicate: str, dtype: str, x: Value, y: Value) -> Value:
    """The larger (``"gt"``) or smaller (``"lt"``) of two; NaN where either is."""
    if dtype == "bool":
        return b.binary("or" if predicate == "gt" else "and", x, y)
    if dtype in INTEGERS:
        return b.select(b.icmp(("u" if dtype in UNSIGNED else "s") + predicate, x, y), x, y)
    # The first is one instruction of x86, which gives y where either is NaN; the second masks it.
    better = b.select(b.fcmp("o" + predicate, x, y), x, y)
    return b.select(b.fcmp("ord", x, x), better, x)


def _comparison(predicate: str) -> Emit:
    def code(b: Instructions, node: Expression, x: list[Value]) -> Value:
        source = _source(node)
        if _float(source):
            return b.fcmp(("u" if predicate == "ne" else "o") + predicate, x[0], x[1])
        if predicate in ("eq", "ne"):
            return b.icmp(predicate, x[0], x[1])
        return b.icmp(("s" if source in SIGNED else "u") + predicate, x[0], x[1])

    return code


def _bits(opcode: str) -> Emit:
    return lambda b, node, x: b.binary(opcode, x[0], x[1])


def _not(b: Instructions, node: Expression, x: list[Value]) -> Value:
    return b.binary("xor", x[0], constant(x[0].type, -1))


def _shift(opcode: str) -> Emit:
    def code(b: Instructions, node: Expression, x: list[Value]) -> Value:
        bits = bits_of(x[0].type)
        beyond = b.icmp("uge", x[1], bits)
        arithmetic = opcode == "shr" and node.dtype in SIGNED
        amount = b.select(beyond, constant(x[1].type, bits - 1 if arithmetic else 0), x[1])
        shifted = b.binary({"shl": "shl", "shr": "ashr" if arithmetic else "lshr"}[opcode], x[0], amount)
        return shifted if arithmetic else b.select(beyond, b.zero(x[0].type), shifted)

    return code


def _pow(b: Instructions, node: Expression, x: list[Value]) -> Value:
    if _float(node.dtype):
        return _mathematical("pow")(b, node, x)
    return _integer_power(b, node, x[0], x[1])


def _integer_power(b: Instructions, node: Expression, base: Value, exponent: Value) -> Value:
    """By squaring; a negative exponent gives the reciprocal rounded to zero."""
    bits = bits_of(base.type)
    result = constant(base.type, 1)
    square = base
    for i in range(min(bits, 6)):  # higher bits of the exponent matter only for bases 0, 1 and -1 and even results
        chosen = b.icmp("ne", b.binary("and", exponent, 1 << i), 0)
        result = b.select(chosen, b.binary("mul", result, square), result)
        square = b.binary("mul", square, square)
    if bits > 6:
        # square is now base^64: for even bases 0 in 64 bits; odd bases go on.
        for i in range(6, bits - (node.dtype in SIGNED)):
            chosen = b.icmp("ne", b.binary("and", exponent, 1 << i), 0)
            result = b.select(chosen, b.binary("mul", result, square), result)
            square = b.binary("mul", square, square)
    if node.dtype in UNSIGNED:
        return result
    odd = b.icmp("ne", b.binary("and", exponent, 1), 0)
    minus = b.select(odd, constant(base.type, -1), constant(base.type, 1))
    reciprocal = b.select(b.icmp("eq", base, -1), minus, b.zero(base.type))
    reciprocal = b.select(b.icmp("eq", base, 1), constant(base.type, 1), reciprocal)
    return b.select(b.icmp("slt", exponent, 0), reciprocal, result)


def _is_nan(b: Instructions, node: Expression, x: list[Value]) -> Value:
    if not _float(_source(node)):
        return constant(vector(I1, lanes_of(x[0].type)), False)
    return b.fcmp("uno", x[0], x[0])


def _is_inf(b: Instructions, node: Expression, x: list[Value]) -> Value:
    if not _float(_source(node)):
        return constant(vector(I1, lanes_of(x[0].type)), False)
    return b.fcmp("oeq", b.unary("fabs", x[0]), float("inf"))


def _is_finite(b: Instructions, node: Expression, x: list[Value]) -> Value:
    if not _float(_source(node)):
        return constant(vector(I1, lanes_of(x[0].type)), True)
    return b.fcmp("olt", b.unary("fabs", x[0]), float("inf"))


def _select(b: Instructions, node: Expression, x: list[Value]) -> Value:
    return b.select(x[0], x[1], x[2])


def _cast(b: Instructions, node: Expression, x: list[Value]) -> Value:
    return convert(b, x[0], _source(node), node.dtype)


def convert(b: Instructions, x: Value, source: str, target: str) -> Value:
    """A value in a register converted between dtypes; narrow results are rounded by the caller."""
    if source == target:
        return x
    to = REGISTER[target]
    if target == "bool":
        return b.fcmp("une", x, 0.0) if _float(source) else b.icmp("ne", x, 0)
    if _float(source) and _float(target):
        return b.convert("fpext" if to == DOUBLE else "fptrunc", x, to)
    if _float(target):
        return b.convert("sitofp" if source in SIGNED else "uitofp", x, to)
    if _float(source):
        return _float_to_integer(b, x, target, to)
    if bits_of(x.type) > bits_of(to):
        return b.convert("trunc", x, to)
    return b.convert("sext" if source in SIGNED else "zext", x, to)


def _float_to_integer(b: Instructions, x: Value, target: str, to: str) -> Value:
    """Truncation; what does not fit wraps through int64 where that holds it, else is the machine's indefinite value."""
    wide = I64 if bits_of(to) == 64 else "i32"
    if target in ("uint32",):
        wide = I64
    if target == "uint64":
        big = b.fcmp("oge", x, 9223372036854775808.0)
        low = b.intrinsic(
            "llvm.fptosi.sat", vector(I64, lanes_of(x.type)), x, overloads=(vector(I64, lanes_of(x.type)), x.type)
        )
        reduced = b.fsub(x, 9223372036854775808.0)
        overloads = (vector(I64, lanes_of(x.type)), x.type)
        high = b.intrinsic("llvm.fptosi.sat", overloads[0], reduced, overloads=overloads)
        return b.select(big, b.binary("xor", high, -(1 << 63)), low)
    type = vector(wide, lanes_of(x.type))
    whole = b.intrinsic("llvm.fptosi.sat", type, x, overloads=(type, x.type))
    limit = 9223372036854775808.0 if wide == I64 else 2147483648.0
    # numpy and the machine give the least integer for what does not fit, NaN included
    fits = b.fcmp("olt", x, limit)
    whole = b.select(fits, whole, constant(type, -(1 << (bits_of(wide) - 1))))
    return whole if wide == to else b.convert("trunc", whole, to)


def _bitcast(b: Instructions, node: Expression, x: list[Value]) -> Value:
    source, target = _source(node), node.dtype
    memory = _to_memory(b, x[0], source)
    return _from_memory(b, memory, target)


def _next_after(b: Instructions, node: Expression, x: list[Value]) -> Value:
    """One step in the integers that the bits are: away from zero or towards it."""
    start, end = x
    memory = _to_memory(b, start, node.dtype)
    bits = b.bitcast(memory, vector(f"i{bits_of(memory.type)}", lanes_of(memory.type)))
    top = 1 << (bits_of(bits.type) - 1)
    away = b.icmp("eq", b.fcmp("ogt", end, start), b.fcmp("ogt", start, 0.0))
    moved = b.binary("add", bits, b.select(away, constant(bits.type, 1), constant(bits.type, -1)))
    least = b.select(b.fcmp("olt", end, 0.0), constant(bits.type, top | 1), constant(bits.type, 1))
    moved = b.select(b.fcmp("oeq", start, 0.0), least, moved)
    found = _from_memory(b, b.bitcast(moved, memory.type), node.dtype)
    found = b.select(b.fcmp("oeq", start, end), end, found)
    return b.select(b.fcmp("uno", start, end), b.fadd(start, end), found)


def _to_memory(b: Instructions, x: Value, dtype: str) -> Value:
    if dtype == "bool":
        return b.convert("zext", x, "i8")
    if dtype in FORMATS:
        return round_to_bytes(b, x, dtype)
    return b.narrow_float(x, _MACHINE[dtype]) if dtype in NARROW else x


def _from_memory(b: Instructions, x: Value, dtype: str) -> Value:
    lanes = lanes_of(x.type)
    if dtype == "bool":
        return b.icmp("ne", x, 0)
    if dtype in FORMATS:
        return widen(b, x, dtype)
    if dtype in NARROW:
        return b.widen_float(b.bitcast(x, vector(_MACHINE[dtype], lanes)), FLOAT)
    return b.bitcast(x, vector(REGISTER[dtype], lanes))


def load_element(b: Instructions, x: Value, dtype: str) -> Value:
    """What was read from memory, as a register holds it."""
    return _from_memory(b, x, dtype) if dtype == "bool" or dtype in NARROW else x


def store_element(b: Instructions, x: Value, dtype: str) -> Value:
    """A register's value as memory holds it."""
    return _to_memory(b, x, dtype)


OPERATIONS: dict[str, Emit] = {
    "neg": _neg, "abs": _abs, "sign": _sign, "sqrt": _unary_float("sqrt"), "rsqrt": _rsqrt,
    "floor": _rounding_rule("floor"), "ceil": _rounding_rule("ceil"), "trunc": _rounding_rule("trunc"),
    "round": _rounding_rule("roundeven"),
    "add": _arithmetic("fadd", "add"), "sub": _arithmetic("fsub", "sub"), "mul": _arithmetic("fmul", "mul"),
    "div": _divide, "rem": _remainder, "floor_div": _floor_div, "floor_mod": _floor_mod, "pow": _pow,
    "maximum": _extreme("gt"), "minimum": _extreme("lt"),
    "bitwise_and": _bits("and"), "bitwise_or": _bits("or"), "bitwise_xor": _bits("xor"), "bitwise_not": _not,
    "logical_and": _bits("and"), "logical_or": _bits("or"), "logical_xor": _bits("xor"), "logical_not": _not,
    "shift_left": _shift("shl"), "shift_right": _shift("shr"),
    **{name: _comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "is_nan": _is_nan, "is_inf": _is_inf, "is_finite": _is_finite, "select": _select, "cast": _cast,
    "bitcast": _bitcast, "nextafter": _next_after,
    **{name: _mathematical(name) for name in functions.NAMES - {"pow", "rem"}},
}  # fmt: skip
"""Code by primitive name."""
