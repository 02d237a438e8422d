"""Grouped products: each group of rows has a matrix of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from argosy_cinn.forms.form import Form
from argosy_cinn.forms.nest import identifier
from argosy_cinn.shapes import nbytes, sizes
from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.values import Value

#: Columns that a chunk should have, and chunks of a group at most.
_COLUMNS, _MOST_PARTS = 256, 16


@dataclass(slots=True)
class GroupedForm(Form):
    """Rows of ``lhs`` times the ``rhs`` matrix of their group, or, ``outer``, for each group the product of both sides'
    rows, the left one's transposed. ``scales`` (or None) [groups of rows, groups of terms, columns] are of the sums
    over a group of terms of ``rhs``, numbers in few bits, and ``offsets`` (or None) are added to its scaled numbers.
    With sixteen ``numbers`` (or None) bytes of ``rhs`` [groups of rows, columns / 2, terms] choose two of these, for
    two columns. With scales ``lhs`` may be bytes.
    """

    kind: ClassVar[str] = "grouped product"

    lhs: Value
    rhs: Value
    starts: Value
    result: Value
    outer: bool
    transposed: bool
    scales: Value | None = None
    offsets: Value | None = None
    numbers: tuple[int, ...] | None = None

    @property
    def operands(self) -> tuple[Value, ...]:
        """What is read."""
        return tuple(v for v in (self.lhs, self.rhs, self.starts, self.scales, self.offsets) if v is not None)

    @property
    def sums_integers(self) -> bool:
        """Whether bytes are multiplied with bytes, and a sum has one scale: it is one of integers, then."""
        plain = self.lhs.dtype == self.rhs.dtype == "int8" and self.offsets is None and self.numbers is None
        return plain and self.scales is not None and sizes(self.scales)[1] == 1

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return sizes(self.starts)[0] - 1

    @property
    def parts(self) -> int:
        """Chunks of a group."""
        columns = sizes(self.result)[-1]
        return max(min(columns // _COLUMNS, _MOST_PARTS), 1) if isinstance(columns, int) else _MOST_PARTS

    @property
    def chunks(self) -> int:
        """Those of all groups, and one for rows of none."""
        return self.groups * self.parts + 1

    def key(self, slots: dict[Any, int]) -> str:
        """Shapes and layout."""
        buffers = (*self.operands, self.result)
        for buffer in buffers:
            slots.setdefault(buffer, len(slots))
        types = [(slots[v], str(v.type)) for v in buffers]
        return f"grouped {types} {self.outer} {self.transposed} {self.numbers}"

    def name(self) -> str:
        """Groups and widths."""
        return identifier("grouped", self.groups, *sizes(self.result)[-2:])

    def summary(self) -> str:
        """What is multiplied."""
        return f"products of {self.groups} groups of {sizes(self.lhs)[0]} rows: {self.result.type}"

    def reads(self) -> set[Any]:
        """All operands."""
        return set(self.operands)

    def cost(self) -> Cost:
        """Every row meets one matrix."""
        rows, depth = sizes(self.lhs)
        return Cost(nbytes(self.lhs) + nbytes(self.rhs), nbytes(self.result), 2 * rows * depth * sizes(self.result)[-1])
