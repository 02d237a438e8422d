"""Programs of operators on devices that serve all sizes: code that is built does not grow with the shapes met.

The first shape of a pattern has code of its own; from the second on all share a program whose sizes are symbols. A
pattern says which sizes are equal, and which are small numbers, on which code may depend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_hwadapt import Device
from argosy_phi_ops.bounded_cache import BoundedCache
from argosy_phi_ops.checks.index_checks import checked_program
from argosy_phi_ops.compiler import get_compiler
from argosy_phi_ops.declare.attribute_types import attribute_key
from argosy_phi_ops.errors import CompileError
from argosy_pir.dims import Dim, SymExpr
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import default_dtype, default_listeners
from argosy_tensorcore.storage import StridedArray

__all__ = ["shared_run"]

Run = Callable[[Sequence[StridedArray]], Sequence[StridedArray]]
#: The least size that is a symbol.
_LEAST = 16
_found: BoundedCache = BoundedCache(1024)
"""By operator, pattern, attributes and device: the types that were met first, then the run for all, or None."""
_programs: BoundedCache = BoundedCache(1024)
"""By operator, pattern and attributes: the program for all sizes, or None, where a body may decide by their numbers."""
default_listeners += [_found.clear, _programs.clear]


def shared_run(op: Any, types: Sequence[TensorType], attributes: dict[str, Any], device: Device) -> Run | None:
    """What runs ``op`` on operands of ``types`` with code for all sizes; None for the first types of a pattern, and
    where there is no such code."""
    source = getattr(op, "source", None)  # of a derivative: sizes are those of what it was derived of
    base = op if source is None else source.op
    met = tuple(types if source is None else source.types)
    opened = _symbolic_types(met)
    if opened == met or not _is_ours(base):
        return None
    given = attributes if source is None else source.attributes
    key = base, opened, attribute_key(given), source and source.key, default_dtype()
    found = _found.get((key, device), ())
    if isinstance(found, tuple):
        if found in ((), met):
            _found[key, device] = met
            return None
        if key not in _programs:
            _programs[key] = _program(op, opened, attributes, source)
        program = _programs[key]
        found = _found[key, device] = None if program is None else _compile(program, device)
    run: Run | None = found
    return run


def _symbolic_types(types: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Types with symbols for sizes, one for all that are equal."""
    symbols: dict[Dim, Dim] = {}
    for n in (n for type in types for n in type.shape):
        if isinstance(n, int) and n >= _LEAST and n not in symbols:
            symbols[n] = SymExpr.symbol(f"n{len(symbols)}")
    return tuple([TensorType(tuple([symbols.get(n, n) for n in type.shape]), type.dtype) for type in types])


def _program(op: Any, types: Sequence[TensorType], attributes: dict[str, Any], source: Any) -> Program | None:
    try:
        program = op.expand(types, attributes).runs if source is None else source.program(types)
        if program is None or not _tells_sizes(program, types):
            return None
        return checked_program(op, program, attributes)
    except Exception:  # noqa: BLE001  (bodies may raise anything at symbols: numbers have programs of their own)
        return None


def _compile(program: Program, device: Device) -> Run | None:
    try:
        made: Any = get_compiler().compile(program, device)
    except CompileError:
        return None
    run: Run = made.bind(())
    return None if made.report().get("not_symbolic", "unknown") else run


def _tells_sizes(program: Program, types: Sequence[TensorType]) -> bool:
    """Whether all sizes that are symbols are sizes of inputs (the derivative of a sum reads none of its shape)."""
    told = {n for value in program.inputs for n in value.shape if not isinstance(n, int)}
    return all(isinstance(n, int) or n in told for type in types for n in type.shape)


def _is_ours(op: Any) -> bool:
    """Whether the operator's body is known to decide nothing by the numbers of sizes."""
    body = getattr(op, "body", None)
    return body is not None and str(body.__module__).startswith("argosy_phi_ops.ops.")
