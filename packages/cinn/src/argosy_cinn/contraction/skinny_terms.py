"""How the plan of a product of few rows or columns multiplies terms."""

from __future__ import annotations

from argosy_cinn.contraction.bfloat_terms import BfloatTerms
from argosy_cinn.contraction.block_floats import BlockFloatTerms
from argosy_cinn.contraction.byte_terms import ByteTerms
from argosy_cinn.contraction.pairs import PairTerms
from argosy_cinn.contraction.problem import Contraction
from argosy_cinn.contraction.skinny_blocking import SkinnyBlocking
from argosy_cinn.contraction.terms import Operands, Terms
from argosy_cinn.contraction.word_terms import WordTerms


def terms_of(plan: SkinnyBlocking, operands: Operands, problem: Contraction) -> Terms | None:
    """The terms of a ``plan`` of dots; None for those in the type of the sums."""
    if plan.pairs:
        return PairTerms(operands, problem.group)
    if plan.bytes:
        return ByteTerms(operands)
    if plan.words:
        return WordTerms(operands, problem.group)
    if plan.block_floats:
        return BlockFloatTerms(operands, problem.group, plan.lanes)
    return BfloatTerms(operands, plan.lanes, problem.narrow) if plan.bfloats else None
