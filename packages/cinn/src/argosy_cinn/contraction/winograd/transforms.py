"""The transforms of the minimal filtering algorithm F(4x4, 3x3): four by four places of a correlation with three by
three taps from 36 multiplications instead of 144 (Winograd, 1980; Lavin and Gray, 2016).

A tile d of 6 x 6 elements of an image, and taps g: ``y = A' [(G g G') * (B' d B)] A``. Polynomials are evaluated at 0,
+-1/sqrt(2), +-sqrt(2) and infinity, which loses least (Vincent et al., 2017; Barabasz et al., 2020). For operands of
normal distribution an output's error is about twice that of a plain sum in the mean square (2.4 times with 16 channels,
1.7 with 512); in the worst case ``|error| <= 189 * (channels + 40) * u * sum |g| * max |d|`` (sum over the taps of all
channels, maximum over the tile, u = 2**-24), where a plain sum has ``9 * channels`` for the first two factors. An
element that is infinite or NaN makes no place of its tiles finite: `plain` sums these again.

The same numbers transposed give gradients of the taps, as sums over tiles: ``G' [(A dy A') * (B' d B)] G``. There an
element that is infinite or NaN makes all nine taps of its channel (of its filter, in ``dy``) NaN.

Each function emits one transform on vectors whose lanes are independent, along one axis: two make it two-dimensional.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import Value, lanes_of

#: Elements of a tile of the image, of the result, and taps, along an axis.
SEEN, MADE, TAPS = 6, 4, 3
_ROOT = 2**0.5


def of_image(f: Function, d: Sequence[Value]) -> list[Value]:
    """``B' d``: six elements as six factors."""
    even, odd = f.fma(d[2], -2.0, d[4]), f.fma(d[1], -_ROOT, f.fmul(d[3], _ROOT / 2))
    low, high = f.fma(d[2], -0.5, d[4]), f.fma(d[1], -_ROOT / 2, f.fmul(d[3], _ROOT))
    ends = f.fma(d[2], -2.5, f.fadd(d[0], d[4])), f.fma(d[3], -2.5, f.fadd(d[1], d[5]))
    return [ends[0], f.fadd(even, odd), f.fsub(even, odd), f.fadd(low, high), f.fsub(low, high), ends[1]]


def of_taps(f: Function, g: Sequence[Value]) -> list[Value]:
    """``G g``: three taps as six factors."""
    even, odd = f.fma(g[2], -1 / 3, f.fmul(g[0], -2 / 3)), f.fmul(g[1], _ROOT / 3)
    low, high = f.fma(g[2], 1 / 3, f.fmul(g[0], 1 / 6)), f.fmul(g[1], _ROOT / 6)
    return [g[0], f.fsub(even, odd), f.fadd(even, odd), f.fadd(low, high), f.fsub(low, high), g[2]]


def of_products(f: Function, m: Sequence[Value]) -> list[Value]:
    """``A' m``: six products as four places of the result."""
    near, far = f.fadd(m[1], m[2]), f.fadd(m[3], m[4])
    turned, beyond = f.fsub(m[1], m[2]), f.fsub(m[3], m[4])
    return [
        f.fadd(m[0], f.fadd(near, far)),
        f.fma(beyond, _ROOT, f.fmul(turned, _ROOT / 2)),
        f.fma(far, 2.0, f.fmul(near, 0.5)),
        f.fadd(f.fma(beyond, 2 * _ROOT, f.fmul(turned, _ROOT / 4)), m[5]),
    ]


def of_gradient(f: Function, y: Sequence[Value]) -> list[Value]:
    """``A y``: four elements of the result's gradient as six factors."""
    even, odd = f.fma(y[2], 0.5, y[0]), f.fma(y[3], _ROOT / 4, f.fmul(y[1], _ROOT / 2))
    low, high = f.fma(y[2], 2.0, y[0]), f.fma(y[3], 2 * _ROOT, f.fmul(y[1], _ROOT))
    return [y[0], f.fadd(even, odd), f.fsub(even, odd), f.fadd(low, high), f.fsub(low, high), y[3]]


def as_taps(f: Function, m: Sequence[Value]) -> list[Value]:
    """``G' m``: six products as the gradients of three taps."""
    near, far = f.fadd(m[1], m[2]), f.fadd(m[3], m[4])
    turned, beyond = f.fsub(m[2], m[1]), f.fsub(m[3], m[4])
    return [
        f.fma(far, 1 / 6, f.fma(near, -2 / 3, m[0])),
        f.fma(beyond, _ROOT / 6, f.fmul(turned, _ROOT / 3)),
        f.fma(f.fsub(far, near), 1 / 3, m[5]),
    ]


def every_fourth(f: Function, parts: Sequence[Value], count: int = MADE) -> list[Value]:
    """The elements 4 t, 4 t + 1, ... of four vectors on end, as ``count`` (2 or 4) vectors of them."""
    lanes = lanes_of(parts[0].type)
    half, found = lanes // 2, []
    for first in range(0, count, 2):
        picks = [MADE * t + first + j for j in (0, 1) for t in range(half)]
        low, high = f.shuffle(parts[0], parts[1], picks), f.shuffle(parts[2], parts[3], picks)
        found += [f.shuffle(low, high, [*range(s, s + half), *range(lanes + s, lanes + s + half)]) for s in (0, half)]
    return found


def side_by_side(f: Function, y: Sequence[Value]) -> list[Value]:
    """The inverse of `every_fourth`: lanes of four vectors in turn, as four vectors on end."""
    lanes = lanes_of(y[0].type)
    half, found = lanes // 2, []
    for start in (0, half):
        picks = [i for t in range(start, start + half) for i in (t, lanes + t)]
        pairs = f.shuffle(y[0], y[1], picks), f.shuffle(y[2], y[3], picks)
        for quarter in (0, half):
            turn = [i for t in range(quarter, quarter + half, 2) for i in (t, t + 1, lanes + t, lanes + t + 1)]
            found.append(f.shuffle(*pairs, turn))
    return found
