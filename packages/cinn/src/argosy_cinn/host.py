"""Host calls: what has no native code runs on the reference kernels, on views of the program's own memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from argosy_cinn.fusion.groups import host_reads
from argosy_phi_ops.reference.interpreter import Run, plan_operation
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value

Array = np.ndarray[Any, Any]
#: Gives the array of a value that is in memory.
Memory = Callable[[Value], Array]


class HostCall:
    """One operation run by the reference interpreter."""

    def __init__(self, op: Operation, program: Program, splats: Mapping[Value, Array]) -> None:
        self.op = op
        self._step = plan_operation(op, program)
        self._reads = sorted(host_reads(op), key=str)
        self._splats = splats

    def run(self, memory: Memory, tokens: dict[Value, Any], communicators: Mapping[tuple[int, ...], Any]) -> None:
        """Read operands from memory, compute, and write results there. ``tokens`` carries what is not a tensor."""
        environment: dict[Value, Any] = {}
        for value in self._reads:
            if value in self._splats:
                environment[value] = self._splats[value]
            elif isinstance(value.type, TensorType):
                environment[value] = memory(value)
            else:
                environment[value] = tokens.get(value)
        self._step(Run({}, communicators), environment)
        for result in self.op.results:
            if isinstance(result.type, TensorType):
                self._write(memory, result, environment[result])
            else:
                tokens[result] = environment[result]

    @staticmethod
    def _write(memory: Memory, result: Value, value: Array) -> None:
        if 0 not in result.shape:
            memory(result)[...] = value
