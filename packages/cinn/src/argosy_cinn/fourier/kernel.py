"""What a step of a Fourier transform is to a plan: lines of a buffer, transformed into lines of another one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt, log2, prod

from argosy_cinn.fourier.factors import fits_square
from argosy_cinn.shapes import count
from argosy_pir.core import Operation
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

#: Numbers that a chunk should at least have: some ten microseconds of work.
_CHUNK_NUMBERS = 1 << 14
_MOST_CHUNKS = 512
#: Bytes of a cache line.
_LINE = 64
#: Vector instructions for each element and doubling of a length, roughly.
_WORK = 5


@dataclass(slots=True)
class FourierKernel:
    """Transforms of ``outers`` times ``lanes`` lines.

    The number at a position of a line is ``outer * source[0] + lane * source[1] + position * source[2]`` elements into
    the source's buffer, and likewise into the target's. ``kind``: c2c, r2c or c2r; ``length`` is that of the complex or
    real line. ``inverse`` is the sign of the exponent. ``turn``, where it is not 0, is the length of a longer transform
    that this is the first step of: number ``k`` of lane ``j`` is multiplied with its root to the ``j k``.
    """

    source: Value
    target: Value
    outers: int
    lanes: int
    length: int
    source_steps: tuple[int, int, int]
    target_steps: tuple[int, int, int]
    kind: str
    inverse: bool
    scale: float
    turn: int
    pieces: tuple[int, ...] = ()
    """The two lengths that each line, which lies in one piece, is taken apart into and transformed by; where their
    product is longer than the line, those of a convolution."""
    streaming: bool = False
    """Whether the target is too large for the caches to keep."""

    @property
    def real(self) -> str:
        """The dtype of its arithmetic."""
        wide = self.source.dtype in ("complex128", "float64")
        return "float64" if wide else "float32"

    def width(self, most: int) -> int:
        """How many lines are transformed side by side: a power of two, ``most`` or what there are."""
        found = 1
        while found * 2 <= min(most, self.lanes):
            found *= 2
        return found

    @property
    def is_convolution(self) -> bool:
        """Whether lines are convolved with a chirp, see `convolution`."""
        return bool(self.pieces) and prod(self.pieces) != self.length

    def is_square(self, most: int) -> bool:
        """Whether lines are transformed in registers of ``most`` lanes, see `squares`."""
        plain = self.kind == "c2c" and not self.turn and not self.pieces
        return (
            plain and self.source_steps[2] == self.target_steps[2] == 1 and fits_square(self.length, self.lanes, most)
        )

    def beside(self, most: int) -> int:
        """Lines of a group."""
        if self.pieces:
            return 1
        return most // isqrt(self.length) if self.is_square(most) else self.width(most)

    def groups(self, most: int) -> int:
        """Groups of lines that are transformed side by side; the last of each outer index may overlap another. Lines
        that are taken apart are groups of their own."""
        return self.outers * -(-self.lanes // self.beside(most))

    def chunk_groups(self, most: int) -> int:
        """Groups of a chunk."""
        least = -(-_CHUNK_NUMBERS // (self.length * self.beside(most)))
        return max(-(-self.groups(most) // _MOST_CHUNKS), least)

    def chunks(self, most: int) -> int:
        """Chunks of groups."""
        return -(-self.groups(most) // self.chunk_groups(most))

    def steps(self) -> tuple[FourierKernel, FourierKernel]:
        """The steps of one line in pieces: down its columns, and along its rows to columns (Gentleman and Sande,
        1966)."""
        rows, columns = self.pieces
        far = self.streaming and self.target_steps[1] * ITEM_SIZES[self.target.dtype] % _LINE == 0
        first = replace(
            self, lanes=columns, length=rows, source_steps=(0, 1, columns), target_steps=(0, 1, columns), scale=1.0,
            turn=self.length, pieces=(), streaming=False,
        )  # fmt: skip
        second = replace(
            self, lanes=rows, length=columns, source_steps=(0, columns, 1), target_steps=(0, 1, rows), pieces=(),
            streaming=far,
        )  # fmt: skip
        return first, second

    def slots(self) -> dict[Value, int]:
        """The place of each buffer in the kernel's table."""
        return {self.source: 0, self.target: 1}

    def text(self) -> str:
        """What the code depends on."""
        steps = f"{self.source_steps} {self.target_steps}"
        bytes_read = count(self.source) * ITEM_SIZES[self.source.dtype]
        lines = f"{bytes_read} {self.outers} {self.lanes} {self.length} {steps} {self.turn}"
        return f"fourier {self.kind} {self.real} {lines} {self.pieces} {self.inverse} {self.scale!r} {self.streaming}"

    def summary(self) -> str:
        """A line for `explain`."""
        sign = "inverse " if self.inverse else ""
        return f"{sign}Fourier transform ({self.kind}) of {self.outers * self.lanes} lines of {self.length}"

    def work(self) -> tuple[int, int, int]:
        """Bytes read and written, and operations."""
        transformed = 2 * prod(self.pieces) if self.is_convolution else self.length
        cells = self.outers * self.lanes * transformed
        read, written = (count(v) * ITEM_SIZES[v.dtype] for v in (self.source, self.target))
        return read, written, round(_WORK * cells * log2(max(self.length, 2)))


def lower_fourier(op: Operation) -> FourierKernel:
    """The kernel of a ``cinn.fourier``."""
    a = op.attributes
    return FourierKernel(
        op.operand(0), op.result, a["outers"], a["lanes"], a["length"], tuple(a["source"]), tuple(a["target"]),
        a["kind"], a["inverse"], a["scale"], a["turn"], tuple(a["pieces"]),
    )  # fmt: skip
