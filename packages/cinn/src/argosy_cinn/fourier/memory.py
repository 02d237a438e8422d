"""Where complex numbers are while lines are transformed: a number of every line is a pair of vectors.

Each place loads and stores the number at a position along the lines. In scratch memory the parts lie behind each other;
in tensors neighbouring lines lie beside each other, and parts alternate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from argosy_cinn.fourier.butterfly import Number, multiply_numbers
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import Index, Value, bytes_of, vector

#: Bytes of a cache line.
LINE = 64
#: Lines that are asked for go to the second cache: with long strides, few sets of the first one would have them all.
_LEVEL = 2


class Place(Protocol):
    """Numbers along lines."""

    def load(self, b: Function, position: Index) -> Number:
        """The number at a position."""

    def store(self, b: Function, position: Index, number: Number) -> None:
        """Write the number at a position."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory of its own, aligned to whole vectors."""

    base: Value
    element: str
    lanes: int

    def load(self, b: Function, position: Index) -> Number:
        """The number at a position."""
        type, align = vector(self.element, self.lanes), self.lanes * bytes_of(self.element)
        first = b.gep(self.base, b.mul(position, 2 * self.lanes), self.element)
        return b.load(type, first, align), b.load(type, b.gep(first, self.lanes, self.element), align)

    def store(self, b: Function, position: Index, number: Number) -> None:
        """Write the number at a position."""
        align = self.lanes * bytes_of(self.element)
        first = b.gep(self.base, b.mul(position, 2 * self.lanes), self.element)
        b.store(number[0], first, align)
        b.store(number[1], b.gep(first, self.lanes, self.element), align)


@dataclass(frozen=True, slots=True)
class Columns:
    """Complex numbers of a tensor whose lines are beside each other, ``step`` numbers from one position to the next.

    ``ahead``: so many positions ahead are asked for early, since no processor guesses long strides; ``streaming``:
    numbers are stored past the caches.
    """

    base: Value
    element: str
    lanes: int
    step: int
    ahead: int = 0
    streaming: bool = False

    def load(self, b: Function, position: Index) -> Number:
        """The number at a position."""
        first, n = b.gep(self.base, b.mul(position, 2 * self.step), self.element), self.lanes
        type = vector(self.element, n)
        if self.ahead:
            ask_for(b, self.base, self.element, b.mul(b.add(position, self.ahead), 2 * self.step), 2 * n)
        low, high = b.load(type, first), b.load(type, b.gep(first, n, self.element))
        if n == 1:
            return low, high
        return b.shuffle(low, high, range(0, 2 * n, 2)), b.shuffle(low, high, range(1, 2 * n, 2))

    def store(self, b: Function, position: Index, number: Number) -> None:
        """Write the number at a position."""
        first, n = b.gep(self.base, b.mul(position, 2 * self.step), self.element), self.lanes
        low, high = number
        if n > 1:
            both = [lane + part for lane in range(n) for part in (0, n)]
            low, high = b.shuffle(*number, both[:n]), b.shuffle(*number, both[n:])
        store_vector(b, low, first, self.streaming)
        store_vector(b, high, b.gep(first, n, self.element), self.streaming)


@dataclass(frozen=True, slots=True)
class RealColumns:
    """Real numbers of such a tensor: two ``paired`` in one complex number, or one without an imaginary part."""

    base: Value
    element: str
    lanes: int
    step: int
    paired: bool
    ahead: int = 0
    streaming: bool = False

    def _places(self, b: Function, position: Index) -> list[Value]:
        first = b.gep(self.base, b.mul(position, self.step * (1 + self.paired)), self.element)
        return [first, b.gep(first, self.step, self.element)] if self.paired else [first]

    def load(self, b: Function, position: Index) -> Number:
        """The number at a position."""
        type = vector(self.element, self.lanes)
        for i in range(1 + self.paired) if self.ahead else ():
            further = b.mul(b.add(position, self.ahead), self.step * (1 + self.paired))
            ask_for(b, self.base, self.element, b.add(further, i * self.step), self.lanes)
        parts = [b.load(type, place) for place in self._places(b, position)]
        return parts[0], parts[1] if self.paired else b.zero(type)

    def store(self, b: Function, position: Index, number: Number) -> None:
        """Write the number at a position."""
        for part, place in zip(number, self._places(b, position), strict=False):
            store_vector(b, part, place, self.streaming)


@dataclass(frozen=True, slots=True)
class ChangedPlace:
    """A place whose numbers are changed on the way in and out."""

    place: Place
    change: Callable[[Function, Number], Number]

    def load(self, b: Function, position: Index) -> Number:
        """The number at a position, changed."""
        return self.change(b, self.place.load(b, position))

    def store(self, b: Function, position: Index, number: Number) -> None:
        """Write the changed number at a position."""
        self.place.store(b, position, self.change(b, number))


@dataclass(frozen=True, slots=True)
class TwiddledPlace:
    """A place whose numbers are multiplied with a root by position as they are stored."""

    place: Place
    root: Callable[[Index], Number]

    def load(self, b: Function, position: Index) -> Number:
        """Twisted numbers are written only."""
        raise NotImplementedError

    def store(self, b: Function, position: Index, number: Number) -> None:
        """Write the product."""
        self.place.store(b, position, multiply_numbers(b, number, self.root(position)))


@dataclass(frozen=True, slots=True)
class Rows:
    """Lines that lie behind each other in memory, ``stride`` elements from one to the next: of complex numbers or pairs
    of real ones (``pairs``), or of single real ones. They are turned in registers, see `passes`. ``ahead``: elements
    that are so far ahead are asked for early."""

    base: Value
    element: str
    lanes: int
    stride: int
    pairs: bool
    ahead: int = 0
    streaming: bool = False


def store_vector(b: Function, value: Value, place: Value, streaming: bool) -> None:
    """Store a vector, past the caches where it is a line of them."""
    b.store(value, place, LINE if streaming else 0, streaming)


def ask_for(b: Function, base: Value, element: str, index: Index, count: int, write: bool = False) -> None:
    """Ask for the cache lines of some elements, to be written or read."""
    for i in range(0, count, LINE // bytes_of(element)):
        b.prefetch(b.gep(base, b.add(index, i), element), write, _LEVEL)


def swap_parts(b: Function, x: Number) -> Number:
    """Parts in the place of each other: a transform between two of these has the other sign."""
    return x[1], x[0]


def conjugate(b: Function, x: Number) -> Number:
    """The conjugate."""
    return x[0], b.fneg(x[1])


def scale_numbers(factor: float) -> Callable[[Function, Number], Number]:
    """Multiplication with a real number."""
    return lambda b, x: (b.fmul(x[0], factor), b.fmul(x[1], factor))
