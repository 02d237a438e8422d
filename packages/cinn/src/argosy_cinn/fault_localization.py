"""Which operation of a program has no code, where an error does not tell: the last one of the shortest beginning of the
program that cannot be compiled either, found by bisection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from argosy_cinn.fallback import GroupError
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType

#: Seconds after which no further beginning is compiled; what is known by then is told.
_PATIENCE = 20.0


def name_operations(error: Exception, program: Program, attempt: Callable[[Program], None]) -> Exception:
    """``error``, or a `GroupError` from it that names the operations at fault. ``attempt`` compiles a program and
    raises what goes wrong."""
    operations = [op for op in program.block if op.results and op.name != "builtin.constant"]
    if isinstance(error, GroupError) or not operations:
        return error
    named = GroupError(_to_blame(program, operations, attempt))
    named.__cause__ = error
    return named


def _to_blame(
    program: Program, operations: Sequence[Operation], attempt: Callable[[Program], None]
) -> Sequence[Operation]:
    """Those of ``operations`` among which the first failure is: one, unless that takes too long, or all where not even
    an empty program can be compiled."""
    started = perf_counter()
    good, bad = 0, len(operations)
    if not _compiles(program_prefix(program, 0), attempt):
        return operations
    while bad - good > 1 and perf_counter() - started < _PATIENCE:
        middle = (good + bad) // 2
        if _compiles(program_prefix(program, middle), attempt):
            good = middle
        else:
            bad = middle
    return operations[good:bad]


def _compiles(program: Program, attempt: Callable[[Program], None]) -> bool:
    try:
        attempt(program)
    except Exception:  # noqa: BLE001  (whatever it is: whether there is one is the question)
        return False
    return True


def program_prefix(program: Program, count: int) -> Program:
    """A program of the first ``count`` operations, constants not counted, that returns what nobody reads there."""
    made = program.clone()
    made.block.last.erase()  # type: ignore[union-attr]  # the return
    operations = [op for op in made.block if op.results and op.name != "builtin.constant"]
    for op in reversed(operations[count:]):
        op.erase()
    left = [r for op in operations[:count] for r in op.results if isinstance(r.type, TensorType) and not r.has_uses]
    made.set_outputs(left, [state.argument for state in made.states])
    return made


__all__ = ["name_operations", "program_prefix"]
