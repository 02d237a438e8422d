"""``argosy.explain``: what a function becomes, and where its time and memory go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argosy.jit import lowering
from argosy.jit.compiled import CompiledCall
from argosy.jit.static_function import StaticFunction
from argosy.nn.layer import Layer

if TYPE_CHECKING:
    from argosy_cinn.tools.report import Report

__all__ = ["explain"]


def explain(function: Any, *args: Any, measure: bool = True, repeats: int = 10, **kwargs: Any) -> Report:
    """Capture and compile ``function(*args, **kwargs)`` and report on it.

    function: a function, a method, a Layer, or what ``to_static`` made of one; a whole training step is fine.
    measure: run it, ``repeats`` times plain and instrumented, on copies of its states, which stay as they are.

    The report shows itself: passes, captured and decomposed program, each kernel with the traffic it should need, the
    time it takes, its share of what the machine can do and the lines it comes from, and the memory plan with its
    largest buffers. ``report["kernels"]`` is one section's text; ``report.save("x.html")`` writes everything.
    """
    from argosy_cinn.tools.report import Report

    static = _captured_anew(function)
    with lowering.record_stages() as stages:
        compiled, call = static.prepare(*args, **kwargs)
    report = Report(f"{static.__name__}: one program of {sum(1 for _ in compiled.program.block)} operations")
    report.add("passes", lowering.passes(static._backend))
    for title, text in stages:
        report.add(title, text)
    _add_compiled(report, compiled, call, measure, repeats)
    return report


def _captured_anew(function: Any) -> StaticFunction:
    """A captured function with no captures yet, so that each stage is seen."""
    target = function.forward if isinstance(function, Layer) else function
    if isinstance(target, StaticFunction):
        return StaticFunction(target._function, target._spec, target._backend, target._full_graph)
    if not callable(target):
        raise TypeError(f"explain() takes a function, a method or a Layer, not {type(function).__name__}")
    return StaticFunction(target)


def _add_compiled(report: Report, compiled: CompiledCall, call: Any, measure: bool, repeats: int) -> None:
    from argosy_cinn.executable import Executable
    from argosy_cinn.tools.measure import add_program
    from argosy_cinn.tools.measure import measure as measured

    executable: Any = compiled.executable
    inputs, states = compiled.payloads(call), [payload for _, payload in compiled.bound]
    if hasattr(executable, "for_sizes"):  # symbolic sizes
        executable = executable.for_sizes(inputs, states)
    if not isinstance(executable, Executable):
        describe = getattr(executable, "describe", lambda: f"interpreted by {type(executable).__name__}")
        report.add("program", describe())
        return
    figures = measured(executable, inputs, states, repeats) if measure else None
    add_program(report, executable, figures)
