"""What could not be compiled runs on the reference interpreter: slower, told once, and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argosy_hwadapt import Device
from argosy_phi_ops.eager.fallback import note_fallback
from argosy_phi_ops.reference.compiler import ReferenceCompiler
from argosy_phi_ops.user_line import warn_user
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_tensorcore.storage import StridedArray

#: How many programs run on the interpreter because of each kind of failure.
fallbacks: dict[str, int] = {}
_warned: set[str] = set()
#: How many kinds of operations an error names.
_MOST_NAMES = 6


class GroupError(RuntimeError):
    """The kernel of some operations could not be made; the cause is the error it came from."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        last = operations[-1]
        where = last.location.suffix
        names = sorted({op.name for op in operations})
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        super().__init__(f"no code for {', '.join(names[:_MOST_NAMES])}{more}{where}")


class InterpretedExecutable:
    """A program on the reference interpreter, with the reason in its ``report()["fallback"]``."""

    def __init__(self, program: Program, device: Device, communicators: Mapping[Any, Any], reason: str) -> None:
        self.program = program
        self.reason = reason
        self._made = ReferenceCompiler().compile(program, device, communicators)

    def run(self, inputs: Sequence[StridedArray], states: Sequence[StridedArray] = ()) -> list[StridedArray]:
        """Execute once."""
        return self._made.run(inputs, states)

    def bind(self, states: Sequence[StridedArray]) -> Callable[[Sequence[StridedArray]], list[StridedArray]]:
        """A callable for repeated execution on the same states."""
        return self._made.bind(states)

    def bind_from(
        self, device: Device, states: Sequence[StridedArray]
    ) -> Callable[[Sequence[StridedArray]], list[StridedArray]]:
        """`bind` for tensors of a device that is no host: each call is counted as one that falls back."""
        there = InterpretedExecutable(self.program, device, {}, self.reason).bind(states)

        def call(inputs: Sequence[StridedArray]) -> list[StridedArray]:
            moved = sum(payload.nbytes for payload in (*inputs, *states))
            note_fallback(f"program {self.program.name!r}", device, self.reason, moved)
            return there(inputs)

        return call

    def report(self) -> dict[str, Any]:
        """The interpreter's figures, and why it runs: ``fallback``."""
        return {**self._made.report(), "kernel_calls": 0, "fallback": self.reason}

    def describe(self) -> str:
        """What `argosy_cinn.explain` shows."""
        return f"on the reference interpreter: {self.reason}"


def interpret_instead(
    program: Program, device: Device, communicators: Mapping[Any, Any], error: Exception
) -> InterpretedExecutable:
    """The program on the interpreter, after ``error``: counted, and warned about once for each kind of failure."""
    reason = explain_failure(error)
    fallbacks[reason] = fallbacks.get(reason, 0) + 1
    executable = InterpretedExecutable(program, device, communicators, reason)
    warn_once(
        f"program '{program.name}' cannot be compiled and runs on the slow reference interpreter: {reason}. "
        "This is a fault of argosy_cinn; please report it",
        reason,
    )
    return executable


def warn_once(message: str, reason: str) -> None:
    """A RuntimeWarning at the user's line, once for each reason."""
    if reason not in _warned:
        _warned.add(reason)
        warn_user(message, RuntimeWarning)


def explain_failure(error: Exception) -> str:
    """The operations and what went wrong with them, on one line."""
    cause = error.__cause__ if isinstance(error, GroupError) and error.__cause__ is not None else error
    what = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
    first = what.splitlines()[0]
    return f"{error} ({first})" if cause is not error else first
