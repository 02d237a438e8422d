"""The inverse error function by one fixed sequence of IEEE operations, so that every device gives the same
bits.

Polynomials of M. Giles, "Approximating the erfinv function" (GPU Computing Gems, Jade edition, 2010). They
are evaluated by Horner's rule, highest power first, multiplication and addition each rounded (no fused
multiply-add). The logarithm they need is defined here for the same reason: libraries' logarithms differ in
the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# (upper end of w = -log((1-x)(1+x)), variable: w or its square root, centre, coefficients from the highest
# power)
Piece = tuple[float, str, float, tuple[float, ...]]
GILES_FLOAT32: tuple[Piece, ...] = (
    (5.0, "w", 2.5, (
        2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
        -0.00417768164, 0.246640727, 1.50140941,
    )),
    (float("inf"), "sqrt", 3.0, (
        -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
        0.00943887047, 1.00167406, 2.83297682,
    )),
)  # fmt: skip
GILES_FLOAT64: tuple[Piece, ...] = (
    (6.25, "w", 3.125, (
        -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18,
        1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17,
        6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14,
        2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
        1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08,
        4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05,
        0.0001867342080340571352, -0.00074070253416626697512, -0.0060336708714301490533,
        0.24015818242558961693, 1.6536545626831027356,
    )),
    (16.0, "sqrt", 3.25, (
        2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
        1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
        2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
        6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
        0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
        -0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635,
    )),
    (float("inf"), "sqrt", 5.0, (
        -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
        -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
        2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
        -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
        7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
        1.0103004648645343977, 4.8499064014085844221,
    )),
)  # fmt: skip

# log(m) = 2 artanh(s), s = (m - 1) / (m + 1): terms 2 s**(2k+1) / (2k+1), enough of them for m in [sqrt(1/2),
# sqrt(2))
LOG_TERMS = {"float32": 5, "float64": 11}
_LAYOUT = {  # integer type, bits of the fraction, bits of sqrt(1/2)
    "float32": (np.int32, 23, 0x3F3504F3),
    "float64": (np.int64, 52, 0x3FE6A09E667F3BCD),
}
_CHUNK = 16384  # elements whose temporaries stay in cache


def erfinv(x: Array) -> Array:
    """The inverse error function of a float32 or float64 array: +-inf at +-1 and nan outside."""
    inside = np.abs(x) < 1
    result = erfinv_inside(np.where(inside, x, x.dtype.type(0)))
    edge = np.where(np.abs(x) == 1, np.copysign(np.inf, x), np.nan).astype(x.dtype)
    return np.where(inside, result, edge)


def erfinv_inside(x: Array) -> Array:
    """The inverse error function of a float32 or float64 array whose elements all lie within (-1, 1)."""
    flat = np.ascontiguousarray(x).reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, _CHUNK):
        chunk = slice(start, start + _CHUNK)
        result[chunk] = _erfinv_chunk(flat[chunk])
    return result.reshape(x.shape)


def _erfinv_chunk(x: Array) -> Array:
    one = x.dtype.type(1)
    w = -log_positive((one - x) * (one + x))
    root = np.sqrt(np.maximum(w, x.dtype.type(0)))
    pieces = GILES_FLOAT32 if x.dtype == np.float32 else GILES_FLOAT64
    *inner, (_, variable, centre, coefficients) = pieces
    p = _horner(coefficients, (w if variable == "w" else root) - x.dtype.type(centre))
    for end, variable, centre, coefficients in reversed(inner):
        nearer = _horner(coefficients, (w if variable == "w" else root) - x.dtype.type(centre))
        p = np.where(w < x.dtype.type(end), nearer, p)
    return p * x


def log_positive(x: Array) -> Array:
    """The natural logarithm of positive normal float32 or float64 numbers, by the fixed sequence of
    operations.

    ``x = 2**e * m`` with m in [sqrt(1/2), sqrt(2)); ``log x = e * log 2 + 2 s + s * z * poly(z)``, ``s =
    (m-1)/(m+1)``, ``z = s * s``, and poly the rest of artanh's series.
    """
    integer, fraction_bits, root_half = _LAYOUT[x.dtype.name]
    real = x.dtype.type
    bits = x.view(integer)
    exponent = (bits - integer(root_half)) >> integer(fraction_bits)
    m = (bits - (exponent << integer(fraction_bits))).view(x.dtype)
    s = (m - real(1)) / (m + real(1))
    z = s * s
    rest = _horner([2.0 / (2 * k + 1) for k in range(LOG_TERMS[x.dtype.name], 0, -1)], z)
    result: Array = exponent.astype(x.dtype) * real(np.log(2.0)) + (real(2) * s + s * z * rest)
    return result


def _horner(coefficients: tuple[float, ...] | list[float], x: Array) -> Array:
    real = x.dtype.type
    result = np.full_like(x, real(coefficients[0]))
    for coefficient in coefficients[1:]:
        np.multiply(result, x, out=result)
        np.add(result, real(coefficient), out=result)
    return result
