"""Special functions, vectorised without scipy: erf, erfc, erfinv, lgamma, digamma.

Each is computed in float64 by regions (the index set of a region, one formula) and rounded once to the
operand's dtype; float64 results are within a few units in the last place. `erfinv` is the exception: normal
random numbers are made of it, so it is tensorcore's, which gives the same bits on every device.
"""

from collections.abc import Callable, Sequence

import numpy as np

from argosy_phi_ops.errors import DTypeError
from argosy_phi_ops.reference.kernels.registry import Array, ieee, kernel, round_narrow, widen
from argosy_tensorcore.erfinv import erfinv as fixed_erfinv

# Rational approximations of W. J. Cody's kind as published with fdlibm's s_erf.c (Sun Microsystems, 1993):
# coefficients ascend; denominators start with 1. erf(x) = x + x P/Q(x^2) below 0.84375; 0.845... + P/Q(|x| -
# 1) up to 1.25; then erfc(x) = exp(-x^2 - 0.5625 + P/Q(1/x^2)) / x, with one pair up to 1/0.35 and one
# beyond.
_ERF_CENTRE = 8.45062911510467529297e-01
_ERF_SMALL = (
    (1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
     -5.77027029648944159157e-03, -2.37630166566501626084e-05),
    (1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
     1.32494738004321644526e-04, -3.96022827877536812320e-06),
)  # fmt: skip
_ERF_MIDDLE = (
    (-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
     3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
     -2.16637559486879084300e-03),
    (1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
     1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02),
)  # fmt: skip
_ERFC_NEAR = (
    (-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01,
     -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02,
     -8.12874355063065934246e+01, -9.81432934416914548592e+00),
    (1.0, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02,
     6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02,
     6.57024977031928170135e+00, -6.04244152148580987438e-02),
)  # fmt: skip
_ERFC_FAR = (
    (-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01,
     -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03,
     -4.83519191608651397019e+02),
    (1.0, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03,
     3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02,
     -2.24409524465858183362e+01),
)  # fmt: skip

# lgamma, after fdlibm's e_lgamma_r.c: lgamma(2 + s) = s/2 + s P/Q(s) for s in [0, 1); lgamma(1 + s) = -s/2 +
# s P/Q(s) for s in [-0.24, 0.24]; around its minimum and near 2 plain polynomials; Stirling's series from 8
# on.
_LGAMMA_TWO = (
    (-7.72156649015328655494e-02, 2.14982415960608852501e-01, 3.25778796408930981787e-01,
     1.46350472652464452805e-01, 2.66422703033638609560e-02, 1.84028451407337715652e-03,
     3.19475326584100867617e-05),
    (1.0, 1.39200533467621045958e+00, 7.21935547567138069525e-01, 1.71933865632803078993e-01,
     1.86459191715652901344e-02, 7.77942496381893596434e-04, 7.32668430744625636189e-06),
)  # fmt: skip
_LGAMMA_ONE = (
    (-7.72156649015328655494e-02, 6.32827064025093366517e-01, 1.45492250137234768737e+00,
     9.77717527963372745603e-01, 2.28963728064692451092e-01, 1.33810918536787660377e-02),
    (1.0, 2.45597793713041134822e+00, 2.12848976379893395361e+00, 7.69285150456672783825e-01,
     1.04222645593369134254e-01, 3.21709242282423911810e-03),
)  # fmt: skip
_LGAMMA_BELOW_TWO = (  # in y = 2 - x: lgamma(x) = y P(y) - y/2
    7.72156649015328655494e-02, 3.22467033424113591611e-01, 6.73523010531292681824e-02,
    2.05808084325167332806e-02, 7.38555086081402883957e-03, 2.89051383673415629091e-03,
    1.19270763183362067845e-03, 5.10069792153511336608e-04, 2.20862790713908385557e-04,
    1.08011567247583939954e-04, 2.52144565451257326939e-05, 4.48640949618915160150e-05,
)  # fmt: skip
_LGAMMA_MINIMUM_AT, _LGAMMA_MINIMUM = (
    1.46163214496836224576,
    (-1.21486290535849611461e-01, 3.63867699703950536541e-18),
)
_LGAMMA_AROUND_MINIMUM = (
    4.83836122723810047042e-01, -1.47587722994593911752e-01, 6.46249402391333854778e-02,
    -3.27885410759859649565e-02, 1.79706750811820387126e-02, -1.03142241298341437450e-02,
    6.10053870246291332635e-03, -3.68452016781138256760e-03, 2.25964780900612472250e-03,
    -1.40346469989232843813e-03, 8.81081882437654011382e-04, -5.38595305356740546715e-04,
    3.15632070903625950361e-04, -3.12754168375120860518e-04, 3.35529192635519073543e-04,
)  # fmt: skip
_LGAMMA_STIRLING = (8.33333333333329678849e-02, -2.77777777728775536470e-03, 7.93650558643019558500e-04,
                    -5.95187557450339963135e-04, 8.36339918996282139126e-04,
                    -1.63092934096575273989e-03)  # fmt: skip
