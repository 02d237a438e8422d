"""Steps of Fourier transforms: lines of a buffer, transformed into lines of another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log2, prod
from typing import Any, ClassVar

from argosy_cinn.forms.form import Form
from argosy_cinn.forms.nest import identifier
from argosy_cinn.shapes import estimate, nbytes
from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

#: Bytes of a cache line.
_LINE = 64
#: Vector instructions for each element and doubling of a length, roughly.
_WORK = 5
#: Bytes that pass the caches, in effect, for each that is overwritten.
_PRESSURE = 8


@dataclass(slots=True)
class FourierForm(Form):
    """Transforms of ``outers`` times ``lanes`` lines.

    The number at a position of a line is ``outer * source[0] + lane * source[1] + position * source[2]`` elements into
    the source's buffer, and likewise into the target's. ``transform``: c2c, r2c or c2r; ``length`` is that of the
    complex or real line. ``inverse`` is the sign of the exponent. ``turn``, where it is not 0, is the length of a
    longer transform that this is the first step of: number ``k`` of lane ``j`` is multiplied with its root to the
    ``j k``.
    """

    kind: ClassVar[str] = "fourier"

    source: Value
    target: Value
    outers: int
    lanes: int
    length: int
    source_steps: tuple[int, int, int]
    target_steps: tuple[int, int, int]
    transform: str
    inverse: bool
    scale: float
    turn: int
    pieces: tuple[int, ...] = ()
    """The two lengths that each line, which lies in one piece, is taken apart into and transformed by; where their
    product is longer than the line, those of a convolution."""
    streaming: bool = False
    """Whether the target is too large for the caches to keep."""

    @property
    def real_dtype(self) -> str:
        """The dtype of its arithmetic."""
        wide = self.source.dtype in ("complex128", "float64")
        return "float64" if wide else "float32"

    @property
    def is_convolution(self) -> bool:
        """Whether lines are convolved with a chirp, see `convolution`."""
        return bool(self.pieces) and prod(self.pieces) != self.length

    def steps(self) -> tuple[FourierForm, FourierForm]:
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

    def key(self, slots: dict[Any, int]) -> str:
        """Lines, lengths and steps."""
        slots.update({self.source: 0, self.target: 1})
        steps = f"{self.source_steps} {self.target_steps}"
        lines = f"{nbytes(self.source)} {self.outers} {self.lanes} {self.length} {steps} {self.turn}"
        how = f"{self.pieces} {self.inverse} {self.scale!r} {self.streaming}"
        return f"fourier {self.transform} {self.real_dtype} {lines} {how}"

    def name(self) -> str:
        """Lines and their length."""
        return identifier("fourier", self.outers, self.lanes, self.length)

    def summary(self) -> str:
        """How many lines, and their length."""
        sign = "inverse " if self.inverse else ""
        return f"{sign}Fourier transform ({self.transform}) of {self.outers * self.lanes} lines of {self.length}"

    def reads(self) -> set[Any]:
        """The source."""
        return {self.source}

    def cost(self) -> Cost:
        """A few operations for each number and doubling of the length."""
        transformed = 2 * prod(self.pieces) if self.is_convolution else self.length
        cells = self.outers * self.lanes * transformed
        return Cost(nbytes(self.source), nbytes(self.target), round(_WORK * cells * log2(max(self.length, 2))))

    @property
    def buffer(self) -> Value:
        """What it stores to."""
        return self.target

    def streaming_candidates(self, vector_bits: int) -> Sequence[FourierForm]:
        """Itself: all of its stores are alike."""
        return [self]

    def cache_pressure(self, until_read: int) -> int:
        """That of what is overwritten, which costs more to read than for a copy, and up to three times more where both
        buffers fall into the same sets of the first cache."""
        return _PRESSURE * estimate(nbytes(self.target))
