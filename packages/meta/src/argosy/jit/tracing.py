"""Capturing one call of a function as a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.amp.casting import cast_operands, current
from argosy.jit.arguments import Call, rebuild
from argosy.jit.assignments import Assignments, NeedsCarried
from argosy.jit.automatic_sizes import AutomaticSizes
from argosy.jit.compiled import Effects, OutputTree
from argosy.jit.conversion.source import convert_function, converted_callee
from argosy.jit.graph_breaks import BreakingTracer
from argosy.jit.open_sizes import OpenSizes
from argosy.jit.partitioned_program import CaptureLayouts
from argosy.jit.places import Place
from argosy.jit.reporting import Break
from argosy.jit.specs import traced_types
from argosy.jit.structure import GivenContainers
from argosy_phi_ops.capture.boolean_masking import is_plain
from argosy_phi_ops.capture.regions import check_nothing_caught
from argosy_phi_ops.capture.tracer import CapturedProgram, Tracer
from argosy_phi_ops.errors import GraphBreak
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["FinishedCall", "explain_break", "trace"]


def trace(
    function: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    call: Call,
    sizes: OpenSizes | AutomaticSizes | None,
    runtime: frozenset[int],
    assignments: Assignments,
    tracer: Tracer,
) -> tuple[CapturedProgram, OutputTree, Effects] | FinishedCall:
    """Run ``function`` under ``tracer``; its tensors, and the floats at positions ``runtime``, are the program's
    inputs. Where the graph broke the call is done, and its result comes back.
    """
    types = traced_types(call) if sizes is None else sizes.types(call)
    spec = None if sizes is None else sizes.spec
    types += [TensorType(x.payload.shape, x.payload.dtype.name) for x in assignments.values]
    all_tensors = tracer.given = [*call.tensors, *assignments.values]
    function = convert_function(function, not tracer.breaks)
    if isinstance(tracer, BreakingTracer):
        tracer.code = getattr(getattr(function, "__func__", function), "__code__", None)
    tracer.callee = converted_callee
    tracer.placing = CaptureLayouts()
    with tracer, cast_operands(current()):  # autocast goes on above the tracer
        tensors = [
            tracer.input(given, _label(spec, i), x.stop_gradient)
            for i, (given, x) in enumerate(zip(types, all_tensors, strict=True))
        ]
        scalar = TensorType((), default_dtype().name)
        floats = [tracer.input(scalar, f"float{i}") if i in runtime else x for i, x in enumerate(call.floats)]
        pending, numbers = iter(tensors), iter(floats)
        new_args = tuple(rebuild(x, pending, numbers) for x in args)
        new_kwargs = {key: rebuild(x, pending, numbers) for key, x in kwargs.items()}
        before = [x.payload.value for x in tensors]
        containers = GivenContainers((args, kwargs), (new_args, new_kwargs))
        assignments.begin(tensors[len(call.tensors) :])
        try:
            result = function(*new_args, **new_kwargs)
            finished = _finish_capture(tracer, assignments, result, containers, tensors, call)
        except BaseException:
            assignments.restore()
            raise
        if finished is not None:
            return finished
        tree = OutputTree(result, assignments.results)
        effects = Effects(
            [i for i, x in enumerate(tensors) if x.payload.value is not before[i]],
            [i for i, x in enumerate(tensors) if type(x._grad) is Tensor and x._grad.payload.is_traced],
        )
        more: list[Any] = [tensors[i] for i in effects.written] + [tensors[i]._grad for i in effects.graded]
        captured = tracer.finish([*tree.traced, *more])
    return captured, tree, effects


def _finish_capture(
    tracer: Tracer,
    assignments: Assignments,
    result: Any,
    containers: GivenContainers,
    tensors: Sequence[Tensor],
    call: Call,
) -> FinishedCall | None:
    """What a function did besides computing its ``result``, as a program will do it; where that breaks the graph the
    call is done. Raises NeedsCarried where the capture has to begin anew."""
    check_nothing_caught(tracer)
    if isinstance(tracer, BreakingTracer):
        finished = _finish_broken(tracer, assignments, result, containers, tensors, call)
        if finished is not None:
            assignments.restore()
            return finished
    elif wanted := assignments.missing_inputs(tracer, result):
        raise NeedsCarried(wanted)
    else:
        _settle_masks(tracer, [result, assignments.new_tensors()])
    assignments.take_back(tracer)
    return None


def _finish_broken(
    tracer: BreakingTracer,
    assignments: Assignments,
    result: Any,
    containers: GivenContainers,
    tensors: Sequence[Tensor],
    call: Call,
) -> FinishedCall | None:
    """The finished call where the graph broke, or breaks now: the function did what no program can repeat."""
    if containers.has_changed():
        _give_up(tracer, "the function changes a list or a dictionary among its arguments")
        containers.write_back(tensors, call.tensors)
    _settle_masks(tracer, [result, assignments.new_tensors()])
    if not tracer.broken and tracer.kept_elsewhere([result, assignments.new_tensors()]):
        _give_up(tracer, "the function keeps a tensor that it computes in a list or another object")
    if tracer.broken:
        return FinishedCall(result, tracer.float_needed, tracer.line, tracer.noted)
    wanted = assignments.missing_inputs(tracer, result)
    if not wanted:
        return None
    _give_up(tracer, f"the first call finds that {', '.join(map(str, wanted))} is read and replaced")
    return FinishedCall(result, False, None, None, wanted)


def _settle_masks(tracer: Tracer, outputs: Any) -> None:
    if not all(map(is_plain, OutputTree(outputs).traced)):
        tracer.settle("the function returns what a mask selects, whose size depends on values")


def _give_up(tracer: BreakingTracer, why: str) -> None:
    if not tracer.broken:
        tracer.give_up(why)


class FinishedCall:
    """A call that is done, since the graph broke: its ``result``, whether capturing floats by value would help, the
    ``line`` of the function where that was, None where it is not known, the report's entry, and places that had better
    be inputs of the next capture."""

    __slots__ = ("by_value", "carried", "line", "noted", "result")

    def __init__(
        self, result: Any, by_value: bool, line: int | None, noted: Break | None, carried: Sequence[Place] = ()
    ) -> None:
        self.carried = carried
        self.result = result
        self.by_value = by_value
        self.line = line
        self.noted = noted


def _label(spec: Sequence[Any] | None, i: int) -> str:
    name = getattr(spec[i], "name", None) if spec is not None and i < len(spec) else None
    return name or f"x{i}"


def explain_break(name: str, error: GraphBreak) -> NotImplementedError:
    """What a user should know when a function cannot be captured whole."""
    return NotImplementedError(
        f"to_static(full_graph=True) cannot capture {name} as one program: {error}.\n"
        "Python code that needs the value of a tensor (print(), .numpy(), item(), assert, "
        "if and while in a lambda or in code without source) has none during capture. Keep the choice in "
        "tensors (paddle.where, tensor arithmetic), take it from plain Python values, or leave out full_graph=True: "
        "then Python goes on eagerly from there, and paddle.jit.report() tells where."
    )
