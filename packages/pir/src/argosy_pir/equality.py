"""Structural equality: two programs are the same when they differ in the identity of their objects only."""

from __future__ import annotations

from argosy_pir.attributes import attributes_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from argosy_pir.core import Block, Operation, Region
    from argosy_pir.program import Program
    from argosy_pir.values import Value


def structurally_equal(
    a: Program, b: Program, locations: bool = False, names: bool = True, annotations: bool = False
) -> bool:
    """Whether the programs are the same: operations, types, attributes (told apart as they print), states,
    functions.

    ``locations`` compares where operations come from, too, ``annotations`` what passes noted about them, and ``names``
    the name hints of values and the programs' own names.
    """
    comparison = _Comparison(locations, names, annotations)
    if (names and a.name != b.name) or list(a.functions) != list(b.functions):
        return False
    if attributes_key(a.attributes) != attributes_key(b.attributes) or not _same_states(a, b):
        return False
    if not comparison.regions((a.region,), (b.region,)):
        return False
    return all(
        attributes_key(f.attributes) == attributes_key(g.attributes) and comparison.regions((f.region,), (g.region,))
        for f, g in zip(a.functions.values(), b.functions.values(), strict=True)
    )


def regions_equal(a: Region, b: Region) -> bool:
    """Whether two regions without values from outside are the same, apart from locations, annotations, name hints."""
    return _Comparison(False, False, False).regions((a,), (b,))


def _same_states(a: Program, b: Program) -> bool:
    return [(s.name, attributes_key(s.attributes)) for s in a.states] == [
        (s.name, attributes_key(s.attributes)) for s in b.states
    ]


class _Comparison:
    """Walks two trees side by side and remembers which value corresponds to which."""

    def __init__(self, locations: bool, names: bool, annotations: bool) -> None:
        self._locations = locations
        self._annotations = annotations
        self._names = names
        self._partner: dict[Value, Value] = {}

    def regions(self, a: Sequence[Region], b: Sequence[Region]) -> bool:
        if len(a) != len(b) or any(len(r.blocks) != len(s.blocks) for r, s in zip(a, b, strict=True)):
            return False
        pairs = [pair for r, s in zip(a, b, strict=True) for pair in zip(r.blocks, s.blocks, strict=True)]
        return all(self._values(x.arguments, y.arguments) for x, y in pairs) and all(
            self._blocks(x, y) for x, y in pairs
        )

    def _blocks(self, a: Block, b: Block) -> bool:
        return len(a) == len(b) and all(self._operations(x, y) for x, y in zip(a, b, strict=True))

    def _operations(self, a: Operation, b: Operation) -> bool:
        return (
            a.name == b.name
            and len(a.operands) == len(b.operands)
            and all(self._partner.get(x) is y for x, y in zip(a.operands, b.operands, strict=True))
            and attributes_key(a.attributes) == attributes_key(b.attributes)
            and (not self._locations or a.location == b.location)
            and (not self._annotations or attributes_key(a.annotations) == attributes_key(b.annotations))
            and self._values(a.results, b.results)
            and self.regions(a.regions, b.regions)
        )

    def _values(self, a: Sequence[Value], b: Sequence[Value]) -> bool:
        if len(a) != len(b):
            return False
        for x, y in zip(a, b, strict=True):
            if x.type != y.type or (self._names and x.name_hint != y.name_hint):
                return False
            self._partner[x] = y
        return True
