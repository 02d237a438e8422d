"""outline: moves marked runs of operations into functions, and repeated equal ones into one function.

Operations next to each other whose attribute ``outline`` is equal (``"layer"``, or ``("layer", 3)`` for the
third of its kind) become one call. Runs of one name share a function where their bodies are the same. Repeated runs are
found without marks, too.
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
from argosy_pir.repeats import find_repeats
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARKER = "outline"


@register_pass("outline")
@dataclass(frozen=True)
class Outline(Pass):
    """Outlines marked runs in the program's own block, and blocks of at least ``repeated`` operations that follow each
    other and are the same (0: none)."""

    repeated: int = 0

    def run(self, program: Program) -> bool:
        """Make functions and calls; True where there was such a run."""
        changed = False
        for name, runs in [*_marked_runs(program.block), *_repeated_runs(program.block, self.repeated)]:
            used = {place for run in runs for place in _used_outside(run)}
            for run in runs:
                if spend("outline"):
                    _outline(run, name, used, program)
                    changed = True
        return changed


def _repeated_runs(block: Block, shortest: int) -> list[tuple[str, list[list[Operation]]]]:
    """Blocks without marks that are repeated, but those of nothing but calls."""
    ops = [op for op in block if op.name != RETURN]
    found = [list(repeat.blocks(ops)) for repeat in find_repeats(ops, shortest)] if shortest else []
    return [
        ("block", runs)
        for runs in found
        if not any(MARKER in op.attributes for run in runs for op in run)
        and any(op.name != "builtin.call" for op in runs[0])
    ]


def _used_outside(run: list[Operation]) -> list[tuple[int, int]]:
    """The results, by the numbers of operation and result, that are read behind the run."""
    inside = {inner for op in run for inner in op.walk()}
    return [
        (at, r.index) for at, op in enumerate(run) for r in op.results if any(user not in inside for user in r.users)
    ]


def _marked_runs(block: Block) -> list[tuple[str, list[list[Operation]]]]:
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
    return [(_name_of(run[0]), [run]) for run in runs]


def _outline(run: list[Operation], name: str, used: set[tuple[int, int]], program: Program) -> None:
    inside = {inner for op in run for inner in op.walk()}
    inputs = _used_from_outside(run, inside)
    outputs = [r for at, op in enumerate(run) for r in op.results if (at, r.index) in used]
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
        copy.attributes.pop(MARKER, None)
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
