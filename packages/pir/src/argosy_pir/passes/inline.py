"""inline: replaces calls by the body of the function called."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from argosy_pir.core import Operation
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.passes.symbol_dce import referenced_functions
from argosy_pir.program import Function, Program
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import Value


@register_pass("inline")
@dataclass(frozen=True)
class Inline(Pass):
    """Inlines calls to ``functions`` (none named: to all). Recursive functions stay; ``symbol-dce`` removes
    bodies that nobody calls any more."""

    functions: tuple[str, ...] = ()

    def run(self, program: Program) -> bool:
        """Inline callees before callers; True where a call went."""
        if not program.functions:
            return False
        callees = {name: referenced_functions(f.region) for name, f in program.functions.items()}
        wanted = {name for name in self.functions or callees if name in callees and not _is_recursive(name, callees)}
        targets: list[Function | Program] = [program.functions[name] for name in _order_callees(callees)]
        return any([_inline_in(target, program, wanted) for target in [*targets, program]])


def _inline_in(target: Function | Program, program: Program, wanted: set[str]) -> bool:
    changed = False
    for op in target.region.walk():
        if op.name == "builtin.call" and op.attributes["callee"].name in wanted and spend("inline", op):
            inline_call(op, program.functions[op.attributes["callee"].name])
            changed = True
    return changed


def inline_call(call: Operation, function: Function) -> None:
    """Put a copy of the body of ``function`` in the place of ``call``. Copies keep their own locations,
    joined with that of the call."""
    assert call.parent is not None
    mapping: dict[Value, Value] = dict(zip(function.block.arguments, call.operands, strict=True))
    call.replace_with(function.block.inline_into(call.parent, call, mapping, call.location))


Callees = Mapping[str, Set[str]]
"""By function: the functions that it refers to."""


def _is_recursive(name: str, callees: Callees) -> bool:
    """Whether a function calls itself, directly or not."""
    pending, reached = list(callees[name]), set[str]()
    while pending:
        callee = pending.pop()
        if callee not in reached:
            reached.add(callee)
            pending += callees.get(callee, ())
    return name in reached


def _order_callees(callees: Callees) -> list[str]:
    order: dict[str, None] = {}
    visiting: set[str] = set()

    def visit(name: str) -> None:
        if name in callees and name not in visiting:
            visiting.add(name)
            for callee in sorted(callees[name]):
                visit(callee)
            order[name] = None

    for name in callees:
        visit(name)
    return list(order)
