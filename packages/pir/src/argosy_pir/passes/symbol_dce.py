"""symbol-dce: removes functions that nothing reachable from the program refers to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argosy_pir.attributes import Symbol
from argosy_pir.core import Region
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.rewrite.fuel import spend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from argosy_pir.attributes import Attribute


@register_pass("symbol-dce")
@dataclass(frozen=True)
class SymbolDeadCode(Pass):
    """Removes unreferenced functions, also those that only refer to one another."""

    def run(self, program: Program) -> bool:
        """Keep what the body and the program's attributes reach; True where a function went."""
        if not program.functions:
            return False
        pending = [*referenced_functions(program.region), *_symbols(tuple(program.attributes.values()))]
        reached: set[str] = set()
        while pending:
            name = pending.pop()
            if name in program.functions and name not in reached:
                reached.add(name)
                pending.extend(referenced_functions(program.functions[name].region))
        dead = [name for name in program.functions if name not in reached and spend("symbol-dce")]
        for name in dead:
            del program.functions[name]
        return bool(dead)


def referenced_functions(region: Region) -> set[str]:
    """Names that symbols in attributes of operations in ``region`` mention."""
    return {name for op in region.walk() for value in op.attributes.values() for name in _symbols(value)}


def _symbols(value: Attribute) -> Iterator[str]:
    if isinstance(value, Symbol):
        yield value.name
    elif isinstance(value, tuple):
        for item in value:
            yield from _symbols(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _symbols(item)
