"""Plans: steps in the order in which they run, and where every value lies."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from argosy_cinn.attention.unfused import UnfusedAttention
from argosy_cinn.forms.form import Form
from argosy_cinn.fusion.group import Group
from argosy_cinn.plan.memory import Lifetime, Place, Recomputation
from argosy_pir.values import BlockArgument, Value

if TYPE_CHECKING:
    from argosy_cinn.plan.repeated_reads import WeightReads


@dataclass(eq=False, slots=True)
class Step:
    """One group, lowered to forms that run one after the other; none for a host call."""

    group: Group
    forms: list[Form]
    renamed: dict[Hashable, Hashable] = field(default_factory=dict)
    """The versions of values that it reads and makes, where some are made again."""
    repeated: bool = False
    siblings: list[Step] = field(default_factory=list)
    """Other products, made by the same read of the operand that all share."""

    @property
    def parts(self) -> list[Step]:
        """Itself and its siblings."""
        return [self, *self.siblings]

    @property
    def checks_indices(self) -> bool:
        """Whether it may record an index that is out of range."""
        return any(form.checks_indices for form in self.forms)

    def key(self, value: Any) -> Any:
        """What ``value`` is called in the memory plan when this step runs."""
        return self.renamed.get(value, value)

    def buffers(self) -> dict[Hashable, int]:
        """Bytes of what it needs while it runs."""
        return {key: size for form in self.forms for key, size in form.buffers().items()}


@dataclass(slots=True)
class ExecutionPlan:
    """Everything that code generation and the executable need.

    The address table holds the arena, the inputs, the states, the outputs, then the ``constants``. Sizes known at run
    time are in ``symbols``: those of the program, then the offset in the arena of each of ``lifetimes``.
    """

    steps: list[Step]
    places: dict[Hashable, Place]
    arena_bytes: int
    constants: list[Value]
    copies: list[tuple[Value, BlockArgument]] = field(default_factory=list)
    in_place: set[Value] = field(default_factory=set)
    lifetimes: list[Lifetime] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    recomputation: Recomputation | None = None
    guard: str = ""
    unfused_attention: list[UnfusedAttention] = field(default_factory=list)
    weight_reads: list[WeightReads] = field(default_factory=list)
