"""Patterns written as classes, and the rewriter through which they change a program."""

from __future__ import annotations

from argosy_pir.builder import Builder
from argosy_pir.values import OpResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from argosy_pir.attributes import Attribute
    from argosy_pir.core import Operation, Region
    from argosy_pir.types import Type
    from argosy_pir.values import Value


class Pattern:
    """One local improvement. Subclasses set ``name`` and implement :meth:`rewrite`.

    ``root`` is the operation it is tried on (None: every one); among several the higher ``benefit`` goes
    first.
    """

    name: str = ""
    root: str | None = None
    benefit: int = 1

    def rewrite(self, op: Operation, rewriter: Rewriter) -> bool:
        """Improve ``op`` through ``rewriter`` and return True, or leave all as it is and return False."""
        raise NotImplementedError(f"pattern {type(self).__name__} does not implement rewrite")

    def __repr__(self) -> str:
        return f"<Pattern {self.name}>"


class PatternTable:
    """Patterns by the operations they are tried on, those of higher benefit first: made once for all programs."""

    __slots__ = ("by_root", "everywhere")

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self.everywhere: list[Pattern] = []
        self.by_root: dict[str, list[Pattern]] = {}
        for pattern in sorted(patterns, key=lambda p: -p.benefit):
            target = self.everywhere if pattern.root is None else self.by_root.setdefault(pattern.root, [])
            target.append(pattern)


class Rewriter:
    """Makes and replaces operations around ``op``, and tells the driver what to look at again."""

    __slots__ = ("_made", "_revisit", "_root")

    def __init__(self, op: Operation, revisit: Callable[[Operation], None]) -> None:
        self._root = op
        self._made: Builder | None = None
        self._revisit = revisit

    @property
    def _builder(self) -> Builder:
        if self._made is None:  # most patterns that are tried make nothing
            self._made = Builder.before(self._root)
        return self._made

    def create(
        self,
        name: str,
        operands: Iterable[Value] = (),
        attributes: Mapping[str, Attribute] | None = None,
        result_types: Iterable[Type] | None = None,
        regions: Iterable[Region] = (),
    ) -> Operation:
        """Make an operation before the root, with the root's location."""
        made = self._builder.create(name, operands, attributes, result_types, regions)
        self._revisit(made)
        return made

    def constant(self, type: Type, data: object) -> Value:
        """Make a constant before the root; ``data`` as for ``Builder.constant``."""
        return self._builder.constant(type, data)  # type: ignore[arg-type]

    def replace(self, op: Operation, values: Sequence[Value]) -> None:
        """Give ``values`` to the users of ``op``'s results and erase it."""
        self.touch(op)
        op.replace_with(values)

    def erase(self, op: Operation) -> None:
        """Erase an operation whose results are not used."""
        self.touch(op)
        op.erase()

    def move_here(self, op: Operation) -> None:
        """Move ``op`` from inside the root's regions to just before the root."""
        op.detach()
        self._builder.insert(op)
        self._revisit(op)

    def touch(self, op: Operation) -> None:
        """Look again at ``op``'s users, at itself, at what defines its operands, and at what it lies in."""
        if op.parent_op is not None:
            self._revisit(op.parent_op)
        for result in op.results:
            for user in result.users:
                self._revisit(user)
        for value in op._operands:
            if isinstance(value, OpResult):
                self._revisit(value.op)
        self._revisit(op)
