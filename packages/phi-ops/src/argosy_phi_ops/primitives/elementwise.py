"""Elementwise primitives: operands of equal shape (and, unless noted, dtype), results of that shape."""

from __future__ import annotations

from collections.abc import Iterable

from argosy_phi_ops.declare.axes import AxisNotation, elementwise_notation
from argosy_phi_ops.errors import DTypeError, ShapeError
from argosy_phi_ops.primitives.checks import (
    BOOL,
    COMPLEX,
    FLOATING,
    INEXACT,
    INTEGER,
    NUMERIC,
    ORDERED,
    REAL_OF,
    check_dtype,
    check_same_type,
    require,
)
from argosy_phi_ops.primitives.declaration import PRIMITIVES, Primitive
from argosy_pir.types import TensorType

_ALL = BOOL | NUMERIC
_FAMILY = "elementwise"


def _notation(*operands: TensorType, **_: object) -> AxisNotation:
    return elementwise_notation(len(operands[0].shape), len(operands))


def _enter(name: str, rule: object, doc: str, work: int = 1) -> Primitive:
    new = Primitive(rule, _FAMILY, broadcasts=True, name=name, work=work)  # type: ignore[arg-type]
    new.doc = doc
    new.axes(_notation)
    PRIMITIVES[name] = new
    return new


def _unary(name: str, allowed: Iterable[str], doc: str, result: str = "", work: int = 1) -> Primitive:
    def rule(x: TensorType) -> TensorType:
        check_dtype(name, x, allowed)
        return TensorType(x.shape, result) if result else x

    return _enter(name, rule, doc, work)


def _binary(name: str, allowed: Iterable[str], doc: str, result: str = "", work: int = 1) -> Primitive:
    def rule(x: TensorType, y: TensorType) -> TensorType:
        check_dtype(name, x, allowed)
        check_same_type(name, (x, y))
        return TensorType(x.shape, result) if result else x

    return _enter(name, rule, doc, work)


neg = _unary("neg", NUMERIC, "-x; unsigned integers wrap.")
sign = _unary("sign", NUMERIC, "-1, 0 or 1 (NaN stays); x / |x| for complex, 0 at 0.")
floor = _unary("floor", FLOATING, "The largest integer not above x.")
ceil = _unary("ceil", FLOATING, "The smallest integer not below x.")
round_ = _unary("round", FLOATING, "The nearest integer, halves to even.")
trunc = _unary("trunc", FLOATING, "The integer part.")
exp = _unary("exp", INEXACT, "e to the power x.", work=12)
expm1 = _unary("expm1", INEXACT, "exp(x) - 1, accurate near 0.", work=30)
log = _unary("log", INEXACT, "Natural logarithm.", work=14)
log1p = _unary("log1p", INEXACT, "log(1 + x), accurate near 0.", work=18)
sqrt = _unary("sqrt", INEXACT, "Square root.", work=5)
rsqrt = _unary("rsqrt", INEXACT, "1 / sqrt(x).", work=8)
sin = _unary("sin", INEXACT, "Sine of x in radians.", work=20)
cos = _unary("cos", INEXACT, "Cosine of x in radians.", work=20)
tan = _unary("tan", INEXACT, "Tangent of x in radians.", work=100)
asin = _unary("asin", INEXACT, "Inverse sine.", work=100)
acos = _unary("acos", INEXACT, "Inverse cosine.", work=100)
atan = _unary("atan", INEXACT, "Inverse tangent.", work=100)
sinh = _unary("sinh", INEXACT, "Hyperbolic sine.", work=100)
cosh = _unary("cosh", INEXACT, "Hyperbolic cosine.", work=100)
asinh = _unary("asinh", INEXACT, "Inverse hyperbolic sine.", work=100)
acosh = _unary("acosh", INEXACT, "Inverse hyperbolic cosine.", work=100)
atanh = _unary("atanh", INEXACT, "Inverse hyperbolic tangent.", work=100)
tanh = _unary("tanh", INEXACT, "Hyperbolic tangent.", work=16)
logistic = _unary("logistic", INEXACT, "1 / (1 + exp(-x)).", work=18)
erf = _unary("erf", FLOATING, "Error function.", work=18)
erfc = _unary("erfc", FLOATING, "1 - erf(x), accurate for large x.", work=40)
erfinv = _unary("erfinv", FLOATING, "Inverse error function on (-1, 1), by the polynomial of Giles (2010).", work=30)
lgamma = _unary("lgamma", FLOATING, "Logarithm of |gamma(x)|.", work=150)
digamma = _unary("digamma", FLOATING, "Derivative of lgamma.", work=250)
bitwise_not = _unary("bitwise_not", INTEGER | BOOL, "Complement of every bit.")
logical_not = _unary("logical_not", BOOL, "Logical negation.")
is_finite = _unary("is_finite", _ALL, "Whether x is neither infinite nor NaN.", "bool")
is_nan = _unary("is_nan", _ALL, "Whether x is NaN.", "bool")
is_inf = _unary("is_inf", _ALL, "Whether x is infinite.", "bool")
conj = _unary("conj", COMPLEX, "Complex conjugate.")
stop_gradient = _unary("stop_gradient", _ALL, "x, constant for differentiation.", work=0)
copy = _unary("copy", _ALL, "x in memory of its own.", work=0)

