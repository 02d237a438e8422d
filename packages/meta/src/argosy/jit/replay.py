"""Running an exported program operator by operator, so that the tape, or a capture, sees what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from argosy_infer.errors import InputError
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import bind
from argosy_phi_ops.reference.constants import constant_array
from argosy_phi_ops.reference.symbols import evaluate_attributes
from argosy_pir import Operation, Value
from argosy_pir.dims import SymExpr
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["check_replayable", "is_replayable", "replay"]

_OTHERS = ("builtin.constant", "prim.stop_gradient", "builtin.return")


def is_replayable(program: Program) -> bool:
    """Whether a program holds operators alone, which a capture can take in."""
    return all(map(_is_operator, program.block))


def _is_operator(op: Operation) -> bool:
    return op.name.startswith("phi.") or op.name in _OTHERS


def check_replayable(program: Program) -> None:
    """Raises NotImplementedError naming an operation that is no operator, such as a loop."""
    for op in program.block:
        if not _is_operator(op):
            raise NotImplementedError(
                f"{op.name} ({op.location}) of an exported program runs compiled only: it cannot be trained"
            )


def replay(program: Program, inputs: Sequence[Any], states: Mapping[str, Tensor]) -> list[Tensor]:
    """The program's outputs. Raises InputError for inputs whose number, dtype or sizes do not fit."""
    values: dict[Value, Tensor] = {state.argument: states[state.name] for state in program.states}
    sizes = _bind_sizes(program, inputs)
    values.update(zip(program.inputs, inputs, strict=True))
    for op in program.block:
        if op.name == "builtin.constant":
            values[op.result] = Tensor._wrap(StridedArray(np.array(constant_array(op.attributes["value"], sizes))))
        elif op.name == "prim.stop_gradient":
            values[op.result] = values[op.operand(0)].detach()
        elif op.name != "builtin.return":
            values.update(zip(op.results, _run(op, values, sizes), strict=True))
    return [values[value] for value in program.outputs]


def _run(op: Operation, values: Mapping[Value, Tensor], sizes: dict[str, int]) -> tuple[Tensor, ...]:
    results = bind(get_operator(op.kind), [values[v] for v in op.operands], evaluate_attributes(op.attributes, sizes))
    return results if type(results) is tuple else (results,)


def _bind_sizes(program: Program, inputs: Sequence[Any]) -> dict[str, int]:
    """The open sizes, as the inputs tell."""
    sizes: dict[str, int] = {}
    if len(inputs) != len(program.inputs):
        raise InputError(f"the program takes {len(program.inputs)} inputs, got {len(inputs)}")
    for i, (value, x) in enumerate(zip(program.inputs, inputs, strict=True)):
        wanted = value.type
        assert isinstance(wanted, TensorType)
        shape = tuple(x.payload.shape)
        fits = x.dtype.name == wanted.dtype and len(shape) == len(wanted.shape)
        for n, m in zip(wanted.shape, shape, strict=False):
            known = sizes.setdefault(str(n), m) if isinstance(n, SymExpr) and n.symbols == {str(n)} else n
            fits = fits and (known == m or isinstance(known, SymExpr))
        if not fits:
            raise InputError(f"input {value.name_hint or i!r} is {x.dtype.name} {list(shape)}, expected {wanted}")
    return sizes
