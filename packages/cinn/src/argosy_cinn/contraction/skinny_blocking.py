"""How a product with few rows or few columns runs (`skinny`), and which products do so."""

from __future__ import annotations

from dataclasses import dataclass, replace

from argosy_cinn.contraction.bfloat_terms import splits_bfloats
from argosy_cinn.contraction.block_floats import is_of_bytes, multiplies_block_floats
from argosy_cinn.contraction.byte_panels import multiplies_byte_panels
from argosy_cinn.contraction.byte_terms import multiplies_bytes
from argosy_cinn.contraction.pairs import PAIRED_TERMS, multiplies_pairs
from argosy_cinn.contraction.problem import Contraction, exact_in_bfloat
from argosy_cinn.contraction.word_terms import multiplies_words
from argosy_cinn.loops.schedule import batch_invariant
from argosy_cinn.printers.types import I8, bytes_of
from argosy_cinn.target import Target
from argosy_hwadapt.cpu.features import physical_cores

#: Most vectors on the skinny side.
MOST = 8
#: Wide rows of a chunk. Where those of bytes are multiplied in fours, or many skinny vectors become pairs in another
#: order, what a chunk does once counts.
_DOT_BLOCK, _BYTE_BLOCK = 128, 256
#: Bytes of results that rows of the wide operand are added to, which stay in the second-level cache.
_SWEEP_BYTES = 64 << 10
#: Least results of a chunk, which reads stretches of memory as long.
_SWEEP_LEAST = 1024
_LINE = 64
#: Terms of the shortest groups that are summed in parts of the lanes of pairs.
_LEAST_GROUP = 16


@dataclass(frozen=True, slots=True)
class SkinnyBlocking:
    """How a skinny product runs: ``few_rows`` (else few columns), ``dots`` (else sweeps), ``count`` skinny
    vectors, ``block`` wide rows of a chunk, ``lanes`` of a vector; ``pairs``: terms are multiplied in pairs of
    bfloat16; ``bfloats``: as the floats that halves of a register of bfloat16 are; ``bytes``: in fours of bytes;
    ``words``: in pairs of integers of 16 bits; ``block_floats``: in digits of these, a group at a time;
    ``byte_panels``: in bytes or words, sixteen wide rows at a time."""

    few_rows: bool
    dots: bool
    count: int
    block: int
    lanes: int
    pairs: bool = False
    bytes: bool = False
    words: bool = False
    block_floats: bool = False
    byte_panels: bool = False
    bfloats: bool = False


def plan_skinny(problem: Contraction, target: Target) -> SkinnyBlocking | None:
    """The plan of a product that is skinny, or None."""
    few_rows = _has_few_rows(problem)
    if few_rows is None or problem.run or problem.b.window is not None:
        return None
    count = problem.together or problem.m if few_rows else problem.n
    assert isinstance(count, int)
    along_r, along_k = (problem.b.column, problem.b.row) if few_rows else (problem.a.row, problem.a.column)
    lanes = target.lanes(problem.compute)
    dots = isinstance(along_k, int) and along_k == 1
    pairs = dots and multiplies_pairs(problem, few_rows, target)
    words = dots and multiplies_words(problem, few_rows, target)
    if problem.scales is not None:
        if dots and multiplies_byte_panels(problem, target):
            kind = "bytes" if is_of_bytes(problem.a) else "words"
            return SkinnyBlocking(True, True, count, _DOT_BLOCK, lanes, byte_panels=True, **{kind: True})
        pairs = pairs and _has_whole_steps(problem)
        block_floats = dots and multiplies_block_floats(problem, target) and (is_of_bytes(problem.a) or not pairs)
        pairs = pairs and not block_floats
        if words:
            return SkinnyBlocking(True, True, count, _DOT_BLOCK, lanes, words=True)
        return SkinnyBlocking(True, True, count, _DOT_BLOCK, lanes, pairs, block_floats=block_floats)
    bfloats = dots and not pairs and splits_bfloats(problem, few_rows)
    is_short = isinstance(problem.k, int) and problem.k < lanes
    is_narrow = pairs or bfloats or words
    if is_short or count == 0 or problem.column_sums is not None or _rounds_operands(problem, few_rows, is_narrow):
        return None
    if dots:
        bytes_ = multiplies_bytes(problem, few_rows, target)
        is_long = bytes_ or words or (pairs and _has_short_bytes(problem, few_rows, target))
        block = _BYTE_BLOCK if is_long else _DOT_BLOCK
        return SkinnyBlocking(few_rows, True, count, block, lanes, pairs, bytes_, words, bfloats=bfloats)
    if isinstance(along_r, int) and along_r == 1:
        return SkinnyBlocking(few_rows, False, count, _sweep_block(problem, few_rows, count), lanes)
    return None


def _has_whole_steps(problem: Contraction) -> bool:
    """Whether groups are whole steps of pairs, or steps whole groups of whole lanes."""
    k, group = problem.k, problem.group
    is_divided = PAIRED_TERMS % group == 0 and group >= _LEAST_GROUP and isinstance(k, int) and k % PAIRED_TERMS == 0
    return group % PAIRED_TERMS == 0 or is_divided


def _has_short_bytes(problem: Contraction, few_rows: bool, target: Target) -> bool:
    """Whether the wide operand is of bytes, of which larger chunks stay in the second-level cache, too."""
    is_short = isinstance(problem.k, int) and problem.k * _BYTE_BLOCK <= target.l2_bytes
    return is_short and (problem.b if few_rows else problem.a).element == I8


def _has_few_rows(problem: Contraction) -> bool | None:
    """Whether it is rows that a product has few of, not columns; None where it has many of both."""
    rows = problem.together > 0 or (isinstance(problem.m, int) and problem.m <= MOST)
    columns = isinstance(problem.n, int) and problem.n <= MOST and problem.scales is None
    if rows and columns:
        return problem.together > 0 or problem.m <= problem.n  # type: ignore[operator]
    return rows if rows or columns else None


def _rounds_operands(problem: Contraction, few_rows: bool, narrow: bool) -> bool:
    """Whether operands are rounded to bfloat16 first, which dots and sweeps do not do, but for skinny vectors where
    terms are ``narrow``."""
    a, b = exact_in_bfloat(problem.a.element), exact_in_bfloat(problem.b.element)
    return problem.narrow and not (a and b) and not (narrow and (b if few_rows else a))


def takes_all_rows(problem: Contraction, target: Target) -> bool:
    """Whether a product reads B as one of few rows does, however many there are: with scales of groups, and where bits
    are not to depend on that number (what is swept has the order that blocks have, unless those take pairs)."""
    if problem.scales is not None or not batch_invariant.get():
        return problem.scales is not None
    plan = plan_skinny(replace(problem, m=1, together=0), target)
    return plan is not None and (plan.dots or problem.narrow)


def _sweep_block(problem: Contraction, few_rows: bool, count: int) -> int:
    """Wide rows of a chunk that is swept: whole cache lines, whatever the type of the wide operand.

    The longer the stretches of memory, the better they are read: there are as many chunks as the machine has cores, or
    as keep results in the cache. Results do not depend on it.
    """
    rows = problem.n if few_rows else problem.m
    block = max(-(-rows // physical_cores()), _SWEEP_LEAST) if isinstance(rows, int) else _SWEEP_LEAST
    fits = _SWEEP_BYTES // bytes_of(problem.compute) // count
    return min(-(-block // _LINE) * _LINE, fits // _LINE * _LINE)
