"""Structured control flow in the interpreter: `control.if`, `while`, `for` and `scan`.

Regions run in the environment of the operation, so they see the values around them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_phi_ops.errors import CompileError
from argosy_phi_ops.reference.kernels.registry import Array, numpy_dtype
from argosy_phi_ops.reference.symbols import evaluate_dim, evaluate_shape
from argosy_pir.core import Operation
from argosy_pir.types import TensorType

if TYPE_CHECKING:
    from argosy_phi_ops.reference.interpreter import BlockPlan, Environment, Execution, Step


def plan_control(op: Operation, regions: list[BlockPlan]) -> Step:
    """The step that executes the control operation `op` with these `regions`.

    Raises:
        CompileError: for one that is not known here.
    """
    plan = _PLANS.get(op.name)
    if plan is None:
        raise CompileError(f"the reference interpreter does not know '{op.name}'; it knows {', '.join(_PLANS)}")
    return plan(op, regions)


def _read(environment: Environment, op: Operation) -> list[Any]:
    return [environment[value] for value in op.operands]


def _plan_if(op: Operation, regions: list[BlockPlan]) -> Step:
    def step(run: Execution, environment: Environment) -> None:
        chosen = regions[0] if environment[op.operand(0)] else regions[1]
        environment.update(zip(op.results, chosen.run(run, environment, ()), strict=True))

    return step


def _plan_while(op: Operation, regions: list[BlockPlan]) -> Step:
    condition, body = regions

    def step(run: Execution, environment: Environment) -> None:
        carried = _read(environment, op)
        while condition.run(run, environment, carried)[0]:
            carried = body.run(run, environment, carried)
        environment.update(zip(op.results, carried, strict=True))

    return step


def _plan_for(op: Operation, regions: list[BlockPlan]) -> Step:
    (body,) = regions

    def step(run: Execution, environment: Environment) -> None:
        start, stop, stride, *carried = _read(environment, op)
        if not stride:
            raise ValueError(f"'control.for' at {op.location} has a step of zero")
        for index in range(int(start), int(stop), int(stride)):
            carried = body.run(run, environment, [np.asarray(index, start.dtype), *carried])
        environment.update(zip(op.results, carried, strict=True))

    return step


def _plan_scan(op: Operation, regions: list[BlockPlan]) -> Step:
    (body,) = regions
    count, backwards = op.attributes["inputs"], op.attributes.get("reverse") or False
    stacked = op.results[: len(op.results) - (len(op.operands) - count)]

    def step(run: Execution, environment: Environment) -> None:
        operands = _read(environment, op)
        xs, carried = operands[:count], operands[count:]
        length = xs[0].shape[0] if xs else evaluate_dim(op.attributes["length"], run.symbols)
        outputs = [_empty_array(result.type, run) for result in stacked]
        for i in reversed(range(length)) if backwards else range(length):
            yielded = body.run(run, environment, [*(x[i, ...] for x in xs), *carried])
            for output, value in zip(outputs, yielded[: len(outputs)], strict=True):
                output[i] = value
            carried = yielded[len(outputs) :]
        environment.update(zip(op.results, [*outputs, *carried], strict=True))

    return step


def _empty_array(type_: Any, run: Execution) -> Array:
    assert isinstance(type_, TensorType)
    return np.empty(evaluate_shape(type_.shape, run.symbols), numpy_dtype(type_.dtype))


_PLANS = {
    "control.if": _plan_if,
    "control.while": _plan_while,
    "control.for": _plan_for,
    "control.scan": _plan_scan,
}
