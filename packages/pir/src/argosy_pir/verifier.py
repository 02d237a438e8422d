"""The verifier: structure, dominance, terminators, and every known operation against its description."""

from __future__ import annotations

from argosy_pir.dialect import get_definition, get_dialect
from argosy_pir.errors import VerifyError
from argosy_pir.opdef import RETURN, TERMINATOR
from argosy_pir.values import BlockArgument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argosy_pir.core import Block, Operation, Region
    from argosy_pir.program import Program
    from argosy_pir.values import Value


def verify_program(program: Program) -> None:
    """Check ``program`` wholly; raises ``VerifyError`` at the first rule that is broken, before any later
    one.

    Regions see the values around them. The blocks of one region do not see each other's values: every
    shipped dialect has structured control flow.
    """
    bodies = {f"program '{program.name}'": program.region}
    for key, function in program.functions.items():
        if key != function.name or function.parent is not program:
            raise VerifyError(f"function @{function.name} is filed as @{key} or belongs to another program")
        bodies[f"function @{key}"] = function.region
    for owner, region in bodies.items():  # before any call looks at what its callee returns
        _verify_ending(region, owner)
    for owner, region in bodies.items():
        _verify_region(region, set(), owner)
    _verify_states(program)


def _verify_states(program: Program) -> None:
    names = [state.name for state in program.states]
    if len(set(names)) != len(names):
        raise VerifyError(f"program '{program.name}' has two states of one name: {sorted(names)}")
    arguments = program.block.arguments
    if [state.argument for state in program.states] != list(arguments[len(arguments) - len(names) :]):
        raise VerifyError(f"the last block arguments of program '{program.name}' are not its states in order")
    last = program.block.last
    assert last is not None
    if len(last._operands) < len(names):
        raise VerifyError(f"returns fewer values than there are states ({len(names)})", last)
    for state, value in zip(program.states, program.state_updates, strict=True):
        if value.type != state.type:
            raise VerifyError(f"state {state.name!r} of type {state.type} becomes {value.type}", last)


def _verify_ending(region: Region, owner: str) -> None:
    if len(region.blocks) != 1:
        raise VerifyError(f"{owner} has {len(region.blocks)} blocks, expected one")
    last = region.block.last
    if last is None or last.name != RETURN:
        raise VerifyError(f"{owner} does not end in {RETURN}")


def _verify_region(region: Region, visible: set[Value], owner: object) -> None:
    for block in region.blocks:
        if block.parent is not region:
            raise VerifyError(f"a block in {owner} has another region as its parent")
        added: list[Value] = []
        _verify_arguments(block, owner)
        added.extend(block.arguments)
        visible.update(block.arguments)
        for op in block:
            _verify_operation(op, block, visible)
            visible.update(op.results)
            added.extend(op.results)
        visible.difference_update(added)


def _verify_arguments(block: Block, owner: object) -> None:
    for i, argument in enumerate(block.arguments):
        if argument.index != i or argument.block is not block:
            raise VerifyError(f"block argument {i} in {owner} is filed under another index or block")


def _verify_operation(op: Operation, block: Block, visible: set[Value]) -> None:
    for i, value in enumerate(op._operands):
        if value not in visible:
            raise VerifyError(f"operand {i} ({_origin(value)}) is not defined before its use here", op)
        if (op, i) not in value._uses:
            raise VerifyError(f"operand {i} does not list this use", op)
    if op.parent is not block:
        raise VerifyError("sits in a block that is not its parent", op)
    definition = get_definition(op.name)
    if definition is None:
        dialect = get_dialect(op.dialect)
        if dialect is not None:
            raise dialect.lacks(op)
    elif TERMINATOR in definition.traits and op is not block.last:
        raise VerifyError("ends a block, but operations follow it", op)
    for region in op.regions:
        if region.parent is not op:
            raise VerifyError("a region has another operation as its parent", op)
        _verify_region(region, visible, f"'{op.name}'")
    if definition is not None:
        definition.check(op)


def _origin(value: Value) -> str:
    if isinstance(value, BlockArgument):
        return f"block argument {value.index}"
    return f"a result of '{value.owner.name}'"  # type: ignore[union-attr]
