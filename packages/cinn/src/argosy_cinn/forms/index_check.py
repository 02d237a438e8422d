"""Checks of indices: the record of a call has the first index that is out of range.

It is two words at the start of the call's arena: the number of the check that refused an index, counted from 1 (0: none
has), and the index. The first one stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from argosy_cinn.forms.form import Form
from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.dims import Dim
from argosy_pir.values import Value

RECORD_BYTES = 16


@dataclass(frozen=True, slots=True)
class Record:
    """The key of a call's record among the buffers of a plan."""


RECORD = Record()


@dataclass(slots=True)
class IndexCheckForm(Form):
    """A record of ``value`` as refused by check number ``site`` where ``first``, its place, is less than ``count``."""

    kind: ClassVar[str] = "index check"

    first: Value
    value: Value
    count: Dim
    site: int

    @property
    def checks_indices(self) -> bool:
        """It does nothing else."""
        return True

    def key(self, slots: dict[Any, int]) -> str:
        """Which check it is, of how many indices."""
        slots.update({self.first: 0, self.value: 1, RECORD: 2})
        return f"note {self.site} {self.count}"

    def name(self) -> str:
        """One for all: they are short."""
        return "note_index"

    def summary(self) -> str:
        """How many indices were looked at."""
        return f"check of {self.count} indices"

    def reads(self) -> set[Any]:
        """What was found about the indices."""
        return {self.first, self.value}

    def cost(self) -> Cost:
        """Two words."""
        return Cost(16, 0, 1)
