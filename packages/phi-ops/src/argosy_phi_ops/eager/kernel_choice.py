"""The kernel of an eager application that has no route: the one that its route will have, so that no bit changes.

The kernel runner's plans know dtypes, and often no shapes. Here an application is looked at with both: its program may
be native code from the first call on (see `eager.tiering`), or its operator may have a quicker kernel for
such operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_phi_ops.checks.value_checks import guarded
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.eager.exactness import is_exact
from argosy_phi_ops.eager.tiering import NativeKernel, first_kernel
from argosy_phi_ops.errors import CaptureError, OperatorError
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.storage import ArrayType

__all__ = ["computed_results", "given_results", "is_view", "kernel_of", "may_be_compiled", "on_arrays"]

Kernel = Callable[[Sequence[Any], dict[str, Any]], Any]


def may_be_compiled(op: Operator, types: Sequence[Any]) -> bool:
    """Whether the decomposition is all that there is to an application, but for bounds of indices: a view shares
    memory, and a kernel of its own may look at integers and refuse them."""
    if is_view(op, types) or not all(type(t) is ArrayType for t in types):
        return False
    looked_at = op.bounds is not None or op.own_bounds is not None
    return op.kernel is None or op.random or looked_at or all(t.differentiable for t in types)


def is_view(op: Operator, types: Sequence[Any]) -> bool:
    """Whether the result may share the first operand's memory: elements at indices that tensors hold are copies."""
    return op.view and (op.own_bounds is None or len(types) == 1)


def kernel_of(op: Operator, types: Sequence[Any], attributes: dict[str, Any]) -> Kernel | None:
    """What computes an application to tensors of these types, which need no conversion; None: the kernel of the
    operator's plan."""
    if not all(type(t) is ArrayType for t in types):
        return None
    run = None if op.opaque or not may_be_compiled(op, types) else _native(op, types, attributes)
    if run is None and op.choose is not None:
        special = op.choose(types, attributes)
        run = None if special is None else (lambda arrays, _: special(*arrays))
    return None if run is None else guarded(op, run)


def _native(op: Operator, types: Sequence[Any], attributes: dict[str, Any]) -> Kernel | None:
    try:
        expansion = op.expand([TensorType(t.shape, t.dtype.name) for t in types], attributes)
    except (NotImplementedError, OperatorError, CaptureError):  # there is none for what a kernel does all the same
        return None
    if not expansion.bare and not (op.bounds is None and op.refusal is None):
        return None
    program = expansion.program if expansion.bare else computed_results(expansion.program)
    if program is None or is_exact(program):
        return None
    native = first_kernel(program)
    return None if native is None else on_arrays(expansion.program, native, not expansion.bare)


def on_arrays(program: Program, native: NativeKernel, several: bool) -> Kernel:
    """Native code of the computed results of ``program`` as a kernel of arrays and attributes."""
    if not several:
        return lambda arrays, _: native(arrays)[0]
    given, count = given_results(program), len(program.outputs)
    if not given:
        return lambda arrays, _: tuple(native(arrays))

    def run(arrays: Sequence[Any], attributes: dict[str, Any]) -> tuple[Any, ...]:
        made = iter(native(arrays))
        return tuple([arrays[given[i]] if i in given else next(made) for i in range(count)])

    return run


def computed_results(program: Program) -> Program | None:
    """The program of the results that are no operands as they are (statistics that nothing moves, say), which need not
    be computed; None where that is none of them."""
    if not given_results(program):
        return program
    made = program.clone()
    outputs = [value for value in made.outputs if value not in made.inputs]
    made.set_outputs(outputs)
    return made if outputs else None


def given_results(program: Program) -> dict[int, int]:
    """Which results are which operands as they are."""
    return {i: program.inputs.index(v) for i, v in enumerate(program.outputs) if v in program.inputs}
