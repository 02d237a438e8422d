"""outline: moves marked runs of operations into functions, and repeated equal ones into one function.

Operations next to each other whose attribute ``outline`` is equal (``"layer"``, or ``("layer", 3)`` for the
third of its kind) become one call. Runs of one name share a function where their bodies are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy_pir.attributes import Symbol
from argosy_pir.core import Block, Operation
from argosy_pir.equality import regions_equal
from argosy_pir.errors import PassError
from argosy_pir.location import Location
from argosy_pir.opdef import RETURN
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Function, Program
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARKER = "outline"


@register_pass("outline")
@dataclass(frozen=True)
class Outline(Pass):
    """Outlines marked runs in the program's own block."""

    def run(self, program: Program) -> bool:
        """Make functions and calls; True where there was a marked run."""
        changed = False
        for run in _runs(program.block):
            if spend("outline"):
                _outline(run, program)
                changed = True
        return changed


def _runs(block: Block) -> list[list[Operation]]:
    runs: list[list[Operation]] = []
    previous: Any = None
    for op in block:
        marker = op.attributes.get(MARKER)
        if marker is not None:
            if marker == previous:
                runs[-1].append(op)
            else:
                runs.append([op])
        previous = marker
    return runs


def _outline(run: list[Operation], program: Program) -> None:
    name = _name_of(run[0])
    inside = {inner for op in run for inner in op.walk()}
    inputs = _used_from_outside(run, inside)
    outputs = [r for op in run for r in op.results if any(user not in inside for user in r.users)]
    function = _make_function(name, run, inputs, outputs)
    shared = _equal_function(function, name, program)
    if shared is None:
        function.name = _free_name(name, program)
        shared = program.add_function(function)
    types = [value.type for value in outputs]
    location = Location.fuse(op.location for op in run)
    call = Operation("builtin.call", inputs, types, {"callee": Symbol("@" + shared.name)}, (), location)
    program.block.insert_before(run[0], call)
    for old, new in zip(outputs, call.results, strict=True):
        for user, index in old.uses:
            if user not in inside:
                user.set_operand(index, new)
        new.name_hint = old.name_hint
    for op in reversed(run):
        op.erase()


def _make_function(name: str, run: list[Operation], inputs: list[Value], outputs: list[Any]) -> Function:
    function = Function(name, [value.type for value in inputs])
    mapping: dict[Value, Value] = dict(zip(inputs, function.block.arguments, strict=True))
    for argument, value in zip(function.block.arguments, inputs, strict=True):
        argument.name_hint = value.name_hint
    for op in run:
        copy = function.block.append(op.clone(mapping))
        del copy.attributes[MARKER]
    function.block.append(Operation(RETURN, [mapping[value] for value in outputs]))
    return function


def _used_from_outside(run: list[Operation], inside: set[Operation]) -> list[Value]:
    """Values that the run takes from before it, in order of first use."""
    blocks = {block for op in inside for region in op.regions for block in region.blocks}
    found: dict[Value, None] = {}
    for op in run:
        for inner in op.walk():
            for value in inner.operands:
                if value.owner not in inside and value.owner not in blocks:
                    found[value] = None
    return list(found)


def _equal_function(function: Function, name: str, program: Program) -> Function | None:
    """A function made from ``name`` before that does the same."""
    for other in program.functions.values():
        if other.name == name or other.name.startswith(name + "_"):
            if other.type == function.type and regions_equal(other.region, function.region):
                return other
    return None


def _free_name(name: str, program: Program) -> str:
    candidate, number = name, 0
    while candidate in program.functions:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _name_of(op: Operation) -> str:
    marker = op.attributes[MARKER]
    name = marker[0] if isinstance(marker, tuple) and marker else marker
    if not isinstance(name, str) or not name:
        raise PassError(f"attribute '{MARKER}' of '{op.name}' is a name or (name, number), got {marker!r}")
    return name
