"""How a length is taken apart: into the radices of passes, or into two lengths."""

from __future__ import annotations

from functools import cache
from math import isqrt, prod

#: Composite radices whose butterflies fit into registers, or nearly so: larger ones were measured to be slower. Primes
#: up to 61 are several times faster than convolutions, and take half the time of a library; larger ones are long code.
RADICES = (61, 59, 53, 47, 43, 41, 37, 31, 29, 23, 19, 17, 13, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)
#: The side of square lines that are transformed in registers. Lines of 16 x 16 do not fit there: they take twice the
#: time of two steps.
_SIDE = 8
#: What loads, stores and twiddle factors of a pass cost each number, in vector instructions.
_PASS = 12.0
#: The longest lines that are convolved: the tables are part of the code; libraries are faster where they are longer.
LONGEST_CONVOLVED = 1 << 14


@cache
def radices(n: int) -> tuple[int, ...]:
    """The radices of the cheapest passes for a length, larger ones first. Raises ValueError for prime factors above
    61."""
    found = _cheapest(n)
    if found is None:
        raise ValueError(f"a length of {n} has a prime factor above 61")
    return tuple(sorted(found[1], reverse=True)) or (1,)


def has_radices(n: int) -> bool:
    """Whether there are passes for a length."""
    return _cheapest(n) is not None


def cost(n: int) -> float:
    """Vector instructions for each number of a line of a length that has passes."""
    found = _cheapest(n)
    assert found is not None
    return found[0]


@cache
def _cheapest(n: int) -> tuple[float, tuple[int, ...]] | None:
    if n == 1:
        return 0.0, ()
    found: tuple[float, tuple[int, ...]] | None = None
    for radix in RADICES:
        rest = _cheapest(n // radix) if n % radix == 0 else None
        if rest is not None:
            cost = rest[0] + _PASS + _operations(radix) / radix
            if found is None or cost < found[0]:
                found = cost, (radix, *rest[1])
    return found


@cache
def _operations(n: int) -> int:
    """Vector instructions of a butterfly."""
    if n in (1, 2, 4):
        return {1: 0, 2: 4, 4: 16}[n]
    first = 4 if n % 4 == 0 else next(p for p in range(2, n + 1) if n % p == 0)
    if first == n:
        half = n // 2
        return 6 * half + half * (4 * half + 4)
    second = n // first
    return second * _operations(first) + first * _operations(second) + 4 * (first - 1) * (second - 1)


@cache
def split(n: int, lanes: int, longest: int) -> tuple[int, int] | None:
    """Two factors of at most ``longest`` whose transforms make that of ``n``, the first not the larger: those that fill
    vectors of ``lanes`` best, and of such the nearest to each other. None where there are none from 4 on."""
    pairs = [(i, n // i) for i in range(4, isqrt(n) + 1) if n % i == 0 and n // i <= longest]
    return min(reversed(pairs), key=lambda pair: lane_usage(pair, lanes), default=None)


@cache
def two_factors(n: int, lanes: int, longest: int) -> tuple[int, int] | None:
    """Two factors, whole vectors of ``lanes``, of the length from ``2 n - 1`` on that is cheapest to convolve lines of
    ``n`` with: see `convolution`. None for lines that are too long."""
    if n > LONGEST_CONVOLVED:
        return None
    least, most = -(-(2 * n - 1) // lanes), 1 << (2 * n - 2).bit_length()
    sides = [side for side in range(lanes, min(longest, most) + 1, lanes) if has_radices(side)]
    pairs = [(a, b) for a in sides for b in sides if a <= b and least * lanes <= a * b <= max(most, lanes * lanes)]
    return min(pairs, key=lambda pair: (prod(pair) * (cost(pair[0]) + cost(pair[1])), pair[1]), default=None)


def lane_usage(pair: tuple[int, int], lanes: int) -> float:
    """How many times the lanes that two steps of a transform need they take."""
    found = 1.0
    for count in pair:
        width = min(lanes, 1 << (count.bit_length() - 1))
        found *= -(-count // width) * lanes / count
    return found


def fits_square(n: int, lines: int, lanes: int) -> bool:
    """Whether lines of ``n`` numbers are squares whose rows are vectors of ``lanes``, or equal parts of such that are
    filled by ``lines``."""
    return n == _SIDE * _SIDE and lanes >= _SIDE and lines >= lanes // _SIDE
