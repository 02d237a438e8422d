"""What a matrix product is to the emitters: sizes, operands as strided matrices, and what happens around the
arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from argosy_cinn.forms.product import Window
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import BFLOAT, FLOAT, I8, I32, Index, Value, lanes_of
from argosy_cinn.target import Target

#: ``prologue(b, batch, row, column, value, axis) -> value``: applied to elements of an operand as they are
# read. ``value`` is a
#: vector (or scalar) of the operand's element type whose first lane is element (row, column) and whose lanes
# go on
#: along ``axis`` (0: rows, 1: columns); lanes outside the matrix hold zero, and what they become is not used.
#: Must return the contraction's compute type with as many lanes. ``mask`` is None or tells the lanes inside.
Prologue = Callable[[Function, "Cells"], Value]
#: Rows of a tile register of AMX, and places of four bytes in a row.
TILE = 16
#: ``epilogue(b, cells)``: gets finished elements of the product and stores what becomes of them.
Epilogue = Callable[[Function, "Cells"], None]


@dataclass(slots=True)
class Cells:
    """Consecutive elements of a matrix in registers.

    ``batch``: the batch coordinates; ``row``, ``column``: of the first element; ``values``: vectors of equal
    lanes that follow each other along ``axis`` (1: along the columns); ``masks``: for each vector the lanes
    inside the matrix, or None for all. Memory outside the masks must not be touched. ``flushed``: no value is
    denormal, as the machine's products of pairs of bfloat16 leave them.
    """

    batch: tuple[Index, ...]
    row: Index
    column: Index
    values: list[Value]
    masks: list[Value | None]
    axis: int = 1
    flushed: bool = False


@dataclass(slots=True)
class Matrix:
    """An operand: element (i, j) at ``pointer[sum(batch_i * strides_i) + i * row + j * column]``, strides in
    elements.

    ``element`` is the LLVM element type in memory, ``unsigned`` tells how to widen integers. ``prologue``
    changes elements as they are read (see `Prologue`). Where terms of k come in runs (`Contraction.run`), ``jump`` is
    from the first element of a run to that of the next. With a ``window`` elements are where that says, and ``row`` and
    ``column`` mean nothing. ``numbers``: what the prologue makes of each byte (0..255), where that is known.
    """

    pointer: Value
    row: Index
    column: Index
    element: str = FLOAT
    batch: tuple[Index, ...] = ()
    prologue: Prologue | None = None
    unsigned: bool = False
    jump: Index = 0
    window: Window | None = None
    numbers: tuple[float, ...] | None = None

    def transpose(self) -> Matrix:
        """The same memory with rows and columns exchanged (no prologue)."""
        if self.prologue is not None or self.window is not None:
            raise ValueError("a matrix with a prologue or a window has a fixed orientation")
        return Matrix(self.pointer, self.column, self.row, self.element, self.batch, None, self.unsigned, self.jump)


@dataclass(slots=True)
class Block:
    """The part of an operand to pack: ``matrix`` with its batch offset already in ``origin`` (the address of
    element (0, 0)), from (``row``, ``column``), ``rows`` x ``columns`` elements; ``batch`` are the coordinates, for the
    prologue."""

    matrix: Matrix
    origin: Value
    row: Index
    column: Index
    rows: Index
    columns: Index
    batch: tuple[Index, ...]


@dataclass(slots=True)
class Contraction:
    """``C[batch, m, n] = sum over k of A[batch, m, k] * B[batch, k, n]``, handed to ``epilogue`` row by row.

    Sizes are Python integers (specialised) or ``i64`` values (one kernel for every size). ``compute`` is the
    element type of accumulators: ``float`` for float32, bfloat16 and float16 operands, ``double``, ``i32``
    or ``i64``. Each element is one chain of fused multiply-adds over k in ascending order, whatever the
    blocking: the bits depend on nothing else.

    ``column_sums`` gets the sums of B's columns over k, once for each batch element (row 0): the gradient of
    a bias comes with that of a weight, from the same read of B.

    ``touched`` are matrices of C's shape that the epilogue reads at the places it is given: they
    are prefetched while the sums are made. It is a hint, and pays where they are larger than the cache.

    ``siblings`` are products of the same matrices that differ in what the prologue makes of an element of B, and in the
    epilogue: the two halves of a byte, say. Where the product is skinny, all of them come from one read of B.

    ``run``: terms of k that lie one stride apart in both operands; the next ones begin a `Matrix.jump` later (0: all
    are one run). It cuts the steps along k. B may be seen through a `Window`.

    ``together``: where the number of rows is known when it runs, how many of them (at most `skinny.MOST`) a product
    takes at a time that reads B as one of few rows does; 0: it is blocked.

    ``scales`` [groups, n] are factors of the sums over ``group`` terms of k, and ``offsets`` [groups, n] of those terms
    of A, which are added. Such a product reads B as one of few rows does, however many there are.

    ``minimal``: windows of 3 x 3 may be summed by minimal filtering (`winograd`), with its rounding.

    Where both operands are bfloat16, or ``narrow`` is set (operands are then rounded to bfloat16 first; what a
    prologue makes of bytes has to be rounded already),
    machines with instructions for pairs of bfloat16 products use them: the order within a pair is then the
    machine's. int8 operands with ``i32`` accumulators use byte products in the same way, exactly.
    """

    m: Index
    n: Index
    k: Index
    a: Matrix
    b: Matrix
    epilogue: Epilogue
    batch: tuple[Index, ...] = ()
    compute: str = FLOAT
    narrow: bool = False
    column_sums: Epilogue | None = None
    touched: tuple[Matrix, ...] = ()
    siblings: tuple[Contraction, ...] = ()
    run: int = 0
    together: int = 0
    scales: Matrix | None = None
    offsets: Matrix | None = None
    group: int = 0
    minimal: bool = False
    location: str = field(default="")


@dataclass(frozen=True, slots=True)
class Format:
    """How packed operands lie in places of the compute type: ``terms`` consecutive terms of k in one place
    (1; 2 bfloat16 with float accumulators; 4 int8 with int32 accumulators). ``rounded``: single terms are
    rounded to bfloat16 first. ``shifted``: A is signed and stored plus 128, since the machine multiplies
    unsigned by signed bytes; panels of B then begin with what that adds to each column, negated. ``tiled``: places
    are multiplied by tile registers (`amx`), in whole blocks of `TILE` places along k: the rest of a block is zero."""

    compute: str
    terms: int = 1
    rounded: bool = False
    shifted: bool = False
    tiled: bool = False

    def places(self, b: Function, depth: Index) -> Index:
        """Places along k that ``depth`` terms take."""
        count = b.ceil_div(depth, self.terms)
        return b.mul(b.ceil_div(count, TILE), TILE) if self.tiled else count


def exact_in_bfloat(element: str) -> bool:
    """Whether every number of an element type is a bfloat16, so that nothing is rounded."""
    return element in (BFLOAT, I8)


def operand_format(problem: Contraction, target: Target) -> Format:
    """The format of a product's packed operands on a machine."""
    a, b, wide = problem.a, problem.b, target.vector_bits == 512
    narrow = problem.narrow or (a.element == BFLOAT and b.element == BFLOAT)
    seen = b.window is not None  # tile registers have no way of their own of packing that
    if narrow and problem.compute == FLOAT and wide and target.has("amx-bf16") and not seen:
        return Format(problem.compute, terms=2, tiled=True)
    if narrow and problem.compute == FLOAT and target.multiplies_pairs:
        return Format(problem.compute, terms=2)
    plain = a.prologue is None and b.prologue is None and problem.column_sums is None
    bytes_ = plain and a.element == I8 and b.element == I8
    if bytes_ and problem.compute == I32 and wide and target.has("amx-int8"):
        return Format(problem.compute, terms=4, tiled=True)
    if bytes_ and not b.unsigned and problem.compute == I32 and wide and target.has("avx512vnni"):
        return Format(problem.compute, terms=4, shifted=not a.unsigned)
    return Format(problem.compute, rounded=problem.narrow)


