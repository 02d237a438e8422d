"""``scan``: a loop along the first axis of tensors that is one operation of a captured program, with derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy_phi_ops.capture.regions import record
from argosy_phi_ops.capture.tracer import Tracer, active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.errors import GraphBreak
from argosy_phi_ops.user_line import user_location
from argosy_pir import Region
from argosy_tensorcore.tensor import Tensor

__all__ = ["scan"]

Step = Callable[[list[Any], list[Any]], tuple[Sequence[Any], Sequence[Any]]]


def scan(step: Step, carried: Sequence[Tensor], xs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """``carried, ys = step(carried, slices)`` for the slices of every x [n, ...] one after the other.

    Returns the last carried tensors, which keep their shapes and dtypes from step to step, and every y of all steps
    stacked to [n, ...]. Eager it is a Python loop; while capturing one operation, whose program does not grow with n.
    Differentiable in both, by the inputs and by what ``step`` reads. Raises ``ValueError`` for axes that differ.
    """
    lengths = {x.shape[0] if x.ndim else None for x in xs}
    if len(lengths) != 1 or None in lengths:
        raise ValueError(f"scan(): xs should have first axes of one length, got shapes {[list(x.shape) for x in xs]}")
    tracer = active_tracer()
    if tracer is not None:
        return _capture(tracer, step, list(carried), list(xs))
    values, rows = list(carried), []
    sliced: list[Any] = list(xs)
    for i in range(xs[0].shape[0]):
        after, ys = step(values, [x[i] for x in sliced])
        values = list(after)
        rows.append(list(ys))
    return values, [get_operator("stack")(list(column)) for column in zip(*rows, strict=True)]


def _capture(tracer: Tracer, step: Step, carried: list[Tensor], xs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    operands = [tracer.value(x) for x in (*xs, *carried)]
    types = [v.type.with_shape(v.shape[1:]) for v in operands[: len(xs)]]  # type: ignore[attr-defined]
    types += [v.type for v in operands[len(xs) :]]

    def body(arguments: Sequence[Any]) -> list[Any]:
        tracer.starts.update(zip(arguments, operands, strict=True))
        inside = [tracer.wrap(v, v.dtype not in _DIFFERENTIABLE) for v in arguments]
        after, ys = step(inside[len(xs) :], inside[: len(xs)])
        return [len(ys), *(tracer.value(y) for y in (*ys, *after))]

    drawn = tracer._draws
    recorded = record(tracer, types, body)
    if recorded.slots or recorded.drawn != drawn:
        raise GraphBreak("backward() or random numbers within a scan")
    if recorded.written:
        raise NotImplementedError("scan(): writing in place to tensors outside of the step while capturing")
    count, *values = recorded.result
    block = recorded.finish("control.yield", values)
    for value, start in zip(values[count:], operands[len(xs) :], strict=True):
        if value.type != start.type:
            raise ValueError(f"scan(): a carried tensor starts as {start.type} and is {value.type} after a step")
    attributes = {"inputs": len(xs), "reverse": False}
    made = tracer.builder.create(
        "control.scan", operands, attributes, regions=[Region([block])], location=user_location()
    )
    results = [tracer.wrap(v, v.dtype not in _DIFFERENTIABLE) for v in made.results]
    return results[count:], results[:count]


_DIFFERENTIABLE = frozenset({"float16", "bfloat16", "float32", "float64", "complex64", "complex128"})
