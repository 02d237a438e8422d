"""inline: replaces calls by the body of the function called."""

from __future__ import annotations

from dataclasses import dataclass

from argosy_pir.core import Operation
from argosy_pir.location import Location
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
        changed = False
        for function in _callees_first(program):
            changed |= self._inline_in(function, program)
        return changed | self._inline_in(program, program)

    def _inline_in(self, target: Function | Program, program: Program) -> bool:
        changed = False
        for op in target.region.walk():
            if op.name == "builtin.call" and self._wanted(op, program) and spend("inline"):
                inline_call(op, program.functions[op.attributes["callee"].name])
                changed = True
        return changed

    def _wanted(self, op: Operation, program: Program) -> bool:
        name = op.attributes["callee"].name
        if name not in program.functions or (self.functions and name not in self.functions):
            return False
        return name not in _reachable(name, program)


def inline_call(call: Operation, function: Function) -> None:
    """Put a copy of the body of ``function`` in the place of ``call``. Copies keep their own locations,
    joined with that of the call."""
    assert call.parent is not None
    arguments = function.block.arguments
    mapping: dict[Value, Value] = dict(zip(arguments, call.operands, strict=True))
    returned: tuple[Value, ...] = ()
    for op in function.block:
        if op is function.block.last:
            returned = tuple(mapping.get(value, value) for value in op.operands)
        else:
            copy = call.parent.insert_before(call, op.clone(mapping))
            for inner in copy.walk():
                inner.location = Location.fused([inner.location, call.location])
    call.replace_with(returned)


def _reachable(name: str, program: Program) -> set[str]:
    """Functions that ``name`` calls, directly or not."""
    pending = [name]
    reached: set[str] = set()
    while pending:
        function = program.functions.get(pending.pop())
        for callee in referenced_functions(function.region) if function is not None else ():
            if callee not in reached:
                reached.add(callee)
                pending.append(callee)
    return reached


def _callees_first(program: Program) -> list[Function]:
    order: dict[str, Function] = {}
    visiting: set[str] = set()

    def visit(name: str) -> None:
        if name in program.functions and name not in visiting:
            visiting.add(name)
            for callee in sorted(referenced_functions(program.functions[name].region)):
                visit(callee)
            order[name] = program.functions[name]

    for name in program.functions:
        visit(name)
    return list(order.values())
