"""``first_nan``: which operation of a program, gradients and all, made the first NaN or infinity, and at which line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.jit.lowering import simplify
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Operation, TensorType
from argosy_tensorcore.tensor import Tensor

__all__ = ["Culprit", "first_nan"]


class Culprit(NamedTuple):
    """The operation that made the first one.

    ``operation`` is its name, ``where`` the line of the user's code, ``phase`` "forward", "input-gradient" or
    "weight-gradient", ``elements`` how many elements of its result are not finite, ``operands`` smallest and largest
    element of each operand.
    """

    operation: str
    where: str
    phase: str
    elements: int
    operands: tuple[tuple[float, float], ...]

    def __str__(self) -> str:
        ranges = ", ".join(f"[{low:g}, {high:g}]" for low, high in self.operands)
        return f"{self.operation} ({self.phase}) at {self.where} made {self.elements} NaN or infinite from {ranges}"


def first_nan(func: Callable[..., Any], *inputs: Tensor, infinities: bool = True) -> Culprit | None:
    """Run ``func(*inputs)`` operation by operation and tell the first that makes a NaN (or, with ``infinities``, an
    infinity) of finite operands; None where there is none.

    ``func`` is captured as by ``jit.to_static(full_graph=True)``, with the gradients that it asks for; nothing that it
    writes is kept. All values are held at once, so this is for looking into a step that failed, not for training.
    Loops and branches count as one operation.
    """
    with Tracer("first_nan") as tracer:
        traced = [tracer.input(TensorType(x.payload.shape, x.dtype.name), None, x.stop_gradient) for x in inputs]
        made = func(*traced)
        results = [made] if type(made) is Tensor else [y for y in made or () if type(y) is Tensor]
        captured = tracer.finish(results)
    program = captured.program
    simplify(program)
    operations = [op for op in program.block if op is not program.block.last and op.results]
    values = [v for op in operations for v in op.results if isinstance(v.type, TensorType)]
    given = [*program.inputs, *(state.argument for state in program.states)]
    program.set_outputs(values)
    arrays = [np.asarray(t.numpy()) for t in (*inputs, *captured.states)]
    computed = interpret(program, arrays[: len(inputs)], arrays[len(inputs) :])[0]
    known = dict(zip((*given, *values), (*arrays, *computed), strict=True))
    bad = _not_finite if infinities else _not_a_number
    for op in operations:
        count = sum(bad(known[v]) for v in op.results if v in known)
        if count and not any(bad(known[v]) for v in op.operands if v in known) and op.name != "builtin.constant":
            return _culprit(op, count, [known[v] for v in op.operands if v in known])
    return None


def _not_finite(x: Any) -> int:
    return int((~np.isfinite(x)).sum()) if x.dtype.kind in "fc" else 0


def _not_a_number(x: Any) -> int:
    return int(np.isnan(x).sum()) if x.dtype.kind in "fc" else 0


def _culprit(op: Operation, count: int, operands: list[Any]) -> Culprit:
    sized = [np.abs(x) if x.dtype.kind == "c" else x for x in operands if x.size]
    ranges = tuple((float(x.min()), float(x.max())) for x in sized)
    phase = str(op.annotations.get("phase", "forward"))
    return Culprit(op.kind, str(op.location), phase, count, ranges)
