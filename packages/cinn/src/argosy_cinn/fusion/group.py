"""Groups of values that one step computes, and what fusion and planning ask of the kind of kernel that they become."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from argosy_cinn.forms.form import Form
from argosy_cinn.forms.product import Product
from argosy_cinn.shapes import at_least_one
from argosy_pir.core import Operation
from argosy_pir.values import Value

if TYPE_CHECKING:
    from argosy_cinn.attention.regions import Region
    from argosy_cinn.fusion.group_lowering import KnownReads
    from argosy_cinn.fusion.memory import Memory


class KernelKind:
    """What becomes of the groups of a kind: how they are made and joined, and which forms they are lowered to. It knows
    no target; neither do forms."""

    #: Whether groups of what it reads, and of what reads it, may be joined with it.
    takes_producers: ClassVar[bool] = False
    takes_readers: ClassVar[bool] = False
    #: Whether fusion and plan do not look into it: all that it makes has memory, and it runs exactly once.
    opaque: ClassVar[bool] = False
    #: Whether it has no code: the reference kernel runs between two native segments.
    on_host: ClassVar[bool] = False

    @property
    def always_runs(self) -> bool:
        """Whether it runs even where nobody reads what it makes."""
        return self.opaque

    def group(self, op: Operation, number: int, order: int, memory: Memory, reads: KnownReads) -> Group:
        """The group of one operation."""
        raise NotImplementedError

    def lower(self, group: Group, memory: Memory, stored: Container[Value]) -> list[Form]:
        """The forms of a group, in order; members that are not ``stored`` need no memory."""
        raise NotImplementedError

    def may_write_over(self, group: Group, forms: list[Form], argument: Value, value: Value) -> bool:
        """Whether the member ``value`` may be written over ``argument``: it is read nowhere but at the element of
        ``value`` that is computed from it."""
        return False

    def in_place(self, forms: list[Form]) -> list[Form]:
        """The forms of a group that writes over what it reads."""
        return forms

    def places(self, group: Group) -> dict[Value, tuple[Value, int]]:
        """The values that lie in the memory of another one, with that and the byte they begin at."""
        return {}

    def overwrite_candidates(self, group: Group, forms: list[Form]) -> Iterable[tuple[Value, list[Value]]]:
        """Results with the operands in whose memory they may lie, see `argosy_cinn.forms.form.Form`."""
        return forms[0].overwrite_candidates() if len(forms) == 1 else ()


@dataclass(eq=False, slots=True)
class Group:
    """Values computed by one step; ``order`` is the latest position of a member in the program, ``first`` the
    earliest. ``bits`` are its own in sets of groups, one for each group that was joined in it; ``ancestors`` is the set
    of what must run before it, in which any bit of a group stands for all of it."""

    number: int
    kind: KernelKind
    order: int
    members: dict[Value, str]
    rows: int = 0
    columns: int = 0
    op: Operation | None = None
    reads: set[Value] = field(default_factory=set)
    ancestors: int = 0
    product: Product | None = None
    first: int = -1
    region: Region | None = None
    bits: int = 0

    def __post_init__(self) -> None:
        self.first = self.order if self.first < 0 else self.first
        self.bits = self.bits or 1 << self.number

    @property
    def elements(self) -> int:
        """Cells of the grid."""
        return self.rows * at_least_one(self.columns)

    @property
    def operation(self) -> Operation:
        """The operation that it was made of."""
        assert self.op is not None
        return self.op
