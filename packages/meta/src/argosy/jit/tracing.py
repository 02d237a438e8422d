"""Capturing one call of a function as a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.amp.autocast import applied, current
from argosy.jit.arguments import Call, rebuild
from argosy.jit.compiled import Effects, OutputTree
from argosy.jit.guards import Guards
from argosy.jit.specs import traced_types
from argosy_phi_ops.capture import Captured, Tracer
from argosy_phi_ops.errors import GraphBreak
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["explain_break", "trace"]


def trace(
    function: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    call: Call,
    spec: Sequence[Any] | None,
    runtime: frozenset[int],
    guards: Guards,
) -> tuple[Captured, OutputTree, Effects]:
    """Run ``function`` under a tracer; its tensors, and the floats at positions ``runtime``, are the program's
    inputs.
    """
    types = traced_types(call, spec)
    with Tracer(name) as tracer, applied(current()):  # autocast goes on above the tracer
        tensors = [
            tracer.input(type, _label(spec, i), x.stop_gradient)
            for i, (type, x) in enumerate(zip(types, call.tensors, strict=True))
        ]
        scalar = TensorType((), default_dtype().name)
        floats = [tracer.input(scalar, f"float{i}") if i in runtime else x for i, x in enumerate(call.floats)]
        pending, numbers = iter(tensors), iter(floats)
        new_args = tuple(rebuild(x, pending, numbers) for x in args)
        new_kwargs = {key: rebuild(x, pending, numbers) for key, x in kwargs.items()}
        before = [x.payload.value for x in tensors]
        tree = OutputTree(function(*new_args, **new_kwargs))
        guards.take_back()
        effects = Effects(
            [i for i, x in enumerate(tensors) if x.payload.value is not before[i]],
            [i for i, x in enumerate(tensors) if type(x._grad) is Tensor and x._grad.payload.is_traced],
        )
        more: list[Any] = [tensors[i] for i in effects.written] + [tensors[i]._grad for i in effects.graded]
        captured = tracer.finish([*tree.traced, *more])
    return captured, tree, effects


def _label(spec: Sequence[Any] | None, i: int) -> str:
    name = getattr(spec[i], "name", None) if spec is not None and i < len(spec) else None
    return name or f"x{i}"


def explain_break(name: str, error: GraphBreak, full_graph: bool | None) -> NotImplementedError:
    """What a user should know when a function cannot be captured whole."""
    return NotImplementedError(
        f"to_static cannot capture {name} as one program: {error}.\n"
        "Python's if, while, for, int(), float(), print() and .numpy() need values that do not exist during capture. "
        "Keep the choice in tensors (paddle.where, tensor arithmetic), take it from plain Python values, or move the "
        "code that needs the value out of the captured function. Breaking the graph there, and turning such if and "
        f"while into control flow, is not implemented yet{'' if full_graph else ' (nor with full_graph=False)'}."
    )
