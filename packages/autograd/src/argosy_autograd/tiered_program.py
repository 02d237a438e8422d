"""Programs that may be run again and again: interpreted at first and compiled for those who come back, where that gives
the same bits; else compiled from the first run on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import maxsize
from typing import Any

from argosy_phi_ops.compiler import get_compiler
from argosy_phi_ops.context import own_context
from argosy_phi_ops.eager.exactness import is_exact
from argosy_phi_ops.eager.tiering import is_deterministic
from argosy_phi_ops.reference.interpreter import prepare
from argosy_pir import Program
from argosy_pir.passes import get_pass
from argosy_tensorcore.storage import StridedArray

__all__ = ["TieredProgram", "expand_custom_gradients"]

_RUNS_BEFORE_COMPILING = 2  # of exact programs


def expand_custom_gradients(program: Program) -> Program:
    """``program`` without derivatives that users give, which are there for further derivatives: itself, or a copy."""
    if not any(inner.dialect == "ad" for op in program.block for inner in op.walk()):
        return program
    plain = program.clone()
    get_pass("expand-gradients")().run(plain)
    return plain


class TieredProgram:
    """Arrays to arrays by ``program``, on the host ``device``."""

    __slots__ = ("_compiled", "_device", "_interpreted", "_program", "_runs", "_waits")

    def __init__(self, program: Program, device: Any) -> None:
        self._program = program
        self._device = device
        self._runs = 0
        self._waits = _RUNS_BEFORE_COMPILING if is_exact(program) else maxsize if is_deterministic() else 0
        self._interpreted: Callable[[Sequence[Any]], list[Any]] = prepare(program)
        self._compiled: Callable[[Sequence[Any]], list[Any]] | None = None

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """One run."""
        self._runs += 1
        if self._runs <= self._waits:
            return self._interpreted(arrays)
        if self._compiled is None:
            with own_context():
                self._compiled = get_compiler().compile(self._program.clone(), self._device).bind([])
        return [made.ndarray for made in self._compiled([StridedArray.from_array(a) for a in arrays])]