_LGAMMA_STIRLING_CONSTANT = 4.18938533204672725052e-01  # (log(2 pi) - 1) / 2

# digamma(x) ~ log x - 1/(2x) - sum B_2k / (2k x^2k) (Abramowitz and Stegun 6.3.18): coefficients of
# (1/x^2)^k, k >= 1.
_DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """Horner's rule; coefficients ascend."""
    result = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result *= x
        result += coefficient
    return result


def _ratio(pair: tuple[Sequence[float], Sequence[float]], x: Array) -> Array:
    return _polynomial(pair[0], x) / _polynomial(pair[1], x)


_CHUNK = 1 << 13  # elements whose temporaries stay in the cache


def _check_real(x: Array) -> None:
    if x.dtype.kind == "c":
        raise DTypeError(f"argument 'x' should be a tensor of real numbers, got {x.dtype}")


def _in_float64(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A kernel out of a function on flat float64 arrays: widen, call chunk by chunk, round once."""

    def call(x: Array) -> Array:
        _check_real(x)
        flat = x.reshape(-1)
        result = np.empty(flat.shape, x.dtype)
        for start in range(0, flat.size, _CHUNK):
            chunk = slice(start, start + _CHUNK)
            result[chunk] = function(flat[chunk].astype(np.float64))
        return result.reshape(x.shape)

    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = function.__doc__
    return ieee(call)


def _piecewise(x: Array, default: float, *pieces: tuple[Array, Callable[[Array], Array]]) -> Array:
    """Evaluate each (region, formula) on the elements of its region only; the rest holds `default`."""
    result = np.full_like(x, default)
    for region, formula in pieces:
        if region.any():
            result[region] = formula(x[region])
    return result


def _erfc_tail(a: Array) -> Array:
    """erfc of `a` >= 1.25. The square is split so that its rounding error does not reach the exponential."""
    inverse = 1 / (a * a)
    exponent = np.where(a < 1 / 0.35, _ratio(_ERFC_NEAR, inverse), _ratio(_ERFC_FAR, inverse))
    head = (a.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    return np.exp(-head * head - 0.5625) * np.exp((head - a) * (head + a) + exponent) / a


def _erf_float64(x: Array) -> Array:
    a = np.abs(x)
    magnitude = _piecewise(
        a,
        1.0,
        (a < 0.84375, lambda a: a + a * _ratio(_ERF_SMALL, a * a)),
        ((a >= 0.84375) & (a < 1.25), lambda a: _ERF_CENTRE + _ratio(_ERF_MIDDLE, a - 1)),
        ((a >= 1.25) & (a < 6), lambda a: 1 - _erfc_tail(a)),
        (np.isnan(a), lambda a: a),
    )
    return np.copysign(magnitude, x)


def _erfc_float64(x: Array) -> Array:
    a = np.abs(x)
    small = a < 0.84375
    middle = (a >= 0.84375) & (a < 1.25)
    tail = (a >= 1.25) & (a < 28)
    return _piecewise(
        x,
        0.0,
        (small & (x < 0.25), lambda x: 1 - (x + x * _ratio(_ERF_SMALL, x * x))),
        (small & (x >= 0.25), lambda x: 0.5 - ((x - 0.5) + x * _ratio(_ERF_SMALL, x * x))),
        (middle & (x > 0), lambda x: (1 - _ERF_CENTRE) - _ratio(_ERF_MIDDLE, x - 1)),
        (middle & (x < 0), lambda x: 1 + (_ERF_CENTRE + _ratio(_ERF_MIDDLE, -x - 1))),
        (tail & (x > 0), _erfc_tail),
        (tail & (x < 0), lambda x: 2 - _erfc_tail(-x)),
        (x <= -28, lambda x: np.full_like(x, 2.0)),
        (np.isnan(x), lambda x: x),
    )


def _lgamma_near_minimum(x: Array) -> Array:
    y = x - _LGAMMA_MINIMUM_AT
    return _LGAMMA_MINIMUM[0] + (_LGAMMA_MINIMUM[1] + y * y * _polynomial(_LGAMMA_AROUND_MINIMUM, y))


def _lgamma_one_to_two(x: Array) -> Array:
    """lgamma on [0.9, 2], accurate around its zeros 1 and 2."""
    above, below = x - 1, 2 - x
    return np.where(
        x < 1.23164,
        above * _ratio(_LGAMMA_ONE, above) - 0.5 * above,
        np.where(x < 1.73163, _lgamma_near_minimum(x), below * _polynomial(_LGAMMA_BELOW_TWO, below) - 0.5 * below),
    )


def _lgamma_below_one(x: Array) -> Array:
    """lgamma(x) = lgamma(x + 1) - log(x), with x + 1 never rounded: each formula is in terms of its own
    offset.
    """
    minimum = x - (_LGAMMA_MINIMUM_AT - 1)
    below = 1 - x
    around = _LGAMMA_MINIMUM[0] + (
        _LGAMMA_MINIMUM[1] + minimum * minimum * _polynomial(_LGAMMA_AROUND_MINIMUM, minimum)
    )
    near_two = below * _polynomial(_LGAMMA_BELOW_TWO, below) - 0.5 * below
    near_one = x * _ratio(_LGAMMA_ONE, x) - 0.5 * x
    return np.where(x < 0.23164, near_one, np.where(x < 0.73163, around, near_two)) - np.log(x)


def _lgamma_two_to_eight(x: Array) -> Array:
    whole = np.floor(x)
    s = x - whole
    factor = np.ones_like(x)
    for k in range(2, 7):  # lgamma(1 + t) = log(t) + lgamma(t)
        factor = np.where(whole > k, factor * (s + k), factor)
    result: Array = 0.5 * s + s * _ratio(_LGAMMA_TWO, s) + np.log(factor)
    return result


def _lgamma_stirling(x: Array) -> Array:
    inverse = 1 / x
    series = _LGAMMA_STIRLING_CONSTANT + inverse * _polynomial(_LGAMMA_STIRLING, inverse * inverse)
    result: Array = (x - 0.5) * (np.log(x) - 1) + series
    return result


def _lgamma_positive(x: Array) -> Array:
    return _piecewise(
        x,
        np.inf,
        ((x > 0) & (x < 0.9), _lgamma_below_one),
        ((x >= 0.9) & (x < 2), _lgamma_one_to_two),
        ((x >= 2) & (x < 8), _lgamma_two_to_eight),
        ((x >= 8) & (x < np.inf), _lgamma_stirling),
        (np.isnan(x), lambda x: x),
    )


def _sin_pi(x: Array) -> Array:
    """sin(pi x) with the argument reduced exactly, so that whole numbers give zero."""
    reduced = x - 2 * np.round(x / 2)  # in [-1, 1]
    folded = np.where(np.abs(reduced) > 0.5, np.copysign(1, reduced) - reduced, reduced)
    return np.sin(np.pi * folded)


def _lgamma_float64(x: Array) -> Array:
    """log |gamma(x)|; negative arguments by reflection (poles give +inf)."""
    positive = _lgamma_positive(np.abs(x))
    sine = np.abs(_sin_pi(x))
    reflected = np.log(np.pi / sine) - np.log(np.abs(x)) - positive
    negative = np.where(sine == 0, np.inf, np.where(x > -1e-30, positive, reflected))
    return np.where((x < 0) & np.isfinite(x), negative, positive) + 0.0  # not -0


def _digamma_positive(x: Array) -> Array:
    shift = np.zeros_like(x)
    for _ in range(10):  # digamma(x) = digamma(x + 1) - 1/x until the series converges
        small = x < 10
        shift = np.where(small, shift + 1 / x, shift)
        x = np.where(small, x + 1, x)
    inverse = 1 / (x * x)
    return np.log(x) - 0.5 / x - inverse * _polynomial(_DIGAMMA_SERIES, inverse) - shift


def _digamma_float64(x: Array) -> Array:
    """The derivative of lgamma: at zero an infinity of the opposite sign, at negative whole numbers NaN."""
    reflected = x < 0
    value = _digamma_positive(np.where(reflected, 1 - x, np.where(x == 0, 1, x)))
    fraction = x - np.round(x)
    value = np.where(reflected, value - np.pi / np.tan(np.pi * fraction), value)
    value = np.where(reflected & (fraction == 0), np.nan, value)
    return np.where(x == 0, -np.copysign(np.inf, x), np.where(x == -np.inf, np.nan, value))


erf = kernel("erf")(_in_float64(_erf_float64))
erfc = kernel("erfc")(_in_float64(_erfc_float64))
lgamma = kernel("lgamma")(_in_float64(_lgamma_float64))
digamma = kernel("digamma")(_in_float64(_digamma_float64))


@kernel("erfinv")
@ieee
def erfinv(x: Array) -> Array:
    """The inverse of erf by Giles' polynomials in a fixed order of operations; narrow floats through float32."""
    _check_real(x)
    return round_narrow(fixed_erfinv(widen(x)), x.dtype)
