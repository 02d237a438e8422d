"""Choosing register tiles, cache blocks and the grid of chunks, from shapes and the target alone.

A chunk computes a block of C (``rows`` x ``columns``) of one batch element. It walks k in steps of
``depth``; for each it packs the block of B into panels of ``tile_columns`` columns (it stays in the
second-level cache), and passes row tiles of A (in the first-level cache) over the panels (Goto and van de
Geijn, 2008). Elements of C are chains over k whatever the blocks, so nothing here changes a bit of a result.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from math import lcm

from argosy_cinn.contraction.orientation import is_better_turned, order_of_a, tile_rows_in_cache, turn_product
from argosy_cinn.contraction.problem import TILE, Contraction, Format, operand_format
from argosy_cinn.printers.types import Index, bytes_of
from argosy_cinn.target import Target

_SMALL_BYTES = 128 << 10
#: Rows up to which tile registers wait for B: its blocks are small then, to leave the cache to what comes next.
_FEW_ROWS = 256
#: (rows, vectors) of a register tile for rows of A that are copied, instead of (6, 4).
_PACKED_TILE = (8, 3)
#: Panels of B beside which a last one that is narrow does not show.
_MANY_PANELS = 24
#: Columns of a block of B at most; and, were it larger than its part of the cache, at least where A is converted.
_WIDE = 512
#: Bytes along k of a step with tile registers.
_LONGEST_TILED = 4096


@dataclass(frozen=True, slots=True)
class Blocking:
    """``lanes`` of a vector; register tile of ``tile_rows`` x ``vectors`` vectors; cache blocks ``depth``
    (k), ``rows`` and
    ``columns``; ``packs_b``: whether B is copied to panels; ``format``: what packed operands look like;
    ``turned``: whether all of this is about the transposed product (`orientation`)."""

    lanes: int
    tile_rows: int
    vectors: int
    depth: int
    rows: int
    columns: int
    packs_b: bool
    format: Format
    turned: bool = False

    @property
    def tile_columns(self) -> int:
        """Columns of a register tile and of a panel."""
        return self.lanes * self.vectors

    @property
    def turns_last(self) -> bool:
        """Whether all sums of a chunk wait to be transposed: a tile of tile registers is transposed alone, smaller ones
        need their neighbours."""
        return self.turned and not self.format.tiled


#: Who chooses instead (`argosy_cinn.tuning.tuner`), for as long as a program is emitted.
chooser: ContextVar[Callable[[Contraction, Target], Blocking | None] | None] = ContextVar("chooser", default=None)


def choose(problem: Contraction, target: Target) -> Blocking:
    """The blocking of a product: a measured one where a `chooser` has it, else `estimate_blocking`."""
    measured = chooser.get()
    found = None if measured is None else measured(problem, target)
    return estimate_blocking(problem, target) if found is None else found


def estimate_blocking(problem: Contraction, target: Target) -> Blocking:
    """The blocking that follows from shapes and the target; unknown sizes count as large."""
    lanes = target.lanes(problem.compute)
    format = operand_format(problem, target)
    is_turned = is_better_turned(problem, format)
    problem = turn_product(problem) if is_turned else problem
    tile_rows, vectors = _tile(problem.m, problem.n, lanes, target.registers)
    if format.tiled:
        tile_rows, vectors = _amx_tile(problem.m, problem.n)
    tile_rows = tile_rows_in_cache(problem, format, tile_rows)
    if order_of_a(problem, format, tile_rows) == "packed" and _packs_better(tile_rows, vectors, problem.n, lanes):
        tile_rows, vectors = _PACKED_TILE
    size = bytes_of(problem.compute) // format.terms
    width = lanes * vectors
    packs_b = format.terms > 1 or problem.column_sums is not None or not _reads_b_in_place(problem)
    in_place = order_of_a(problem, format, tile_rows) != "packed"
    depth = _depth(problem, size, packs_b, format, in_place)
    # Half of the second-level cache holds the block of B; the rest is for A, C and what the epilogue reads.
    panels = max(target.l2_bytes * 9 // 16 // (depth * size * width), 1)
    few = format.tiled and isinstance(problem.m, int) and problem.m <= _FEW_ROWS
    widest = panels * width if format.tiled and in_place else _WIDE
    # A is copied for each block: where that converts it (bytes with signs to bytes without), it costs more than panels
    # that come from the third-level cache.
    fitting = max(panels * width, _WIDE) if format.shifted and not format.tiled else panels * width
    columns = _balance(problem.n, min(fitting, widest if packs_b and not few else 256), width)
    rows = _rows(problem, tile_rows)
    return Blocking(lanes, tile_rows, vectors, depth, rows, columns, packs_b, format, is_turned)


def candidates(problem: Contraction, target: Target) -> list[Blocking]:
    """The estimated blocking, and others that differ from it in one thing: the shape of the register tile, the depth
    of a step, or the columns of a block. All of them give the same bits."""
    first = estimate_blocking(problem, target)
    problem = turn_product(problem) if first.turned else problem
    found = [_with_tile(problem, first, rows, vectors) for rows, vectors in _other_tiles(first, target)]
    unit = TILE * first.format.terms if first.format.tiled else 16
    for depth in (first.depth // 2, first.depth * 2):
        if isinstance(problem.k, int) and unit <= depth < 2 * problem.k:
            found.append(replace(first, depth=-(-depth // unit) * unit))
    for columns in (first.columns // 2, first.columns * 2):
        if isinstance(problem.n, int) and first.tile_columns <= columns < 2 * problem.n:
            found.append(replace(first, columns=_balance(problem.n, columns, first.tile_columns)))
    return list(dict.fromkeys([first, *found]))


def _other_tiles(first: Blocking, target: Target) -> list[tuple[int, int]]:
    """(rows, vectors) of other register tiles; none where the product is too narrow for the usual one."""
    if first.format.tiled:
        return [(TILE, 4)] if (first.tile_rows, first.vectors) == (2 * TILE, 2) else []
    usual, others = ((6, 4), [(12, 2), (8, 3)]) if target.registers >= 32 else ((6, 2), [(4, 3), (12, 1)])
    if (first.tile_rows, first.vectors) == _PACKED_TILE and target.registers >= 32:
        return [usual, others[0]]
    return others if (first.tile_rows, first.vectors) == usual else []


def _with_tile(problem: Contraction, first: Blocking, rows: int, vectors: int) -> Blocking:
    width = first.lanes * vectors
    columns = _balance(problem.n, max(first.columns // width * width, width), width)
    return replace(first, tile_rows=rows, vectors=vectors, rows=_rows(problem, rows), columns=columns)


def _depth(problem: Contraction, size: int, packs_b: bool, format: Format, in_place: bool) -> int:
    """Terms of a step along k: one step where the panels still fit, else steps of equal length. Tiles are so fast that
    carrying sums from step to step shows: their steps are as long as may be, unless A is copied beside the panels.
    """
    k, unit, window = problem.run or problem.k, 16, problem.b.window
    if window is not None and not window.runs_along_rows:
        unit = lcm(window.period, format.terms)
    if format.tiled:
        return _balance(k, (_LONGEST_TILED if in_place else _LONGEST_TILED // 4) // size, TILE * format.terms)
    single = (512 if packs_b else 800) * 4 // size
    if isinstance(k, int) and k <= single:
        return max(-(-k // unit) * unit, unit)
    return _balance(k, 400 * 4 // size, unit)


def _tile(m: Index, n: Index, lanes: int, registers: int) -> tuple[int, int]:
    """(rows, vectors) of the register tile: as near to square in loads as fits, shrunk to narrow or skinny
    products.
    """
    budget = 24 if registers >= 32 else 12
    vectors = 4 if registers >= 32 else 2
    if isinstance(n, int):
        vectors = max(min(vectors, -(-n // lanes)), 1)
    # few rows: more columns hide the latency of fused multiply-adds
    if isinstance(m, int) and 0 < m < budget // vectors:
        widest = 8 if registers >= 32 else 4
        if isinstance(n, int):
            widest = max(min(widest, -(-n // lanes)), 1)
        return m, max(min(widest, budget // m), 1)
    if isinstance(m, int) and 0 < m <= budget // 3:  # one tile that is a bit narrower, and no narrow second one
        return m, min(vectors, budget // m)
    return min(budget // vectors, 16), vectors


def _packs_better(tile_rows: int, vectors: int, n: Index, lanes: int) -> bool:
    """Whether a tile with a power of two of rows is as good for the arithmetic: copying A needs no masks then."""
    _, fewer = _PACKED_TILE
    if (tile_rows, vectors) != (6, 4) or not isinstance(n, int):
        return False
    return n % (fewer * lanes) == 0 or n >= _MANY_PANELS * fewer * lanes


def _amx_tile(m: Index, n: Index) -> tuple[int, int]:
    """(rows, vectors) of four accumulators in tile registers: square, or one row of them for skinny products."""
    rows = TILE if isinstance(m, int) and m <= TILE else 2 * TILE
    vectors = 4 * TILE // rows
    return rows, max(min(vectors, -(-n // TILE)), 1) if isinstance(n, int) else vectors


def _reads_b_in_place(problem: Contraction) -> bool:
    """Whether packing B would cost more than it brings: rows of B are contiguous, and few rows of A use each
    element, or B is small enough to stay in the cache as it is.
    """
    b, m, n, k = problem.b, problem.m, problem.n, problem.k
    plain = b.prologue is None and b.element == problem.compute and not problem.narrow and b.window is None
    if not plain or not isinstance(b.column, int) or b.column != 1 or not isinstance(n, int):
        return False
    if isinstance(m, int) and m <= 64:
        return True
    return isinstance(k, int) and k * n * bytes_of(problem.compute) <= _SMALL_BYTES


def _rows(problem: Contraction, tile_rows: int) -> int:
    """The most rows of a chunk: they bound the memory for sums between steps along k, and a block of B is packed once
    for them."""
    return _balance(problem.m, -(-2048 // tile_rows) * tile_rows, tile_rows)


def _balance(size: Index, limit: int, multiple: int) -> int:
    """The block size at most ``limit`` that cuts ``size`` into equal parts, rounded up to a multiple."""
    if not isinstance(size, int):
        return limit
    parts = max(-(-size // limit), 1)
    part = -(-size // parts)
    return max(-(-part // multiple) * multiple, multiple)
