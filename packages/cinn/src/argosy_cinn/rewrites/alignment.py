"""Products over several axes: the contracted axes of either operand follow each other, in one order on both sides.

Where that order is not the operands' own, a transpose makes it. It costs nothing where memory has that order beneath
it, and is a copy where not; the order is one for which the least is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from argosy_cinn.rewrites.builders import replacements
from argosy_cinn.rewrites.scaled_products import offset_product, scaled_grouped_product, scaled_product
from argosy_cinn.shapes import count, estimate, sizes
from argosy_phi_ops import prim
from argosy_pir.core import Operation
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.rewrite.driver import apply_patterns
from argosy_pir.values import OpResult, Value


@dataclass(frozen=True, slots=True)
class _Side:
    """An operand of a product, with its batch axes and contracted axes in the order of their pairs."""

    operand: Value
    batch: tuple[int, ...]
    contracted: tuple[int, ...]

    def reorder(self, order: Sequence[int]) -> _Side:
        """The same with the pairs in another order."""
        return _Side(self.operand, self.batch, tuple(self.contracted[i] for i in order))

    def follows(self) -> bool:
        """Whether the contracted axes follow each other in the operand."""
        return _consecutive(self.contracted, sizes(self.operand))

    def in_memory(self) -> tuple[int, ...]:
        """The contracted axes as axes of what the operand is a transpose of."""
        axes, value = self.contracted, self.operand
        while isinstance(value, OpResult) and value.op.name == "prim.transpose":
            axes = tuple(value.op.attributes["permutation"][a] for a in axes)
            value = value.op.operand(0)
        return axes

    def copied_elements(self) -> int:
        """How many elements have to be copied."""
        base = self.operand
        while isinstance(base, OpResult) and base.op.name == "prim.transpose":
            base = base.op.operand(0)
        return 0 if _consecutive(self.in_memory(), sizes(base)) else estimate(count(base))

    def made_to_follow(self) -> _Side:
        """The operand with its contracted axes last, where they do not follow each other."""
        if self.follows():
            return self
        rank = len(self.operand.shape)
        free = [i for i in range(rank) if i not in self.batch and i not in self.contracted]
        moved: Value = prim.transpose(self.operand, permutation=(*self.batch, *free, *self.contracted))
        last = range(rank - len(self.contracted), rank)
        return _Side(moved, tuple(range(len(self.batch))), tuple(last))


def _consecutive(axes: Sequence[int], shape: tuple[int, ...]) -> bool:
    """Whether axes of a shape follow each other, those of one element aside: where they are does not matter."""
    longer = [i for i, n in enumerate(shape) if n != 1]
    places = [longer.index(a) for a in axes if a in longer]
    return all(y == x + 1 for x, y in pairwise(places))


def _align(op: Operation) -> Value | None:
    a = op.attributes
    if len(a["lhs_contract"]) < 2:
        return None
    sides = [
        _Side(op.operand(i), tuple(a[f"{side}_batch"]), tuple(a[f"{side}_contract"]))
        for i, side in enumerate(("lhs", "rhs"))
    ]
    given = range(len(sides[0].contracted))
    orders = [given, *(sorted(given, key=side.in_memory().__getitem__) for side in sides)]
    best = min(orders, key=lambda order: sum(side.reorder(order).copied_elements() for side in sides))
    left, right = (side.reorder(best).made_to_follow() for side in sides)
    if (left, right) == tuple(sides):
        return None
    result: Value = prim.dot_general(
        left.operand, right.operand, lhs_contract=left.contracted, rhs_contract=right.contracted,
        lhs_batch=left.batch, rhs_batch=right.batch, accumulate=a["accumulate"],
    )  # fmt: skip
    return result


_PATTERNS = replacements("align-contractions", {"prim.dot_general": _align})
_SCALED = replacements(
    "align-contractions", {"prim.reduce_sum": scaled_product, "prim.grouped_dot": scaled_grouped_product}
)
_OFFSET = replacements("align-contractions", {"prim.add": offset_product})


@register_pass("align-contractions")
@dataclass(frozen=True)
class AlignContractions(Pass):
    """Rewrites products over several axes so that these follow each other, in one order on both sides; where a machine
    has ``scaled`` products, sums over groups of scaled ones become such (`scaled_products`)."""

    scaled: bool = True

    def run(self, program: Program) -> bool:
        """Rewrite the program's own block; True where anything changed."""
        changed = False
        for patterns in (_SCALED, _OFFSET, _PATTERNS) if self.scaled else (_PATTERNS,):
            changed |= apply_patterns(program.block, patterns, max_iterations=1, fold=False).has_changed
        return changed
