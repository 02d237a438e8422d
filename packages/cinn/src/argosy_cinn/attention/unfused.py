"""Attention that is not fused: its scores lie in memory, between kernels of their own.

A chain is a product of two activations (scores), its values joined with their own reductions (maxima, sums), and a
product of as many batch elements that contracts what comes of that. What is between may be anything but a product.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from argosy_cinn.attention.regions import Regions, score_obstacle
from argosy_cinn.lowering.classify import CONSTANT, INLINE, PRODUCT, REDUCE
from argosy_cinn.shapes import estimate, sizes
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.values import Value

_FLOATS = ("float64", "float32", "bfloat16", "float16")
#: Scores of fewer rows or columns are no matrix worth a thought: a token of decoding has one row.
_FEWEST = 4
#: How a value depends on scores: element by element (or through anything that is no reduction), and by a reduction.
_PLAIN, _REDUCED = 1, 2
_JOINED = _PLAIN | _REDUCED


@dataclass(slots=True)
class UnfusedAttention:
    """The product that makes the ``scores``, the products that contract them (``sinks``), and the ``reason`` where
    fusion knows one."""

    scores: Operation
    sinks: list[Operation] = field(default_factory=list)
    reason: str = ""


def unfused_attention(program: Program, kinds: dict[Operation, str], regions: Regions) -> list[UnfusedAttention]:
    """The chains of a program whose operations have the given kinds, those of ``regions`` left out."""
    fused = {op for region in regions.regions for op in region.scores}
    found: dict[Operation, UnfusedAttention] = {}
    depends: dict[Value, dict[Operation, int]] = {}
    weights: set[Value] = {state.argument for state in program.states}
    for op, kind in kinds.items():
        if kind == CONSTANT or (kind == INLINE and op.operands and weights.issuperset(op.operands)):
            weights.update(op.results)
        elif kind != PRODUCT:
            _pass_on(op, kind, depends)
        else:
            for scores in _contracted_scores(op, depends):
                found[scores].sinks.append(op)
            if op not in fused and _makes_scores(op) and weights.isdisjoint(op.operands):
                reason = score_obstacle(op) or regions.obstacles.get(op, "")
                found[op] = UnfusedAttention(op, reason=reason)
                depends[op.result] = {op: _PLAIN}
    return [chain for chain in found.values() if chain.sinks]


def _pass_on(op: Operation, kind: str, depends: dict[Value, dict[Operation, int]]) -> None:
    """Results depend on the scores that operands depend on."""
    merged: dict[Operation, int] = {}
    for operand in op.operands:
        for scores, how in depends.get(operand, {}).items():
            merged[scores] = merged.get(scores, 0) | (_REDUCED if kind == REDUCE else how)
    if merged:
        depends.update((result, merged) for result in op.results)


def _contracted_scores(op: Operation, depends: dict[Value, dict[Operation, int]]) -> list[Operation]:
    """The scores that a product contracts, joined with their reductions."""
    found = {
        scores: None
        for operand in op.operands
        for scores, how in depends.get(operand, {}).items()
        if how == _JOINED and _batch_elements(op) == _batch_elements(scores)
    }
    return list(found)


def _makes_scores(op: Operation) -> bool:
    """Whether a product is of two matrices for each batch element; without batch axes its result has to be larger than
    its operands, as activations times weights that are inputs seldom are."""
    if op.name != "prim.dot_general" or op.result.dtype not in _FLOATS:
        return False
    shape = [estimate(n) for n in sizes(op.result)]
    if len(shape) < 2 or min(shape[-2:]) < _FEWEST:
        return False
    depth = _sizes_along(op, "contract")
    return bool(op.attributes["lhs_batch"]) or min(shape[-2:]) > depth


def _batch_elements(op: Operation) -> int:
    return _sizes_along(op, "batch")


def _sizes_along(op: Operation, axes: str) -> int:
    left = sizes(op.operand(0))
    return prod(estimate(left[i]) for i in op.attributes[f"lhs_{axes}"])


__all__ = ["UnfusedAttention", "unfused_attention"]
