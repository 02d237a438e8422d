"""Reading symbolic sizes: sums, products, ``//``, ``%``, ``min`` and ``max`` over integers and symbols."""

from __future__ import annotations

from re import ASCII
from re import compile as compile_pattern

from argosy_pir.dims import SymExpr, floor_div, maximum, minimum, modulo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argosy_pir.dims import Dim

MAX_DEPTH = 40
MAX_SIZE = 1 << 63
_TOKEN = compile_pattern(r"\s*+(//|[A-Za-z_]\w*+|\d++|[^\s])", ASCII)


def parse_dim(text: str) -> Dim:
    """The size that ``text`` describes, such as ``"2*s0 + 1"``; raises ``ValueError``."""
    reader = _Reader(_TOKEN.findall(text))
    size = reader.sum(0)
    if reader.tokens[reader.at] or (isinstance(size, int) and abs(size) >= MAX_SIZE):
        raise ValueError(f"{text.strip()[:80]!r} is not a size")
    return size


def parse_dims(text: str) -> tuple[Dim, ...]:
    """Sizes separated by commas; raises ``ValueError``."""
    if text.replace(",", "").replace(" ", "").isdecimal():
        sizes: tuple[Dim, ...] = tuple([int(part[:24]) for part in text.split(",")])
    elif not text.strip():
        return ()
    else:
        sizes = _parse_list(text)
    if any(isinstance(size, int) and abs(size) >= MAX_SIZE for size in sizes):
        raise ValueError(f"a size in [{text[:80]}] does not fit 64 bits")
    return sizes


def _parse_list(text: str) -> tuple[Dim, ...]:
    reader = _Reader(_TOKEN.findall(text))
    sizes = [reader.sum(0)]
    while reader.take(","):
        sizes.append(reader.sum(0))
    if reader.tokens[reader.at]:
        raise ValueError(f"unexpected {reader.tokens[reader.at]!r} in the sizes [{text[:80]}]")
    return tuple(sizes)


class _Reader:
    """Recursive descent over the tokens of one list of sizes."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = [*tokens, ""]
        self.at = 0

    def take(self, token: str) -> bool:
        """Step over ``token`` if it is next."""
        if self.tokens[self.at] != token:
            return False
        self.at += 1
        return True

    def sum(self, depth: int) -> Dim:
        """``['-'] product (('+' | '-') product)*``"""
        if depth > MAX_DEPTH:
            raise ValueError("a size is nested too deeply")
        total = -self.product(depth) if self.take("-") else self.product(depth)
        while True:
            if self.take("+"):
                total = total + self.product(depth)
            elif self.take("-"):
                total = total - self.product(depth)
            else:
                return total

    def product(self, depth: int) -> Dim:
        """``atom (('*' | '//' | '%') atom)*``, from left to right"""
        total = self.atom(depth)
        while True:
            if self.take("*"):
                total = total * self.atom(depth)
            elif self.take("//"):
                total = self._divide(total, self.atom(depth))
            elif self.take("%"):
                total = modulo(total, self._nonzero(self.atom(depth)))
            else:
                return total

    def atom(self, depth: int) -> Dim:
        """A number, a symbol, ``min(...)``, ``max(...)``, or a sum in parentheses"""
        token = self.tokens[self.at]
        self.at += 1
        if token.isdecimal() and len(token) < 25:
            return int(token)
        if token == "(":
            inner = self.sum(depth + 1)
            self._close()
            return inner
        if token in ("min", "max"):
            return self._extremum(minimum if token == "min" else maximum, depth)
        if token.isidentifier():
            return SymExpr.symbol(token)
        self.at = min(self.at, len(self.tokens) - 1)
        raise ValueError(f"expected a size, found {token[:24]!r}" if token else "expected a size")

    def _extremum(self, combine: object, depth: int) -> Dim:
        assert callable(combine)
        if not self.take("("):
            raise ValueError("min and max need parentheses")
        total = self.sum(depth + 1)
        while self.take(","):
            total = combine(total, self.sum(depth + 1))
        self._close()
        return total

    def _close(self) -> None:
        if not self.take(")"):
            raise ValueError("a parenthesis in a size is not closed")

    def _divide(self, a: Dim, b: Dim) -> Dim:
        return floor_div(a, self._nonzero(b))

    def _nonzero(self, b: Dim) -> Dim:
        if isinstance(b, int) and b == 0:
            raise ValueError("a size is divided by zero")
        return b
