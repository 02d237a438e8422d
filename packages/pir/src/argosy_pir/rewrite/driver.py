"""The greedy driver: applies patterns and folds until nothing changes or a bound is reached."""

from __future__ import annotations

from argosy_pir.core import Operation
from argosy_pir.effects import is_dead
from argosy_pir.folding import fold_operation
from argosy_pir.rewrite.fuel import fuel_left, spend
from argosy_pir.rewrite.pattern import Pattern, Rewriter
from argosy_pir.values import OpResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    def changed(self) -> bool:
        """Whether anything was applied."""
        return bool(self.applied)

    def __repr__(self) -> str:
        return f"<RewriteResult {self.applied} in {self.iterations} iterations>"


def apply_patterns(
    target: Program | Region, patterns: Iterable[Pattern], max_iterations: int = 10, fold: bool = True
) -> RewriteResult:
    """Rewrite ``target`` (a whole program or one region) with ``patterns``; with ``fold`` also fold
    operations and remove dead ones.

    Iteration one looks at every operation in order; each later one at those that a change touched.
    Operations that a change touches further down are still reached in the same iteration.
    """
    return _Driver(patterns, fold).run(list(target.walk()), max_iterations)


class _Driver:
    def __init__(self, patterns: Iterable[Pattern], fold: bool) -> None:
        self._fold = fold
        self._everywhere: list[Pattern] = []
        self._by_root: dict[str, list[Pattern]] = {}
        for pattern in sorted(patterns, key=lambda p: -p.benefit):
            target = self._everywhere if pattern.root is None else self._by_root.setdefault(pattern.root, [])
            target.append(pattern)
        self._pending: set[Operation] = set()
        self._next: dict[Operation, None] = {}
        self.result = RewriteResult()

    def run(self, operations: Sequence[Operation], max_iterations: int) -> RewriteResult:
        """Process generations of operations until one is empty or the bound is reached."""
        while operations:
            if self.result.iterations == max_iterations:
                self.result.converged = False
                break
            self.result.iterations += 1
            self._pending = set(operations)
            self._next = {}
            for op in operations:
                self._pending.discard(op)
                if not fuel_left():
                    return self.result
                if _is_attached(op):
                    self._visit(op)
            operations = list(self._next)
        return self.result

    def _visit(self, op: Operation) -> None:
        if self._fold and self._simplify(op):
            return
        candidates = self._by_root.get(op.name, ())
        for pattern in [*candidates, *self._everywhere] if self._everywhere else candidates:
            if self._try(pattern, op):
                return

    def _simplify(self, op: Operation) -> bool:
        if is_dead(op):
            return self._erase_dead(op)
        values = fold_operation(op) if op.results else None
        if values is None:
            return False
        Rewriter(op, self._revisit).replace(op, values)
        return self._count("fold")

    def _erase_dead(self, op: Operation) -> bool:
        """Erase ``op`` and at once all that dies with it, so that long dead chains need no iterations."""
        dead = [op]
        while dead and fuel_left():
            last = dead.pop()
            if last.parent is not None and is_dead(last):
                dead.extend(value.op for value in last._operands if isinstance(value, OpResult))
                Rewriter(last, self._revisit).erase(last)
                self._count("dead")
        return True

    def _try(self, pattern: Pattern, op: Operation) -> bool:
        if not pattern.rewrite(op, Rewriter(op, self._revisit)):
            return False
        return self._count(pattern.name)

    def _count(self, name: str) -> bool:
        spend(name)
        self.result.applied[name] = self.result.applied.get(name, 0) + 1
        return True

    def _revisit(self, op: Operation) -> None:
        if op not in self._pending:
            self._next[op] = None


def _is_attached(op: Operation) -> bool:
    """Whether ``op`` still is part of something; what lay in the regions of an erased operation is not."""
    while op.parent is not None and op.parent.parent is not None:
        owner = op.parent.parent.parent
        if not isinstance(owner, Operation):
            return True
        op = owner
    return False
