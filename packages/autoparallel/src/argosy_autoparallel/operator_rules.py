"""Rules of whole operators, which the partitioner runs in place of their decompositions where they apply.

A rule is a function of an :class:`OperatorCall`; it gives an :class:`OperatorPlan`, or None where the decomposition is
to be partitioned. Whose rule applies in programs with gradients, too, has derivatives as a whole (see
``argosy_autograd.rules.whole_operators``).

>>> from argosy_autoparallel.operator_rules import ruled_operators
>>> ruled_operators()
('topk',)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from argosy_autoparallel.local_slice import chunk
from argosy_autoparallel.placement import Replicate
from argosy_autoparallel.resharding.emitter import Emitter, block
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops import prim
from argosy_pir import Operation, Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["OperatorCall", "OperatorPlan", "find_plan", "operator_rule", "ruled_operators"]


class OperatorCall(NamedTuple):
    """An operation ``phi.*`` on global tensors, and how its operands lie by now."""

    op: Operation
    layouts: Sequence[Layout]

    @property
    def attributes(self) -> dict[str, Any]:
        """Those of the operator."""
        return dict(self.op.attributes)


Emission = Callable[[Emitter, Sequence[Value]], Sequence[Value]]


class OperatorPlan(NamedTuple):
    """The layouts that an operator wants of its operands and gives its results, and what emits a rank's part: a
    function of the emitter and the local operands, with the primitives and the communication that it takes."""

    operands: Sequence[Layout]
    results: Sequence[Layout]
    emit: Emission


Rule = Callable[[OperatorCall], OperatorPlan | None]
_RULES: dict[str, Rule] = {}


def operator_rule(name: str) -> Callable[[Rule], Rule]:
    """Decorator: file the rule of the operator ``name``. Raises ``ValueError`` where it has one."""

    def register(function: Rule) -> Rule:
        if _RULES.setdefault(name, function) is not function:
            raise ValueError(f"operator '{name}' has a rule: {_RULES[name]!r}")
        return function

    return register


def ruled_operators() -> tuple[str, ...]:
    """The names of the operators with rules, which programs to be partitioned keep whole."""
    return tuple(_RULES)


def find_plan(call: OperatorCall) -> OperatorPlan | None:
    """What the rule of an operator says; None where its decomposition is to be partitioned."""
    found = _RULES.get(call.op.kind)
    return None if found is None else found(call)


@operator_rule("topk")
def _(call: OperatorCall) -> OperatorPlan | None:
    """Along a split axis: the largest of each rank's part are gathered, and the largest of those found.

    Each part has as many elements as are asked for, so that parts to be gathered are equal; of equal elements those of
    the first ranks are the first ones.
    """
    x, layout, attributes = call.op.operand(0), call.layouts[0], call.attributes
    shape: Any = x.shape
    axis = attributes.get("axis")
    at = (len(shape) - 1 if axis is None else axis) % max(len(shape), 1)
    dims, k = layout.sharding_dims(at), attributes["k"]
    if len(dims) != 1 or layout.is_partial or not layout.is_plain or not x.type.is_static:  # type: ignore[attr-defined]
        return None
    (dim,) = dims
    ranks, size, itemsize = layout.mesh.shape[dim], shape[at], as_dtype(x.dtype).itemsize
    fewest = min(chunk(size, ranks, rank)[1] for rank in range(ranks))
    if not 0 < k <= fewest or ranks * k * (itemsize + 8) >= size * itemsize:
        return None
    descending = attributes.get("largest", True)

    def select(*columns: Value) -> list[Value]:
        made = prim.sort(*columns, axis=at, keys=1, descending=descending, stable=True)
        return [block(column, at, 0, k) for column in made]

    def emit(emitter: Emitter, operands: Sequence[Value]) -> list[Value]:
        (part,) = operands
        group, me = emitter.line(layout.mesh, dim)
        index = prim.iota(shape=tuple(part.shape), axis=at, dtype="int64")
        index = prim.add(index, prim.constant(chunk(size, ranks, me)[0], "int64", tuple(part.shape)))
        chosen = [
            emitter.communicate("all_gather", column, group=group, size=ranks, axis=at)
            for column in select(part, index)
        ]
        return select(*chosen)  # type: ignore[arg-type]

    return OperatorPlan([layout], [layout.with_placement(dim, Replicate())] * 2, emit)
