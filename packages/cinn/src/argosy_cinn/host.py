"""Host calls: what has no native code runs on the reference kernels, on views of the program's own memory.

Control flow is driven from here, too, with compiled bodies (see `argosy_cinn.control`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from argosy_cinn.control import CompileRegion, ControlCall, is_compiled
from argosy_cinn.fusion.reads import host_reads
from argosy_cinn.shapes import sizes
from argosy_phi_ops.reference.interpreter import Execution, communicates, plan_into, plan_operation
from argosy_phi_ops.reference.running import running
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value

Array = np.ndarray[Any, Any]
#: Gives the array of a value that is in memory.
Memory = Callable[[Value], Array]
Communicators = Mapping[tuple[int, ...], Any]
#: What starts, and gives an array that nobody reads.
_PLACEHOLDERS = ("prim.start", "prim.start_recv")


class HostCall:
    """One operation run between native segments; ``splats`` are constants, which need no memory."""

    def __init__(self, op: Operation, program: Program, splats: Mapping[Value, Array], compile: CompileRegion) -> None:
        self.op = op
        self.splats = splats
        self._control = ControlCall(op, compile) if is_compiled(op) else None
        self._into = plan_into(op)
        self._communicates = communicates(op)
        self._step = None if self._control is not None else plan_operation(op, program)
        self._reads = self._control.reads if self._control is not None else list(host_reads(op))

    def run(self, memory: Memory, tokens: dict[Value, Any], communicators: Communicators) -> None:
        """Read operands from memory, compute, and write results there. ``tokens`` carries what is not a tensor."""
        environment: dict[Value, Any] = {}
        for value in self._reads:
            if value in self.splats:
                environment[value] = self.splats[value]
            else:
                environment[value] = memory(value) if isinstance(value.type, TensorType) else tokens.get(value)
        if self._into is not None:
            self._run_into(self._into, memory, environment, communicators)
            tokens.update((r, None) for r in self.op.results if not isinstance(r.type, TensorType))
            return
        if self._control is not None:
            environment.update(zip(self.op.results, self._control.run(environment), strict=True))
        else:
            assert self._step is not None
            self._step(Execution({}, communicators), environment)
        for result in self.op.results:
            if not isinstance(result.type, TensorType):
                tokens[result] = environment[result]
            elif 0 not in sizes(result) and self.op.name not in _PLACEHOLDERS:
                memory(result)[...] = environment[result]

    def _run_into(
        self, call: Callable[..., None], memory: Memory, environment: Mapping[Value, Any], communicators: Communicators
    ) -> None:
        """Let the kernel write where results have their places."""
        places = [memory(r) for r in self.op.results if isinstance(r.type, TensorType)]
        made: Any = places if len(places) > 1 else places[0]
        operands = [environment[value] for value in self.op.operands]
        if not self._communicates:
            call(made, *operands)
            return
        with running(self.op):
            try:
                call(made, *operands, communicators=communicators)
            except Exception as error:
                error.add_note(f"while running '{self.op.name}'{self.op.location.suffix}")
                raise
