"""What rules are written with: constants, operations before the one that is rewritten, what a value is made by, and
patterns made of rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops.context import context
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.attributes import Dense
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.rewrite.pattern import Pattern, PatternTable, Rewriter
from argosy_pir.types import TensorType
from argosy_pir.values import OpResult, Value

#: What replaces the results of an operation; None where the rule does not apply.
Rule = Callable[[Operation], "Value | Sequence[Value] | None"]


class Replacement(Pattern):
    """A rule for operations of one name as a pattern: primitives that it calls are put before the operation."""

    def __init__(self, name: str, root: str, rule: Rule, benefit: int = 1) -> None:
        self.name, self.root, self.benefit = name, root, benefit
        self._rule = rule

    def rewrite(self, op: Operation, rewriter: Rewriter) -> bool:
        """Put what the rule gives in the place of ``op``."""
        ambient = context()
        around, ambient.builder = ambient.builder, Builder.before(op)  # `building` takes as long as most rules
        try:
            made = self._rule(op)
        finally:
            ambient.builder = around
        if made is None:
            return False
        rewriter.replace(op, [made] if isinstance(made, Value) else made)
        return True


def replacements(name: str, rules: Mapping[str, Rule]) -> PatternTable:
    """Patterns of one name from rules by the names of operations."""
    return PatternTable(Replacement(name, root, rule) for root, rule in rules.items())


def splat_of(value: Value) -> Any:
    """The number that a splat constant repeats, as a numpy scalar; None for other values."""
    if not isinstance(value, OpResult):
        return None
    if value.op.name == "prim.broadcast":
        return splat_of(value.op.operand(0))
    if value.op.name != "builtin.constant":
        return None
    dense = value.op.attributes["value"]
    return np.frombuffer(dense.data, numpy_dtype(dense.type.dtype))[0] if dense.is_splat else None


def result_type(op: Operation) -> TensorType:
    """The type of the one result."""
    type = op.result.type
    assert isinstance(type, TensorType)
    return type


def constant(number: Any, type: TensorType) -> Value:
    """A tensor of one number."""
    data = b"" if 0 in type.shape else np.asarray(number, numpy_dtype(type.dtype)).tobytes()
    builder = _ambient()
    return builder.create("builtin.constant", (), {"value": Dense(type, data)}, (type,)).result


def create(name: str, operands: Sequence[Value], attributes: Any, type: TensorType, location: Any) -> Value:
    """The result of an operation of the compiler's own, before the one that is rewritten."""
    return _ambient().create(name, tuple(operands), attributes, (type,), location=location).result


def _ambient() -> Builder:
    builder = context().builder
    assert builder is not None
    return builder


def emit(name: str, *operands: Value, **attributes: Any) -> Value:
    """The result of a primitive before the operation that is rewritten."""
    result: Value = PRIMITIVES[name](*operands, **attributes)
    return result


def defined_by(value: Value, name: str) -> Operation | None:
    """The operation that makes a value where it has that name."""
    return value.op if isinstance(value, OpResult) and value.op.name == name else None


def is_number(value: Value, number: int) -> bool:
    """Whether a value repeats that number."""
    found = splat_of(value)
    return found is not None and bool(found == number)
