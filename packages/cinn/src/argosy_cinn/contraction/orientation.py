"""Where A is read, and which way round a product is computed.

A with contiguous k is read where it lies: by vector code always, by tile registers, which take 16 rows, as long as
nothing has to be padded. Where only B lies so (weights ``[outputs, inputs]``), and is the larger operand, the product
is turned: B's transpose is the A of a product with a transposed result, which is transposed in the end. What is copied
then is the smaller operand, and the larger one is read once, from where it is, and asked for while sums are made.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from argosy_cinn.contraction.problem import TILE, Contraction, Format
from argosy_cinn.printers.types import bytes_of

_PAGE = 4096
#: Rows up to which vector code copies B, beside what it computes from it, for a time that shows.
_MOST_ROWS = 512
#: Terms for each row of A, from which on copying B costs vector code more than transposing the result.
_DEEP = 4
_LEAST_TERMS = 128
#: Lines of a set of the first-level cache.
_WAYS = 8
#: Sets of the first-level cache that the lines of one column each have to be spread over.
_FEWEST_SETS = 8


def order_of_a(problem: Contraction, format: Format, tile_rows: int) -> str:
    """How the tile reads A: its "rows" or "columns" in place where they are contiguous and of the right type,
    else "packed". Pairs must be complete, columns must not end inside a tile of unknown height.
    """
    a = problem.a
    plain = a.prologue is None and a.element == problem.compute and not problem.narrow and format.terms == 1
    if isinstance(a.column, int) and a.column == 1 and a.prologue is None:
        if format.tiled:
            return "rows" if _is_whole(problem, format, tile_rows) else "packed"
        small = format.terms > 1 and bytes_of(a.element) * format.terms == bytes_of(problem.compute)
        whole = isinstance(problem.k, int) and (problem.run or problem.k) % format.terms == 0 and not format.shifted
        return "rows" if plain or (small and whole) else "packed"
    if plain and isinstance(a.row, int) and a.row == 1 and isinstance(problem.m, int) and isinstance(a.column, int):
        # Columns apart by what shares a large factor with a page would fall into few sets of the caches.
        return "columns" if gcd(a.column * bytes_of(a.element), _PAGE) <= _PAGE // _FEWEST_SETS else "packed"
    return "packed"


def tile_rows_in_cache(problem: Contraction, format: Format, tile_rows: int) -> int:
    """Rows of a register tile, of ``tile_rows`` at most: rows of A that are read in place and are pages apart share a
    set of the first-level cache, which has to hold a line of each."""
    if format.tiled or order_of_a(problem, format, tile_rows) != "rows" or not isinstance(problem.a.row, int):
        return tile_rows
    return min(tile_rows, _WAYS * (_PAGE // gcd(problem.a.row * bytes_of(problem.a.element), _PAGE)))


def _is_whole(problem: Contraction, format: Format, tile_rows: int) -> bool:
    """Whether A is whole tiles as it is: each row of one has 16 places of consecutive terms."""
    m, k = problem.m, problem.k
    place = bytes_of(problem.a.element) * format.terms == bytes_of(problem.compute)
    return place and isinstance(m, int) and isinstance(k, int) and m % tile_rows == 0 and k % (TILE * format.terms) == 0


def is_better_turned(problem: Contraction, format: Format) -> bool:
    """Whether B is the larger operand and can be read in place as the A of the transposed product."""
    m, n = problem.m, problem.n
    plain = problem.a.prologue is None and problem.b.prologue is None and problem.column_sums is None
    plain = plain and problem.b.window is None
    if not plain or not isinstance(m, int) or not isinstance(n, int) or n < 2 * m:
        return False
    if not format.tiled and (
        m > _MOST_ROWS or not isinstance(problem.k, int) or problem.k < max(_DEEP * m, _LEAST_TERMS)
    ):
        return False
    return order_of_a(turn_product(problem), format, 2 * TILE) == "rows"


def turn_product(problem: Contraction) -> Contraction:
    """The product with a transposed result; its epilogue is still that of the result as it was, and what that reads is
    not asked for."""
    a, b = problem.b.transpose(), problem.a.transpose()
    return replace(problem, m=problem.n, n=problem.m, a=a, b=b, touched=())
