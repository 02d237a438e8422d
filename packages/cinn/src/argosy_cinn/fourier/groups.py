"""Groups of lines that are transformed side by side in vectors, and chunks of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from argosy_cinn.forms.fourier import FourierForm
from argosy_cinn.fourier.factors import fits_square

#: Numbers that a chunk should at least have: some ten microseconds of work.
_CHUNK_NUMBERS = 1 << 14
_MOST_CHUNKS = 512


@dataclass(frozen=True, slots=True)
class LineGroups:
    """The lines of a form in groups, in vectors of ``lanes`` numbers."""

    form: FourierForm
    lanes: int

    @property
    def width(self) -> int:
        """How many lines are transformed side by side: a power of two, as many as lanes or what there are."""
        found = 1
        while found * 2 <= min(self.lanes, self.form.lanes):
            found *= 2
        return found

    @property
    def are_squares(self) -> bool:
        """Whether lines are transformed in registers, see `square_lines`."""
        form = self.form
        plain = form.transform == "c2c" and not form.turn and not form.pieces
        adjacent = form.source_steps[2] == form.target_steps[2] == 1
        return plain and adjacent and fits_square(form.length, form.lanes, self.lanes)

    @property
    def lines(self) -> int:
        """Lines of a group."""
        if self.form.pieces:
            return 1
        return self.lanes // isqrt(self.form.length) if self.are_squares else self.width

    @property
    def count(self) -> int:
        """How many groups there are; the last of each outer index may overlap another. Lines that are taken apart are
        groups of their own."""
        return self.form.outers * -(-self.form.lanes // self.lines)

    @property
    def in_chunk(self) -> int:
        """Groups of a chunk."""
        least = -(-_CHUNK_NUMBERS // (self.form.length * self.lines))
        return max(-(-self.count // _MOST_CHUNKS), least)

    @property
    def chunks(self) -> int:
        """Chunks of groups."""
        return -(-self.count // self.in_chunk)