add = _binary("add", NUMERIC, "x + y; integers wrap.")
sub = _binary("sub", NUMERIC, "x - y; integers wrap.")
mul = _binary("mul", NUMERIC, "x * y; integers wrap.")
div = _binary("div", NUMERIC, "x / y; integers truncate towards zero.", work=4)
rem = _binary("rem", INTEGER | FLOATING, "Remainder with the sign of x (C's fmod and %).", work=30)
floor_div = _binary("floor_div", INTEGER | FLOATING, "The largest integer not above x / y.", work=40)
floor_mod = _binary("floor_mod", INTEGER | FLOATING, "x - y * floor_div(x, y), with the sign of y.", work=35)
pow_ = _binary("pow", NUMERIC, "x to the power y.", work=100)
maximum = _binary("maximum", ORDERED, "The larger one; NaN if either is.")
minimum = _binary("minimum", ORDERED, "The smaller one; NaN if either is.")
atan2 = _binary("atan2", FLOATING, "Angle of the point (y=x operand, x=y operand) in radians.", work=100)
nextafter = _binary("nextafter", FLOATING, "The next representable value after x towards y.", work=60)
bitwise_and = _binary("bitwise_and", INTEGER | BOOL, "x & y.")
bitwise_or = _binary("bitwise_or", INTEGER | BOOL, "x | y.")
bitwise_xor = _binary("bitwise_xor", INTEGER | BOOL, "x ^ y.")
shift_left = _binary("shift_left", INTEGER, "x << y; 0 when y is not below the width.")
shift_right = _binary("shift_right", INTEGER, "x >> y, arithmetic for signed and logical for unsigned integers.")
logical_and = _binary("logical_and", BOOL, "x and y.")
logical_or = _binary("logical_or", BOOL, "x or y.")
logical_xor = _binary("logical_xor", BOOL, "x != y.")
eq = _binary("eq", _ALL, "x == y.", "bool")
ne = _binary("ne", _ALL, "x != y.", "bool")
lt = _binary("lt", ORDERED, "x < y.", "bool")
le = _binary("le", ORDERED, "x <= y.", "bool")
gt = _binary("gt", ORDERED, "x > y.", "bool")
ge = _binary("ge", ORDERED, "x >= y.", "bool")


def _abs(x: TensorType) -> TensorType:
    check_dtype("abs", x, NUMERIC)
    return TensorType(x.shape, REAL_OF.get(x.dtype, x.dtype))


def _part(name: str) -> Primitive:
    def rule(x: TensorType) -> TensorType:
        check_dtype(name, x, COMPLEX)
        return TensorType(x.shape, REAL_OF[x.dtype])

    return _enter(name, rule, f"The {name}inary part." if name == "imag" else "The real part.")


def _complex(re: TensorType, im: TensorType) -> TensorType:
    check_dtype("complex", re, ("float32", "float64"), "re")
    check_same_type("complex", (re, im))
    return TensorType(re.shape, "complex64" if re.dtype == "float32" else "complex128")


def _select(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    check_same_type("select", (x, y))
    require(condition.dtype == "bool", f"prim.select: condition has dtype {condition.dtype}, expected bool", DTypeError)
    require(condition.shape == x.shape, f"prim.select: condition {condition} and x {x} differ in shape", ShapeError)
    return x


def _cast(x: TensorType, *, dtype: str) -> TensorType:
    check_dtype("cast", TensorType((), dtype), _ALL, "dtype")
    return TensorType(x.shape, dtype)


def _bitcast(x: TensorType, *, dtype: str) -> TensorType:
    widths = _width(x.dtype), _width(dtype)
    require(widths[0] == widths[1], f"prim.bitcast: {x.dtype} and {dtype} differ in width", DTypeError)
    return TensorType(x.shape, dtype)


def _width(dtype: str) -> int:
    if dtype == "bool" or dtype.startswith("float8"):
        return 8
    return int("".join(c for c in dtype if c.isdigit()))


abs_ = _enter("abs", _abs, "|x|; real for complex x.")
real = _part("real")
imag = _part("imag")
complex_ = _enter("complex", _complex, "re + i im, complex64 from float32 and complex128 from float64.")
select = _enter("select", _select, "x where the bool condition holds, else y.")
cast = _enter("cast", _cast, "x converted to ``dtype``: floats to integers truncate, anything to bool is x != 0.")
bitcast = _enter("bitcast", _bitcast, "The bits of x read as ``dtype`` of equal width.")
