"""The greedy driver: applies patterns and folds until nothing changes or a bound is reached."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_pir.core import Block, Operation
from argosy_pir.effects import is_dead
from argosy_pir.folding import fold_operation
from argosy_pir.rewrite.fuel import may_happen, spend
from argosy_pir.rewrite.pattern import Pattern, PatternTable, Rewriter
from argosy_pir.values import OpResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from argosy_pir.core import Region
    from argosy_pir.program import Program


class RewriteResult:
    """What the driver did: ``applied`` counts patterns by name (with ``fold`` and ``dead``); ``converged``
    is False where it stopped at the bound."""

    __slots__ = ("applied", "converged", "iterations")

    def __init__(self) -> None:
        self.applied: dict[str, int] = {}
        self.converged = True
        self.iterations = 0

    @property
    def has_changed(self) -> bool:
        """Whether anything was applied."""
        return bool(self.applied)

    def __repr__(self) -> str:
        return f"<RewriteResult {self.applied} in {self.iterations} iterations>"


def apply_patterns(
    target: Program | Region | Block | Sequence[Operation],
    patterns: Iterable[Pattern] | PatternTable,
    max_iterations: int = 10,
    fold: bool = True,
) -> RewriteResult:
    """Rewrite ``target`` (a program or a region with all that is inside; a block or some operations, without their
    regions) with ``patterns``; with ``fold`` also fold operations and remove dead ones.

    Iteration one looks at every operation in order, and at what takes the place of one before it goes on, so that
    patterns see operands in their final form. Each later iteration looks at what changes touched further up; a pattern
    is not tried where its name is out of fuel.
    """
    operations = list(target) if isinstance(target, (Block, Sequence)) else list(target.walk())
    table = patterns if isinstance(patterns, PatternTable) else PatternTable(patterns)
    return _Driver(table, fold).run(operations, max_iterations)


#: Replacements of replacements of one operation within one iteration.
_DEEPEST = 100


class _Driver:
    def __init__(self, patterns: PatternTable, fold: bool) -> None:
        self._fold = fold
        self._everywhere, self._by_root = patterns.everywhere, patterns.by_root
        self._pending: set[Operation] = set()
        self._next: dict[Operation, None] = {}
        self.result = RewriteResult()

    def run(self, operations: Sequence[Operation], max_iterations: int) -> RewriteResult:
        """Process generations of operations until one is empty or the bound is reached."""
        while operations := self._with_work(operations):
            if self.result.iterations == max_iterations:
                self.result.converged = False
                break
            self.result.iterations += 1
            self._pending = set(operations)
            self._next = {}
            for op in operations:
                self._pending.discard(op)
                self._settle(op)
            operations = list(self._next)
        return self.result

    def _with_work(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        """Those that something could be done to."""
        if self._fold or self._everywhere:
            return operations
        return [op for op in operations if op.name in self._by_root]

    def _settle(self, op: Operation) -> None:
        """Visit an operation, then what has taken its place, in order."""
        waiting = [(op, 0)]
        while waiting:
            op, depth = waiting.pop()
            if not _is_attached(op):
                continue
            block, previous, following = op.parent, op.previous, op.next
            if not self._visit(op):
                continue
            if depth == _DEEPEST:
                self.result.converged = False
                continue
            fresh = _ops_between(block, previous, following, op)  # type: ignore[arg-type]
            for made in fresh:
                self._next.pop(made, None)
            waiting += [(made, depth + 1) for made in reversed(self._with_work(fresh))]

    def _visit(self, op: Operation) -> bool:
        """Whether anything was done to an operation."""
        if self._fold and self._simplify(op):
            return True
        candidates = self._by_root.get(op.name, ())
        for pattern in [*candidates, *self._everywhere] if self._everywhere else candidates:
            if self._try(pattern, op):
                return True
        return False

    def _simplify(self, op: Operation) -> bool:
        if is_dead(op) and may_happen("dead"):
            return self._erase_dead(op)
        values = fold_operation(op) if op.results and may_happen("fold") else None
        if values is None:
            return False
        Rewriter(op, self._revisit).replace(op, values)
        return self._count("fold", op)

    def _erase_dead(self, op: Operation) -> bool:
        """Erase ``op`` and at once all that dies with it, so that long dead chains need no iterations."""
        dead = [op]
        while dead and may_happen("dead"):
            last = dead.pop()
            if last.parent is not None and is_dead(last):
                dead.extend(value.op for value in last._operands if isinstance(value, OpResult))
                Rewriter(last, self._revisit).erase(last)
                self._count("dead", last)
        return True

    def _try(self, pattern: Pattern, op: Operation) -> bool:
        if not may_happen(pattern.name) or not pattern.rewrite(op, Rewriter(op, self._revisit)):
            return False
        return self._count(pattern.name, op)

    def _count(self, name: str, where: Operation) -> bool:
        spend(name, where)
        self.result.applied[name] = self.result.applied.get(name, 0) + 1
        return True

    def _revisit(self, op: Operation) -> None:
        if op not in self._pending:
            self._next[op] = None


def _ops_between(
    block: Block, previous: Operation | None, following: Operation | None, root: Operation
) -> list[Operation]:
    """What stands between two neighbours of ``root`` now, itself aside; nothing where either has gone, too."""
    if (previous is not None and previous.parent is not block) or (
        following is not None and following.parent is not block
    ):
        return []
    found: list[Operation] = []
    op = block.first if previous is None else previous.next
    while op is not None and op is not following:
        if op is not root:
            found.append(op)
        op = op.next
    return found


def _is_attached(op: Operation) -> bool:
    """Whether ``op`` still is part of something; what lay in the regions of an erased operation is not."""
    while op.parent is not None and op.parent.parent is not None:
        owner = op.parent.parent.parent
        if not isinstance(owner, Operation):
            return True
        op = owner
    return False
