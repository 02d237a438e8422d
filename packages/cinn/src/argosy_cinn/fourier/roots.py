"""Roots of unity, rounded once from more digits than float64 has where the machine has such."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

_WIDE = np.longdouble
_TWO_PI = 2 * np.arctan2(_WIDE(0), _WIDE(-1))


@lru_cache(1024)
def root(k: int, n: int) -> complex:
    """``exp(-2 pi i k / n)``."""
    return complex(roots(np.array([k]), n)[0])


def roots(k: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """``exp(-2 pi i k / n)`` of integers ``k`` as complex128: angles of at most an eighth of a turn have sine and
    cosine taken, others are reflected."""
    turn = 8 * (k.astype(np.int64) % n)  # in units of 1 / 8 n of a turn
    eighth, rest = turn // n, turn % n
    small = np.where(eighth % 2 == 0, rest, n - rest)
    angle = _TWO_PI * small.astype(_WIDE) / (8 * n)
    cosine, sine = np.cos(angle).astype(np.float64), np.sin(angle).astype(np.float64)
    swapped = (eighth % 4 == 1) | (eighth % 4 == 2)
    x, y = np.where(swapped, sine, cosine), np.where(swapped, cosine, sine)
    x = np.where((eighth >= 2) & (eighth < 6), -x, x)
    y = np.where(eighth < 4, -y, y)
    found: np.ndarray[Any, Any] = x + 1j * y
    return found


def chirps(n: int, length: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The factors ``exp(-pi i k^2 / n)``, and the transform of their conjugates around 0 over ``length``."""
    k = np.arange(n, dtype=np.int64)
    chirp = roots(k * k % (2 * n), 2 * n)
    around = np.zeros(length, np.complex128)
    around[:n] = chirp.conj()
    around[length - n + 1 :] = chirp[1:].conj()[::-1]
    return chirp, np.fft.fft(around) / length
