"""From a function on tensors to primitives: what users write for gradients and bodies, inlined at IR values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_phi_ops.context import context, own_context
from argosy_phi_ops.errors import CaptureError, OperatorError
from argosy_pir.program import Program
from argosy_pir.types import Type
from argosy_pir.values import Value
from argosy_tensorcore.tensor import Tensor

__all__ = ["check_type", "inline_function"]


def inline_function(
    name: str, function: Callable[[list[Tensor]], Sequence[Any]], operands: Sequence[Value]
) -> list[Value | None]:
    """Run ``function`` on traced tensors for ``operands`` and emit what it did at the ambient builder.

    It returns a sequence of tensors and None; so does this, with values. Raises :class:`CaptureError` where it reads
    tensors other than those it is given, draws random numbers, or needs a tensor's value.
    """
    program, given = _trace(name, function, operands)
    builder = context().builder
    if builder is None:
        raise OperatorError(f"{name} was called with IR values, but no builder is active; use building(builder)")
    mapping: dict[Value, Value] = dict(zip(program.inputs, operands, strict=True))
    values = iter(builder.inline(program.block, mapping))
    return [next(values) if there else None for there in given]


def _trace(
    name: str, function: Callable[[list[Tensor]], Sequence[Any]], operands: Sequence[Value]
) -> tuple[Program, list[bool]]:
    """The program of primitives that ``function`` is, and which of its results are there."""
    from argosy_phi_ops.capture.tracer import Tracer
    from argosy_phi_ops.passes.decompose import Decompose

    with own_context() as ambient:
        ambient.grad_enabled = False  # the derivative of this is that of the primitives it becomes
        with Tracer(name) as tracer:
            inputs = [tracer.input(x.type) for x in operands]
            results = [_tensor(name, x) for x in function(inputs)]
            captured = tracer.finish([x for x in results if x is not None])
        if captured.states:
            names = ", ".join(f"{t.name} {t.dtype.name} {list(t.shape)}" for t in captured.states)
            raise CaptureError(
                f"{name} reads tensors that are none of its arguments ({names}), or draws random numbers: hand them "
                "over as operands, or make constants with zeros, ones or full"
            )
        program: Program = captured.program
        Decompose().run(program)
    return program, [x is not None for x in results]


def _tensor(name: str, x: Any) -> Tensor | None:
    if x is None or type(x) is Tensor:
        return x
    raise OperatorError(f"{name} should return tensors (None for a zero gradient), got {type(x).__name__}")


def check_type(name: str, what: str, value: Value | None, expected: Type) -> None:
    """Raise :class:`OperatorError` unless ``value`` is absent or of the type ``expected``."""
    if value is not None and value.type != expected:
        raise OperatorError(f"{name}: {what} has type {value.type}, expected {expected}")
