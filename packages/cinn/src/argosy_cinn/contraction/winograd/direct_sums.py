"""Plain sums for places where minimal filtering gives no finite number.

Transforms mix the elements of a tile: one that is infinite or NaN, or so large that a factor overflows, would make all
places of its tile NaN, where a plain sum has that only where a tap sees it. What depends on such an element is never
finite, so that it is enough to look at results: those are made again here, as one chain of multiply-adds in the order
of a plain product. It is a short loop and not a fast one, run for numbers that hardly any program is fast for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from argosy_cinn.contraction.winograd.blocking import Images
from argosy_cinn.contraction.winograd.transforms import TAPS
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import FLOAT, I32, Index, Value, vector


def not_finite(f: Function, value: Value) -> Value:
    """The lanes that are infinite or NaN."""
    return f.fcmp("ueq", f.unary("fabs", value), f.number_in(value.type, math.inf))


@dataclass(frozen=True, slots=True)
class Line:
    """Places of a line of the result: where they lie, their image, row and first column, and how many they are."""

    place: Value
    image: Value
    row: Index
    column: Index
    count: Index


@dataclass(frozen=True, slots=True)
class PlainSums:
    """Plain sums over what a window of 3 x 3 sees of the images ``seen``, for vectors of ``lanes`` places."""

    seen: Images
    lanes: int

    def mend(self, b: Function, line: Line, taps: tuple[Value, Index]) -> None:
        """Emit the call of a function that replaces what is not finite in a line; one serves all filters.

        ``taps``: those of a filter, and how many elements they are apart.
        """
        parameters = [("ptr noalias", "line"), ("ptr readonly", "image"), ("ptr readonly", "taps"),
                      ("i64", "row"), ("i64", "column"), ("i64", "count"), ("i64", "step")]  # fmt: skip

        def define(name: str) -> None:
            with b.module.function(name, parameters, export=False, attributes="noinline cold") as f:
                out, image, first, row, column, count, step = f.arguments
                with f.loop(0, count, self.lanes) as x:
                    mask, place = f.tail_mask(f.sub(count, x.index), self.lanes), f.gep(out, x.index)
                    old = f.masked_load(vector(FLOAT, self.lanes), place, mask)
                    new = self._sums(f, image, row, f.add(column, x.index), (first, step))
                    f.masked_store(new, place, f.binary("and", mask, not_finite(f, old)))

        name = b.module.shared_function(("winograd plain", self), "winograd_plain", define)
        numbers = map(b.index, (line.row, line.column, line.count, taps[1]))
        b.call(name, "void", line.place, line.image, taps[0], *numbers)

    def _sums(self, f: Function, image: Value, row: Index, column: Index, taps: tuple[Value, Index]) -> Value:
        """A vector of places of the result's ``row``, from ``column`` on."""
        seen, type = self.seen, vector(FLOAT, self.lanes)
        (first_row, height), (first_column, width) = seen.bounds
        columns = f.binary(
            "add", f.splat(f.convert("trunc", f.index(column), I32), self.lanes), f.iota(I32, self.lanes)
        )
        corner = f.gep(image, f.add(f.mul(row, seen.steps[2]), column))
        with f.loop(0, seen.channels, carry=[f.zero(type)]) as channel:
            (total,) = channel.carry
            source = f.gep(corner, f.mul(channel.index, seen.steps[0]))
            for i in range(TAPS):
                exists = f.icmp("ult", f.index(f.add(f.add(row, i), first_row)), height)
                for j in range(TAPS):
                    inside = f.icmp("ult", f.binary("add", columns, first_column + j), width)
                    mask = f.select(exists, inside, f.zero(inside.type))
                    element = f.masked_load(type, f.gep(source, f.add(f.mul(i, seen.steps[2]), j)), mask)
                    number = f.add(f.mul(channel.index, TAPS * TAPS), i * TAPS + j)
                    tap = f.load(FLOAT, f.gep(taps[0], f.mul(number, taps[1])))
                    total = f.fma(element, f.splat(tap, self.lanes), total)
            channel.yield_values(total)
        return channel.results[0]
