"""The reducer: shrinks a program while something keeps going wrong with it.

After delta debugging (Zeller and Hildebrandt, 2002): edits are tried from coarse to fine on copies, one is
kept when the copy is valid and still fails, and rounds go on until none is kept.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from argosy_pir.core import Operation
from argosy_pir.errors import IRError
from argosy_pir.opdef import RETURN
from argosy_pir.program import Program
from argosy_pir.text.printer import print_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Edit = Callable[[Program], bool]


def reduce_program(program: Program, fails: Callable[[Program], bool], max_trials: int = 10_000) -> Program:
    """The smallest program found on which ``fails`` is still true; ``program`` itself stays as it is.

    ``fails`` gets valid programs only and may change them. At most ``max_trials`` candidates are tried.
    """
    current = program.clone()
    trials = 0
    progress = True
    while progress and trials < max_trials:
        progress = False
        for edits in (_cut_operations, _drop_outputs, _drop_functions, _unwrap_values, _drop_attributes, _drop_inputs):
            for edit in edits(current):
                candidate = current.clone()
                trials += 1
                if trials > max_trials:
                    return current
                if _applies(edit, candidate) and fails(candidate.clone()):
                    current = candidate
                    progress = True
    return current


def fails_command(command: str, match: str | None = None, timeout: float = 60) -> Callable[[Program], bool]:
    """A test for :func:`reduce_program`: whether the shell ``command`` exits with an error (and prints
    ``match``).

    ``{}`` in the command is replaced by the name of a file with the program; a command that takes longer than
    ``timeout`` seconds counts as not failing.
    """
    pattern = None if match is None else re.compile(match)

    def fails(program: Program) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.pir"
            path.write_text(print_program(program), "utf-8")
            line = command.replace("{}", str(path))
            try:
                done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=timeout, check=False)
            except subprocess.TimeoutExpired:
                return False
        output = done.stdout + done.stderr
        return done.returncode != 0 and (pattern is None or pattern.search(output) is not None)

    return fails


def _applies(edit: Edit, candidate: Program) -> bool:
    """Whether the edit changed the candidate and left it valid."""
    try:
        if not edit(candidate):
            return False
        candidate.verify()
    except IRError:
        return False
    return True


def _cut_operations(program: Program) -> Iterator[Edit]:
    """Cut out runs of operations, halving their length; results that are used become inputs."""
    count = len(program.block) - 1
    length = count
    while length >= 1:
        for start in range(max(count - length, 0), -1, -length):
            yield lambda p, start=start, length=length: _cut(p, start, length)  # type: ignore[misc]
        length //= 2


def _cut(program: Program, start: int, length: int) -> bool:
    run = [op for op in list(program.block)[start : start + length] if op.name != RETURN]
    inside = set(run)
    for op in run:
        for result in op.results:
            if any(not _is_within(user, inside) for user in result.users):
                result.replace_all_uses_with(program.add_input(result.type, result.name_hint))
    for op in reversed(run):
        op.erase()
    return bool(run)


def _is_within(op: Operation, tops: set[Operation]) -> bool:
    current: Operation | None = op
    while current is not None and current not in tops:
        current = current.parent_op
    return current is not None


def _drop_outputs(program: Program) -> Iterator[Edit]:
    """Return one output less, or a state unchanged."""
    for i in reversed(range(len(program.outputs))):
        yield lambda p, i=i: _keep_outputs(p, i)  # type: ignore[misc]
    for i in range(len(program.states)):
        yield lambda p, i=i: _keep_state(p, i)  # type: ignore[misc]


def _keep_outputs(program: Program, index: int) -> bool:
    outputs = program.outputs
    if index >= len(outputs):
        return False
    program.set_outputs([value for i, value in enumerate(outputs) if i != index])
    return True


def _keep_state(program: Program, index: int) -> bool:
    updates = list(program.state_updates)
    argument = program.states[index].argument
    if updates[index] is argument:
        return False
    updates[index] = argument
    program.set_outputs(program.outputs, updates)
    return True


def _drop_functions(program: Program) -> Iterator[Edit]:
    for name in list(program.functions):
        yield lambda p, name=name: p.functions.pop(name, None) is not None  # type: ignore[misc]


def _unwrap_values(program: Program) -> Iterator[Edit]:
    """Use an operand in place of the result where they have the same type, later operations first."""
    for i in range(len(program.block) - 2, -1, -1):
        yield lambda p, i=i: _unwrap(p, i)  # type: ignore[misc]


def _unwrap(program: Program, index: int) -> bool:
    operations = list(program.block)
    if index >= len(operations) - 1 or len(operations[index].results) != 1:
        return False
    op = operations[index]
    same = [value for value in op.operands if value.type == op.result.type]
    if same:
        op.replace_with(same[:1])
    return bool(same)


def _drop_attributes(program: Program) -> Iterator[Edit]:
    """Drop one attribute of one operation."""
    for i, op in enumerate(program.walk()):
        for name in op.attributes:
            yield lambda p, i=i, name=name: _drop_attribute(p, i, name)  # type: ignore[misc]


def _drop_attribute(program: Program, index: int, name: str) -> bool:
    for i, op in enumerate(program.walk()):
        if i == index:
            return op.attributes.pop(name, None) is not None
    return False


def _drop_inputs(program: Program) -> Iterator[Edit]:
    """Drop unused inputs, and states that nothing but the return uses."""
    for i in reversed(range(len(program.inputs))):
        yield lambda p, i=i: _drop_input(p, i)  # type: ignore[misc]
    for i in reversed(range(len(program.states))):
        yield lambda p, i=i: _drop_state(p, i)  # type: ignore[misc]


def _drop_input(program: Program, index: int) -> bool:
    if index >= len(program.inputs) or program.inputs[index].uses:
        return False
    program.block.erase_argument(index)
    return True


def _drop_state(program: Program, index: int) -> bool:
    if index >= len(program.states):
        return False
    argument = program.states[index].argument
    last = program.block.last
    position = len(program.outputs) + index
    if last is None or argument.uses != ((last, position),):
        return False
    last.set_operands([value for i, value in enumerate(last.operands) if i != position])
    del program.states[index]
    program.block.erase_argument(argument.index)
    return True
