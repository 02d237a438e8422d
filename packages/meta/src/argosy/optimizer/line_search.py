"""A step length that meets the strong Wolfe conditions (Nocedal and Wright, 2006, algorithms 3.5 and 3.6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["strong_wolfe"]

Vector = np.ndarray[Any, Any]
Point = tuple[float, float, float, Vector]
"""Length, value, slope along the direction, gradient."""


def _cubic(a: Point, b: Point, low: float, high: float) -> float:
    """The minimum of the cubic through values and slopes at two lengths, within [low, high]."""
    if a[0] > b[0]:
        a, b = b, a
    d1 = a[2] + b[2] - 3 * (a[1] - b[1]) / (a[0] - b[0])
    square = d1 * d1 - a[2] * b[2]
    if square < 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    found = b[0] - (b[0] - a[0]) * ((b[2] + d2 - d1) / (b[2] - a[2] + 2 * d2))
    return min(max(found, low), high)


def strong_wolfe(
    at: Callable[[float], tuple[float, Vector]],
    direction: Vector,
    length: float,
    value: float,
    gradient: Vector,
    slope: float,
    tolerance: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    limit: int = 25,
) -> tuple[float, Vector, float]:
    """(value, gradient, length) where the value has fallen by ``c1`` of the slope and the slope to ``c2`` of it.

    ``at(length)`` gives value and gradient; ``value``, ``gradient`` and ``slope`` are those at length 0. After
    ``limit`` evaluations the best length so far is taken.
    """
    reach = float(np.abs(direction).max())

    def point(t: float) -> Point:
        v, g = at(t)
        return t, v, float(g @ direction), g

    origin: Point = (0.0, value, slope, gradient)
    before, now = origin, point(length)
    count, bracket = 1, None
    while count < limit:
        if now[1] > value + c1 * now[0] * slope or (count > 1 and now[1] >= before[1]):
            bracket = [before, now]
            break
        if abs(now[2]) <= -c2 * slope:
            return now[1], now[3], now[0]
        if now[2] >= 0:
            bracket = [before, now]
            break
        low, high = now[0] + 0.01 * (now[0] - before[0]), now[0] * 10
        before, now = now, point(_cubic(before, now, low, high))
        count += 1
    if bracket is None:
        bracket = [origin, now]
    return _zoom(point, bracket, origin, (c1, c2), limit - count, tolerance / reach if reach else 0.0)


def _zoom(
    point: Callable[[float], Point],
    bracket: list[Point],
    origin: Point,
    c: tuple[float, float],
    limit: int,
    least: float,
) -> tuple[float, Vector, float]:
    """Narrow ``bracket``, which holds a length that meets the conditions, until one is found."""
    _, value, slope, _ = origin
    stuck = False
    best, other = sorted(bracket, key=lambda p: p[1])
    for _ in range(limit):
        low, high = sorted((best[0], other[0]))
        if high - low <= least:
            break
        t = _cubic(best, other, low, high)
        margin = 0.1 * (high - low)
        if min(high - t, t - low) < margin:  # too near an end twice in a row: move inside
            if stuck or t in (low, high):
                t = high - margin if abs(t - high) < abs(t - low) else low + margin
            stuck = not stuck
        else:
            stuck = False
        new = point(t)
        if new[1] > value + c[0] * t * slope or new[1] >= best[1]:
            other = new
        else:
            if abs(new[2]) <= -c[1] * slope:
                return new[1], new[3], new[0]
            if new[2] * (other[0] - best[0]) >= 0:
                other = best
            best = new
    return best[1], best[3], best[0]
