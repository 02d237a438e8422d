"""The decomposition of an operator for given operand types: a small program of primitives.

From it come the result types (infer-meta), the code that the ``decompose`` pass inlines, the eager kernel of operators
without a fast one, and the derivative that autograd derives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from argosy_phi_ops.bounded_cache import BoundedCache
from argosy_phi_ops.checks.error_messages import complete_message
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare import promotion
from argosy_phi_ops.declare.attribute_types import attribute_key
from argosy_phi_ops.errors import CaptureError, OperatorError
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.primitives.binding import constant
from argosy_pir.builder import Builder
from argosy_pir.core import Block, Operation
from argosy_pir.program import Program
from argosy_pir.types import Type
from argosy_pir.values import Value
from argosy_tensorcore.dtype import default_dtype

if TYPE_CHECKING:
    from argosy_phi_ops.declare.operator import Operator

__all__ = ["EXPANSIONS", "Expansion", "expand", "inline_body"]

_NARROW = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})


class Expansion:
    """``program`` computes the operator from inputs of ``operand_types``; ``result_types`` are its outputs' types.

    ``bare`` tells that the operator returns one value rather than a tuple. ``runs`` is the program that is executed
    where ``program`` holds more, for whoever differentiates it.
    """

    __slots__ = ("bare", "derived", "program", "result_types", "runs")

    def __init__(self, program: Program, bare: bool, runs: Program | None = None) -> None:
        self.program = program
        self.runs = program if runs is None else runs
        self.bare = bare
        self.result_types: tuple[Type, ...] = tuple(value.type for value in program.outputs)
        self.derived: dict[str, Any] = {}
        """What subsystems derive from the program (kernels, derivatives), under keys of their own."""

    def inline(self, operands: Sequence[Value], block: Block, before: Operation | None) -> list[Value]:
        """Copy the program's operations into ``block`` before ``before``; returns the values of its outputs."""
        mapping: dict[Value, Value] = dict(zip(self.program.inputs, operands, strict=True))
        return self.program.block.inline_into(block, before, mapping)


EXPANSIONS: dict[Operator, BoundedCache] = {}
"""Those made so far, by operand types, attributes and the default dtype."""


def expand(op: Operator, operand_types: Sequence[Type], attributes: dict[str, Any]) -> Expansion:
    """The decomposition of ``op`` for operands of these types, cached. Raises what its body raises."""
    key = tuple(operand_types), attribute_key(attributes), default_dtype()
    known = EXPANSIONS.get(op)
    if known is None:
        known = EXPANSIONS[op] = BoundedCache()
    found: Expansion | None = known.get(key)
    if found is None:
        found = known[key] = _expand(op, key[0], attributes)
    return found


def _expand(op: Operator, operand_types: Sequence[Type], attributes: dict[str, Any]) -> Expansion:
    """Run the body of ``op`` on symbolic operands."""
    if op.opaque:
        raise CaptureError(f"{op.name} has no decomposition into primitives: it runs eagerly only")
    program = Program(op.name)
    operands = [program.add_input(t) for t in operand_types]
    with emit_at(Builder.at_end(program.block)):
        try:
            results = inline_body(op, operands, attributes)
        except OperatorError as error:
            raise complete_message(op, operand_types, attributes, error) or error from None
    bare = isinstance(results, Value)
    program.set_outputs([results] if bare else list(results))
    return Expansion(program, bare)


def inline_body(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Promote IR values and call the body of ``op`` on them, emitting at the ambient builder."""
    promoted = _promote(op, operands)
    narrow = next((x.dtype for x in promoted if x.dtype in _NARROW), None) if op.upcast else None
    if narrow is not None:
        promoted = [_convert(x, "float32") if x.dtype == narrow else x for x in promoted]
    results = op.body(**op.signature.regroup(promoted, attributes))
    if isinstance(results, list):
        results = tuple(results)
    return results if narrow is None else _round(results, narrow)


def _round(results: Any, dtype: str) -> Any:
    """Results in float32 rounded to a narrower dtype."""
    if isinstance(results, tuple):
        return tuple([_round(each, dtype) for each in results])
    return _convert(results, dtype) if results.dtype == "float32" else results


def _promote(op: Operator, operands: Sequence[Any]) -> list[Value]:
    dtypes = promotion.promote(op.promote, op.name, [promotion.describe(x) for x in operands])
    return [_convert(x, dtype) for x, dtype in zip(operands, dtypes, strict=True)]


def _convert(x: Any, dtype: str) -> Value:
    if not isinstance(x, Value):
        return constant(x, dtype)
    if x.dtype == dtype:
        return x
    result: Value = PRIMITIVES["cast"](x, dtype=dtype)
    return result
