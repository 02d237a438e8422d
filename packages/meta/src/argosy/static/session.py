"""Which static programs are being built on this rank: the innermost ``program_guard``, or ``enable_static()``'s."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from argosy_phi_ops.context import context, emit_at
from argosy_phi_ops.eager.dispatch import layer

if TYPE_CHECKING:
    from argosy.static.program import Program
    from argosy_tensorcore.tensor import Tensor

__all__ = [
    "current_programs",
    "in_static_mode",
    "note_parameter",
    "program_recording",
    "start_static_mode",
    "stop_static_mode",
]

_STACK = "static.stack"
_MODE = "static.mode"


def current_programs() -> tuple[Program, Program] | None:
    """The main and the startup program that record now, or None."""
    stack = context().own_values.get(_STACK)
    return stack[-1] if stack else None


@contextmanager
def program_recording(main: Program, startup: Program) -> Iterator[None]:
    """Let ``main`` record operators, and ``startup`` how parameters begin, within the block."""
    stack = context().own_values.setdefault(_STACK, [])
    stack.append((main, startup))
    try:
        with layer(main.tracer), emit_at(main.tracer.builder):
            yield
    finally:
        stack.pop()


def note_parameter(parameter: Tensor, initializer: Callable[[Tensor], Any]) -> None:
    """Tell the programs that record now, if any, of a new parameter and of what fills it."""
    programs = current_programs()
    if programs is not None:
        main, startup = programs
        main.parameters.append(parameter)
        startup.initial.append((parameter, initializer))


def in_static_mode() -> bool:
    """Whether ``enable_static()`` was called last on this rank."""
    return _MODE in context().own_values


def start_static_mode(main: Program, startup: Program) -> None:
    """Let the programs record until :func:`stop_static_mode`."""
    held = context().own_values[_MODE] = ExitStack()
    held.enter_context(program_recording(main, startup))


def stop_static_mode() -> None:
    """The end of :func:`start_static_mode`."""
    held = context().own_values.pop(_MODE, None)
    if held is not None:
        held.close()
