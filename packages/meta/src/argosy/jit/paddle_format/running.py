"""Running the steps of Paddle's programs, on tensors or on those of a capture, with their branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import argosy.jit.paddle_format.layers
import argosy.jit.paddle_format.tensors  # noqa: F401 (both: their rules)
from argosy.jit.conversion.values import Mismatch
from argosy.jit.paddle_format.arrays import ARRAYS, run_array_operator
from argosy.jit.paddle_format.document import Block, Document, Step
from argosy.jit.paddle_format.operators import as_operand, is_known, run_operator
from argosy.static.control_flow import cond, while_loop
from argosy_infer.errors import ProgramFileError
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.errors import CaptureError, GraphBreak, ShapeError
from argosy_tensorcore.tensor import Tensor

__all__ = ["DATA_DEPENDENT", "check_operators", "run"]

DATA_DEPENDENT = (CaptureError, Mismatch, ShapeError)
"""What a capture fails with where sizes are known only when a program runs."""
_ASIDE = frozenset({"batch_norm_", "sync_batch_norm_"})
"""Operators that overwrite statistics, not their first operand."""
_FLOW = frozenset({"parameter", "data", "fetch", "if", "while", "yield", "shadow_output"})


def check_operators(document: Document) -> None:
    """Raises NotImplementedError naming an operator that is not known here, wherever it stands."""
    for step in document.walk():
        if step.name not in _FLOW and step.name not in ARRAYS and not is_known(step.name):
            named = f"Paddle's operator {step.name} is not read yet (attributes {sorted(step.attributes)})"
            raise NotImplementedError(named)


def run(document: Document, states: Mapping[str, Tensor], data: Callable[[Step], Tensor], file: str) -> list[Tensor]:
    """The outputs of a program. data: gives the input that a step stands for.

    Raises ProgramFileError naming a step that cannot be run, one of :data:`DATA_DEPENDENT` while a capture runs.
    """
    runner = _Runner(states, data, file)
    runner.run(document, _Scope(None), ())
    return [as_operand(x) for _, x in sorted(runner.outputs.items())]


class _Scope:
    """The values of a block by their numbers; those of the blocks around it are seen within."""

    __slots__ = ("around", "values")

    def __init__(self, around: _Scope | None) -> None:
        self.around = around
        self.values: dict[int, Any] = {0: None}

    def find(self, number: int) -> Any:
        """The value. Raises KeyError for a number that stands for nothing here."""
        return self.holder(number).values[number]

    def holder(self, number: int) -> _Scope:
        """The scope that holds a number."""
        scope: _Scope | None = self
        while scope is not None:
            if number in scope.values:
                return scope
            scope = scope.around
        raise KeyError(f"value {number} is used before it is computed")


class _Runner:
    """One run: ``outputs`` are filled by their column."""

    def __init__(self, states: Mapping[str, Tensor], data: Callable[[Step], Tensor], file: str) -> None:
        self.states, self.data, self.file = states, data, file
        self.outputs: dict[int, Any] = {}

    def run(self, block: Block, around: _Scope | None, arguments: Sequence[Any]) -> list[Any]:
        """What the block yields."""
        scope = _Scope(around)
        scope.values.update(zip(block.arguments, arguments, strict=True))
        for step in block.steps:
            try:
                if step.name == "yield":
                    return [as_operand(scope.find(i)) for i in step.operands]
                scope.values.update(_results(step, self._one(step, scope)))
            except (ProgramFileError, *DATA_DEPENDENT):
                raise
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
                raise ProgramFileError(f"{self.file}: operator {step.name} is damaged: {error!r:.200}") from error
        return []

    def _one(self, step: Step, scope: _Scope) -> Any:
        if step.name == "parameter":
            return self.states.get(step.attributes["name"])
        if step.name == "data":
            return self.data(step)
        operands = [scope.find(i) for i in step.operands]
        if step.name == "fetch":
            return self.outputs.setdefault(int(step.attributes["col"]), operands[0])
        if step.name == "if":
            return self._if(step, scope, operands[0])
        if step.name == "while":
            return self._run_while(step, scope, operands)
        if step.name in ARRAYS:
            return run_array_operator(step.name, operands, step.attributes)
        results = run_operator(step.name, operands, step.attributes)
        if step.name.endswith("_") and step.name not in _ASIDE:
            self._overwrite(step, scope, results)
        return results

    def _if(self, step: Step, scope: _Scope, test: Any) -> Any:
        holds, fails = step.blocks
        results = cond(as_operand(test), lambda: self.run(holds, scope, ()), lambda: self.run(fails, scope, ()))
        return results if len(step.results) > 1 else results[0] if results else None

    def _run_while(self, step: Step, scope: _Scope, operands: list[Any]) -> Any:
        (body,) = step.blocks
        start = [as_operand(x) for x in operands]
        results = while_loop(lambda test, *_: test, lambda _, *given: self.run(body, scope, given), start)[1:]
        return results if len(step.results) > 1 else results[0] if results else None

    def _overwrite(self, step: Step, scope: _Scope, results: Any) -> None:
        """Let the operand that an operator overwrites be its result from here on, in the blocks around it, too."""
        number = step.operands[-1 if step.name == "assign_out_" else 0]
        holder = scope.holder(number)
        if holder is not scope and active_tracer() is not None:
            raise GraphBreak(f"{step.name} overwrites a value of the block around it")
        holder.values[number] = results[0] if isinstance(results, list) else results


def _results(step: Step, results: Any) -> dict[int, Any]:
    """The values of the step's results by their numbers."""
    many = len(step.results) > 1 or (step.name == "split" and len(step.operands) == 1)
    if not many and step.name in ("split", "split_with_num"):
        results = results[0]
    return dict(zip(step.results, results if many else [results], strict=len(step.results) == 1))