@dataclass(frozen=True, slots=True)
class store_rows:  # reads as the function it is to its caller
    """The plain epilogue: store to a row-major matrix with ``leading`` elements between rows.

    Whole tiles of it skip the epilogue: the register tile stores them itself.
    """

    pointer: Value
    leading: Index
    batch: tuple[Index, ...] = ()
    element: str = FLOAT

    def __call__(self, b: Function, cells: Cells) -> None:
        place = self.place(b, cells.batch, cells.row, cells.column)
        for v, (value, mask) in enumerate(zip(cells.values, cells.masks, strict=True)):
            b.masked_store(value, b.gep(place, v * lanes_of(value.type), self.element), mask)

    def place(self, b: Function, batch: tuple[Index, ...], row: Index, column: Index) -> Value:
        """The address of an element."""
        offset = b.add(b.mul(row, self.leading), column)
        for position, stride in zip(batch, self.batch, strict=True):
            offset = b.add(offset, b.mul(position, stride))
        return b.gep(self.pointer, offset, self.element)


def coordinates(b: Function, problem: Contraction, position: Index) -> tuple[Index, ...]:
    """The batch coordinates of a batch element by its number."""
    out: list[Index] = []
    for size in reversed(problem.batch):
        out.insert(0, b.rem(position, size))
        position = b.div(position, size)
    return tuple(out)


def origin(b: Function, matrix: Matrix, batch: tuple[Index, ...]) -> Value:
    """The address of element (0, 0) of a batch element."""
    offset: Index = 0
    for position, stride in zip(batch, matrix.batch, strict=True):
        offset = b.add(offset, b.mul(position, stride))
    return b.gep(matrix.pointer, offset, matrix.element)
