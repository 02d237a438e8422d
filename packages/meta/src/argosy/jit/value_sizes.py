"""Sizes that values tell: how many segments the ids of a call name, say.

A program of its own, cut out of what is captured so far, computes each such number before the captured program runs,
which takes it as the length of one more input: its symbols are sizes like those that an ``input_spec`` leaves open.
Where an operator needs numbers, the program is for those of its first call, and serves calls that have the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy.jit import lowering
from argosy.jit.arguments import Call
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.compiler import Executable
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import suspend_layers
from argosy_phi_ops.errors import GraphBreak, ShapeError
from argosy_phi_ops.user_line import user_location
from argosy_pir.dims import SymExpr
from argosy_pir.location import Location
from argosy_pir.passes import PassManager
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["MeasuringTracer", "ValueSize", "payloads_of"]

Payloads = list[Any]


def payloads_of(call: Call, runtime: Sequence[int]) -> Payloads:
    """The inputs that a call gives itself: its tensors, and its floats at the positions ``runtime``."""
    dtype = default_dtype().numpy
    return [x.payload for x in call.tensors] + [StridedArray(np.array(call.floats[i], dtype)) for i in runtime]


class ValueSize:
    """A size that ``executable`` computes of the inputs and states of a captured function; ``number``: what it has to
    be, None where the captured program is for all."""

    __slots__ = ("_line", "_run", "_why", "number")

    def __init__(self, executable: Executable, states: Sequence[Tensor], why: str, line: Location) -> None:
        self._run = executable.bind([x.payload for x in states])
        self._why, self._line = why, line
        self.number: int | None = None

    def of(self, payloads: Payloads) -> int:
        """The size in a call. Raises ShapeError, naming the operator, for a negative one."""
        found = int(self._run(payloads)[0].to_host())
        if found < 0:
            raise ShapeError(f"{self._why}: got {found} ({self._line.file}:{self._line.line})")
        return found

    def input(self, payloads: Payloads) -> StridedArray:
        """The input of the captured program that is as long."""
        return StridedArray(np.zeros(self.of(payloads), np.bool_))


class MeasuringTracer(Tracer):
    """A tracer of whole functions. ``payloads`` gives the inputs of the call that is captured, ``numbers`` tells that
    sizes which values tell are numbers in the program."""

    def __init__(self, name: str, payloads: Callable[[], Payloads], backend: Any, numbers: bool) -> None:
        super().__init__(name)
        self.sizes: list[ValueSize] = []
        self._payloads, self._backend, self._numbers = payloads, backend, numbers

    @property
    def has_symbols(self) -> bool:
        """Whether there are such sizes, and they are symbols."""
        return bool(self.sizes) and not self._numbers

    def size_of(self, x: Tensor, why: str) -> Any:
        """See `Tracer.size_of`. Raises GraphBreak within a branch or loop, whose values nothing outside of it has."""
        line = user_location()
        if self.journals:
            raise GraphBreak(
                f"{why} is known in no program where it stands in a branch or loop that depends on a tensor "
                f"({line.file}:{line.line})"
            )
        value = self.value(get_operator("cast")(get_operator("reshape")(x, []), "int64"))
        with suspend_layers():
            device = lowering.device_of([*self.given, *self.states()])
            executable = lowering.lower(_measure_program(self.program, value), self._backend, device)
            size = ValueSize(executable, self.states(), why, line)
        self.sizes.append(size)
        if self._numbers:
            size.number = size.of(self._payloads())
            return size.number
        symbol = SymExpr.symbol(f"v{len(self.sizes) - 1}")
        self.program.add_input(TensorType((symbol,), "bool"), str(symbol))
        return symbol


def _measure_program(program: Program, value: Value) -> Program:
    """What computes ``value`` in a program that has not ended yet, and changes no state."""
    mapping: dict[Value, Value] = {}
    made = program.clone(mapping)
    made.name = f"{program.name}_size"
    made.set_outputs([mapping[value]])
    PassManager("dce").run(made)
    return made
