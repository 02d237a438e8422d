"""Interpolation of symbolic sizes: the tables of :mod:`.interpolation` as values of the program."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from argosy_phi_ops import prim

_FINEST = 10**4  # denominators of scale factors beyond this have no size that a formula gives


def scale_places(size: Any, factor: float) -> Any:
    """``int(size * factor)`` of a symbolic size; ``NotImplementedError`` for factors that are no short fraction."""
    fraction = Fraction(factor).limit_denominator(_FINEST)
    if abs(fraction - Fraction(factor)) > 1e-12 * abs(factor):
        raise NotImplementedError(f"interpolate: scale_factor {factor} of an axis of symbolic size is not implemented")
    return size * fraction.numerator // fraction.denominator


def number_of(size: Any, dtype: str = "float64") -> Any:
    """A size as a 0-D value."""
    return prim.dim_size(dim=size, dtype=dtype)


@dataclass(frozen=True)
class OpenWay:
    """How an axis of ``n`` pixels becomes one of ``outputs``, either of which may be symbolic: weights [outputs, n]."""

    n: Any
    outputs: Any
    factor: float | None
    align_corners: bool
    half_pixel: bool
    first_pixel: bool = False

    @property
    def step(self) -> Any:
        """How far the places that neighbouring outputs look at are apart; 0 for one output that looks at the first."""
        n, outputs = number_of(self.n), number_of(self.outputs)
        if not self.align_corners:
            step = prim.div(n, outputs) if self.factor is None else 1 / self.factor
            if not self.first_pixel:
                return step
            several = prim.cast(prim.gt(outputs, 1.0), dtype="float64")
            return prim.mul(several, step)
        gaps = prim.maximum(prim.sub(outputs, 1.0), 1.0)
        return prim.select(prim.gt(outputs, 1.0), prim.div(prim.sub(n, 1.0), gaps), 0.0)

    def places(self, half_pixel: bool) -> Any:
        """Where each output looks, along [outputs]."""
        i = prim.iota(shape=(self.outputs,), axis=0, dtype="float64")
        step = prim.broadcast_to(self.step, (self.outputs,)) if not isinstance(self.step, float) else self.step
        return prim.sub(prim.mul(prim.add(i, 0.5), step), 0.5) if half_pixel else prim.mul(i, step)

    def spread_axis(self, axis: int, values: Any = None) -> Any:
        """``values`` (the indices by default) of an axis of the table, spread over it."""
        shape = (self.outputs, self.n)
        if values is None:
            return prim.iota(shape=shape, axis=axis, dtype="float64")
        return prim.broadcast(values, shape=shape, axes=(axis,))

    def clamp_places(self, place: Any) -> Any:
        """Places moved to the nearest pixel's."""
        return prim.minimum(prim.maximum(place, 0.0), prim.sub(number_of(self.n), 1.0))

    def nearest(self) -> Any:
        """The index that each output takes, [outputs]."""
        place = prim.add(self.places(False), 0.5) if self.align_corners else self.places(False)
        return prim.cast(self.clamp_places(prim.floor(place)), dtype="int64")

    def linear(self) -> Any:
        """The two neighbours of the place, in proportion."""
        places = self.clamp_places(self.places(not self.align_corners and self.half_pixel))
        distance = prim.abs(prim.sub(self.spread_axis(0, places), self.spread_axis(1)))
        return prim.maximum(prim.sub(1.0, distance), 0.0)

    def cubic(self) -> Any:
        """The four neighbours of the place by cubic convolution (Keys, 1981); beyond the edges the pixels go on."""
        places = self.places(not self.align_corners)
        total: Any = None
        for offset in range(-1, 3):
            at = prim.add(prim.floor(places), float(offset))
            share = self.spread_axis(0, _keys(prim.abs(prim.sub(places, at))))
            part = prim.select(prim.eq(self.spread_axis(0, self.clamp_places(at)), self.spread_axis(1)), share, 0.0)
            total = part if total is None else prim.add(total, part)
        return total

    def area(self) -> Any:
        """Means over the pixels that an output covers."""
        i = prim.iota(shape=(self.outputs,), axis=0, dtype="int64")
        n, outputs = number_of(self.n, "int64"), number_of(self.outputs, "int64")
        low = prim.floor_div(prim.mul(i, n), outputs)
        high = prim.neg(prim.floor_div(prim.neg(prim.mul(prim.add(i, 1), n)), outputs))
        low, high = (prim.cast(v, dtype="float64") for v in (low, high))
        pixel = self.spread_axis(1)
        inside = prim.logical_and(prim.le(self.spread_axis(0, low), pixel), prim.lt(pixel, self.spread_axis(0, high)))
        return prim.div(prim.cast(inside, dtype="float64"), self.spread_axis(0, prim.sub(high, low)))


def _keys(distance: Any, a: float = -0.75) -> Any:
    near = prim.add(prim.mul(prim.mul(prim.sub(prim.mul(distance, a + 2), a + 3), distance), distance), 1.0)
    far = prim.mul(prim.add(prim.mul(prim.sub(distance, 5.0), distance), 8.0), prim.mul(distance, a))
    far = prim.select(prim.lt(distance, 2.0), prim.sub(far, 4 * a), 0.0)
    return prim.select(prim.le(distance, 1.0), near, far)
