"""Products with few rows or few columns: bound by reading the large operand once, so it is never copied.

Let the *wide* operand have r rows of length k (B transposed for a product with few rows, A for one with few
columns) and the *thin* one ``count`` vectors of length k. Two forms, by the direction in which the wide
operand is contiguous:

- along k: `_dots` keeps one vector of partial sums for each (wide row, thin vector), several wide rows at a
  time, and adds its lanes at the end; the order of a sum depends on k and the vector width alone;
- along r: `_sweeps` adds a few terms of k at a time to a block of results in the first-level cache, reading
  whole stretches of memory; each result is one chain over k in ascending order, as in `gemm`.

Results of a block lie in scratch memory as ``[count][block]`` and go to the epilogue row by row.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy_cinn.contraction.packing import convert_element, read_strided
from argosy_cinn.contraction.problem import Cells, Contraction, Matrix, coordinates, exact_in_bfloat, origin
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import Index, Value, bytes_of, is_float, vector
from argosy_cinn.runtime.workers import scratch
from argosy_cinn.target import Target

#: Most vectors on the thin side.
MOST = 8
_DOT_BLOCK = 64
_SWEEP_BYTES = 16 << 10
_SWEEP_MOST = 1024
_THIN_BYTES = 32 << 10
_LONG = 512


@dataclass(frozen=True, slots=True)
class ThinPlan:
    """How a thin product runs: ``few_rows`` (else few columns), ``dots`` (else sweeps), ``count`` thin
    vectors, ``block`` wide rows of a chunk, ``lanes`` of a vector."""

    few_rows: bool
    dots: bool
    count: int
    block: int
    lanes: int


def plan_thin(problem: Contraction, target: Target) -> ThinPlan | None:
    """The plan of a product that is thin, or None."""
    if problem.run or problem.b.window is not None:
        return None
    few_rows = isinstance(problem.m, int) and problem.m <= MOST
    few_columns = isinstance(problem.n, int) and problem.n <= MOST
    if few_rows and few_columns:
        few_rows = problem.m <= problem.n  # type: ignore[operator]
    if not few_rows and not few_columns:
        return None
    count = problem.m if few_rows else problem.n
    assert isinstance(count, int)
    along_r, along_k = (problem.b.column, problem.b.row) if few_rows else (problem.a.row, problem.a.column)
    lanes = target.lanes(problem.compute)
    rounds = problem.narrow and not (exact_in_bfloat(problem.a.element) and exact_in_bfloat(problem.b.element))
    if rounds or problem.column_sums is not None or count == 0 or (isinstance(problem.k, int) and problem.k < lanes):
        return None
    if isinstance(along_k, int) and along_k == 1:
        return ThinPlan(few_rows, True, count, _DOT_BLOCK, lanes)
    if isinstance(along_r, int) and along_r == 1:
        block = min(_SWEEP_BYTES // bytes_of(problem.compute) // count, _SWEEP_MOST) // lanes * lanes
        return ThinPlan(few_rows, False, count, block, lanes)
    return None


def thin_grid(b: Function, problem: Contraction, plan: ThinPlan) -> Index:
    """The number of chunks: batch elements x blocks of wide rows."""
    chunks = b.ceil_div(problem.n if plan.few_rows else problem.m, plan.block)
    for size in problem.batch:
        chunks = b.mul(chunks, size)
    return chunks


def emit_thin(b: Function, problem: Contraction, plan: ThinPlan, chunk: Value) -> None:
    """Emit the code of one chunk into a kernel."""
    _Thin(b, problem, plan).emit(chunk)


class _Thin:
    def __init__(self, b: Function, problem: Contraction, plan: ThinPlan) -> None:
        self.b, self.problem, self.plan = b, problem, plan
        self.compute, self.lanes = problem.compute, plan.lanes
        self.type = vector(problem.compute, plan.lanes)
        self.size = bytes_of(problem.compute)
        self.wide_rows = problem.n if plan.few_rows else problem.m
        self.wide = problem.b if plan.few_rows else problem.a
        # Where arithmetic or conversion fills the time, the hardware's prefetchers see too little of what
        # comes next.
        self.prefetches = plan.count > 1 or bytes_of(self.wide.element) < self.size
        self.thin = problem.a if plan.few_rows else problem.b
        # A wide row takes one sum for each of the products that read it, and each thin vector.
        self.products = (problem, *problem.twins)
        self.sums = plan.count * len(self.products)

    def emit(self, chunk: Value) -> None:
        b, plan, problem = self.b, self.plan, self.problem
        blocks = b.ceil_div(self.wide_rows, plan.block)
        self.row0 = b.mul(b.rem(chunk, blocks), plan.block)
        self.rows = b.minimum(plan.block, b.sub(self.wide_rows, self.row0))
        self.batch = coordinates(b, problem, b.div(chunk, blocks))
        self.wide_origin, self.thin_origin = (origin(b, m, self.batch) for m in (self.wide, self.thin))
        self._allocate()
        self._prepare_thin()
        if plan.dots:
            self._dots()
        else:
            self._sweeps()
        self._finish()

    def _allocate(self) -> None:
        """Results, then a copy of the thin vectors where they cannot be used in place."""
        b, plan = self.b, self.plan
        self.in_place = _usable(self.thin, self.compute, self._thin_stride())
        results = self.sums * plan.block * self.size
        waiting = results * self.lanes if plan.dots and plan.count > 2 else 0
        padded = b.mul(b.ceil_div(self.problem.k, self.lanes), self.lanes)
        copy = 0 if self.in_place else b.mul(padded, plan.count * self.size)
        slab = scratch(b, b.add(results + waiting + 192, copy))
        self.results, self.waiting = slab, b.at(slab, results + 64, "i8")
        self.vectors, self.vector_step = b.at(self.waiting, waiting + 64, "i8"), padded
        if self.in_place:
            self.vectors = self.thin_origin
            self.vector_step = self.thin.row if plan.few_rows else self.thin.column

    def _thin_stride(self) -> Index:
        return self.thin.column if self.plan.few_rows else self.thin.row

    def _prepare_thin(self) -> None:
        """Copy the thin vectors to consecutive elements of the compute type."""
        if self.in_place:
            return
        b, matrix = self.b, self.thin
        for t in range(self.plan.count):
            with b.loop(0, self.problem.k, self.lanes) as k:
                mask = b.tail_mask(b.sub(self.problem.k, k.index), self.lanes)
                row, column = (t, k.index) if self.plan.few_rows else (k.index, t)
                value = self._read(matrix, self.thin_origin, row, column, 1 if self.plan.few_rows else 0, mask)
                b.store(value, b.at(self.vectors, b.add(b.mul(t, self.vector_step), k.index), self.compute))

    def _read(self, matrix: Matrix, origin: Value, row: Index, column: Index, axis: int, mask: Value | None) -> Value:
        """A vector of an operand along ``axis``, converted and given to its prologue."""
        return self._made(matrix, self._load(matrix, origin, row, column, axis, mask))

    def _load(self, matrix: Matrix, origin: Value, row: Index, column: Index, axis: int, mask: Value | None) -> Cells:
        """A vector of an operand along ``axis`` as it is in memory."""
        b = self.b
        stride = matrix.column if axis == 1 else matrix.row
        place = b.at(origin, b.add(b.mul(row, matrix.row), b.mul(column, matrix.column)), matrix.element)
        value = read_strided(b, place, matrix.element, stride, self.lanes, mask)
        return Cells(self.batch, row, column, [value], [mask], axis)

    def _made(self, matrix: Matrix, cells: Cells) -> Value:
        """What an operand's prologue, or a conversion, makes of loaded elements."""
        if matrix.prologue is not None:
            return matrix.prologue(self.b, cells)
        return convert_element(self.b, cells.values[0], self.compute, matrix.unsigned)

    def _read_wide(self, r: Index, k: Index, along_k: bool, mask: Value | None) -> Value:
        """A vector of the wide operand from (r, k) on, along k or along r."""
        row, column = (k, r) if self.plan.few_rows else (r, k)
        axis = int(along_k != self.plan.few_rows)
        return self._read(self.wide, self.wide_origin, row, column, axis, mask)

    def _wide_place(self, r: Index, k: Index) -> Value:
        """The address of an element of the wide operand."""
        b, wide = self.b, self.wide
        r_step, k_step = (wide.column, wide.row) if self.plan.few_rows else (wide.row, wide.column)
        return b.at(self.wide_origin, b.add(b.mul(r, r_step), b.mul(k, k_step)), wide.element)

    def _multiply_add(self, x: Value, y: Value, z: Value) -> Value:
        b = self.b
        return b.fma(x, y, z) if is_float(self.compute) else b.binary("add", b.binary("mul", x, y), z)

    # -- contiguous along k

    def _dots(self) -> None:
        """Blocks of k for which the thin vectors stay in the first-level cache; sums wait in scratch
        memory between them.
        """
        b, k = self.b, self.problem.k
        depth = _THIN_BYTES // (self.plan.count * self.size)
        if self.plan.count <= 2 or (isinstance(k, int) and k <= depth):
            self._dot_block(0, k, None, None)
            return
        with b.loop(0, b.maximum(k, 1), depth) as block:
            left = b.sub(k, block.index)
            first, last = b.icmp("eq", block.index, 0), b.icmp("sle", left, depth)
            self._dot_block(block.index, b.minimum(left, depth), first, last)

    def _dot_block(self, k0: Index, depth: Index, first: Value | None, last: Value | None) -> None:
        """All wide rows of the chunk, over one block of k. ``first`` and ``last`` are None for the
        only block.
        """
        b = self.b
        together, unroll = self._dot_shape()
        together = max(together // len(self.products), 1)
        if isinstance(self.wide_rows, int):
            together = min(together, self.wide_rows)
        with b.loop(0, self.rows, together) as i:
            end = b.sub(self.rows, 1)
            # A row past the end repeats the last one: it stores the same values to the same places.
            local = [b.minimum(b.add(i.index, q), end) for q in range(together)]
            start, places = self._start(local, first)
            sums = self._dot_products([b.add(self.row0, x) for x in local], k0, depth, unroll, start)
            if last is None:
                self._reduce(local, sums)
            else:
                for place, value in zip(places, sums, strict=True):
                    b.store(value, place, self.lanes * self.size)
                with b.when(last):
                    self._reduce(local, sums)

    def _dot_shape(self) -> tuple[int, int]:
        """(wide rows at a time, vectors of k at a time): enough independent sums to hide the latency of an addition.

        Long rows that are narrow in memory are read one after the other: several such streams side by side reach
        three quarters of the bandwidth that one has.
        """
        count, k = self.plan.count, self.problem.k
        long = not isinstance(k, int) or k >= _LONG
        if count == 1 and long and bytes_of(self.wide.element) < self.size:
            return 1, 8
        return {1: (4, 4), 2: (4, 2), 3: (4, 2), 4: (4, 1)}.get(count, (3, 1))

    def _start(self, local: list[Index], first: Value | None) -> tuple[list[Value], list[Value]]:
        """What the sums of some wide rows start from, and where they wait between blocks of k."""
        b = self.b
        cells = [b.add(b.mul(row, self.sums), t) for row in local for t in range(self.sums)]
        zeros = [b.zero(self.type)] * len(cells)
        if first is None:
            return zeros, []
        align = self.lanes * self.size
        places = [b.at(self.waiting, b.mul(cell, self.lanes), self.compute) for cell in cells]
        return b.either(first, lambda: zeros, lambda: [b.load(self.type, x, align) for x in places]), places

    def _reduce(self, local: list[Index], sums: list[Value]) -> None:
        b, count = self.b, self.sums
        kind = "fadd" if is_float(self.compute) else "add"
        for q, row in enumerate(local):
            for t in range(count):
                place = b.at(self.results, b.add(t * self.plan.block, row), self.compute)
                b.store(b.reduce(kind, sums[q * count + t]), place)

    def _dot_products(self, rows: list[Index], k0: Index, depth: Index, unroll: int, start: list[Value]) -> list[Value]:
        """The lanewise sums of all (wide row, thin vector) pairs over a block of k, added to ``start``."""
        b, lanes = self.b, self.lanes
        step, end = lanes * unroll, b.add(k0, depth)
        whole = b.sub(end, b.rem(depth, step))
        pairs = len(start)
        zeros = [b.zero(self.type)] * (pairs * (unroll - 1))
        with b.loop(k0, whole, step, [*start, *zeros]) as loop:
            sums = list(loop.carry)
            for u in range(unroll):
                part = slice(u * pairs, (u + 1) * pairs)
                k = b.add(loop.index, u * lanes)
                if self.prefetches and u * lanes * bytes_of(self.wide.element) % 64 == 0:
                    for row in rows:
                        b.prefetch(self._wide_place(b.add(row, len(rows)), k))
                sums[part] = self._dot_step(rows, k, None, sums[part])
            loop.next(*sums)
        with b.loop(whole, end, lanes, loop.results[:pairs]) as rest:
            mask = b.tail_mask(b.sub(end, rest.index), lanes)
            rest.next(*self._dot_step(rows, rest.index, mask, rest.carry))
        totals = rest.results
        for u in range(1, unroll):
            totals = [self._sum(x, loop.results[u * pairs + p]) for p, x in enumerate(totals)]
        return totals

    def _sum(self, x: Value, y: Value) -> Value:
        return self.b.binary("fadd" if is_float(self.compute) else "add", x, y)

    def _dot_step(self, rows: list[Index], k: Index, mask: Value | None, sums: list[Value]) -> list[Value]:
        b, count = self.b, self.plan.count
        places = [b.at(self.vectors, b.add(b.mul(t, self.vector_step), k), self.compute) for t in range(count)]
        thin = [b.masked_load(self.type, place, mask) for place in places]
        terms = [(wide, x) for row in rows for wide in self._wide_terms(row, k, mask) for x in thin]
        return [self._multiply_add(wide, x, total) for (wide, x), total in zip(terms, sums, strict=True)]

    def _wide_terms(self, row: Index, k: Index, mask: Value | None) -> list[Value]:
        """What each of the products makes of a vector of the wide operand, which is loaded once."""
        b, position = self.b, (k, row) if self.plan.few_rows else (row, k)
        loaded = self._load(self.wide, self.wide_origin, *position, int(not self.plan.few_rows), mask)
        found = []
        for product in self.products:
            wide = self._made(product.b if self.plan.few_rows else product.a, loaded)
            blank = mask is not None and self.wide.prologue is not None
            found.append(b.select(mask, wide, b.zero(self.type)) if blank else wide)  # type: ignore[arg-type]
        return found

    # -- contiguous along the wide rows

    def _sweeps(self) -> None:
        b, lanes = self.b, self.lanes
        for t in range(self.plan.count):
            with b.loop(0, self.rows, lanes) as j:
                b.store(b.zero(self.type), self._result(t, j.index), lanes * self.size)
        terms = 8 if self.plan.count == 1 else 4
        k = self.problem.k
        whole = b.sub(k, b.rem(k, terms))
        with b.loop(0, whole, terms) as loop:
            self._sweep(loop.index, terms)
        with b.loop(whole, k) as loop:
            self._sweep(loop.index, 1)

    def _result(self, t: int, j: Index) -> Value:
        return self.b.at(self.results, self.b.add(t * self.plan.block, j), self.compute)

    def _sweep(self, k: Index, terms: int) -> None:
        """Add ``terms`` terms of the sums to every result of the block."""
        b, lanes = self.b, self.lanes
        factors: list[list[Value]] = []
        for t in range(self.plan.count):
            place = b.at(self.vectors, b.add(b.mul(t, self.vector_step), k), self.compute)
            factors.append([b.load(self.compute, b.at(place, u, self.compute)) for u in range(terms)])
        splats = [[b.splat(x, lanes) for x in row] for row in factors]
        whole = b.sub(self.rows, b.rem(self.rows, lanes))
        with b.loop(0, whole, lanes) as j:
            self._sweep_vector(j.index, k, splats, None)
        with b.when(b.icmp("slt", whole, b.index(self.rows))):
            self._sweep_vector(whole, k, splats, b.tail_mask(b.sub(self.rows, whole), lanes))

    def _sweep_vector(self, j: Index, k: Index, factors: list[list[Value]], mask: Value | None) -> None:
        b = self.b
        terms = len(factors[0])
        row = b.add(self.row0, j)
        wide = [self._read_wide(row, b.add(k, u), False, mask) for u in range(terms)]
        if self.prefetches:
            for u in range(terms):
                b.prefetch(self._wide_place(row, b.add(k, terms + u)))
        for t, own in enumerate(factors):
            place = self._result(t, j)
            total = b.load(self.type, place, self.lanes * self.size)
            for u in range(terms):
                total = self._multiply_add(own[u], wide[u], total)
            b.store(total, place, self.lanes * self.size)

    # -- results

    def _finish(self) -> None:
        if self.plan.few_rows:
            for i, product in enumerate(self.products):
                self._finish_rows(product, i * self.plan.count)
        else:
            self._finish_columns()

    def _finish_rows(self, problem: Contraction, first: int) -> None:
        """Few rows: the results of a thin vector are consecutive columns. A product's begin with number ``first``."""
        b, lanes = self.b, self.lanes
        with b.loop(0, self.plan.count) as t, b.loop(0, self.rows, lanes) as j:
            place = b.at(self.results, b.add(b.mul(b.add(t.index, first), self.plan.block), j.index), self.compute)
            mask = None
            if not isinstance(problem.n, int) or problem.n % lanes:
                mask = b.tail_mask(b.sub(self.rows, j.index), lanes)
            value = b.load(self.type, place, lanes * self.size)
            problem.epilogue(b, Cells(self.batch, t.index, b.add(self.row0, j.index), [value], [mask]))

    def _finish_columns(self) -> None:
        """Few columns: a row of the product takes one result of each thin vector."""
        b, problem, count = self.b, self.problem, self.plan.count
        with b.loop(0, self.rows) as i:
            value = b.zero(vector(self.compute, self.lanes))
            for t in range(count):
                place = b.at(self.results, b.add(t * self.plan.block, i.index), self.compute)
                value = b.insert(value, b.load(self.compute, place), t)
            mask = b.tail_mask(count, self.lanes)
            problem.epilogue(b, Cells(self.batch, b.add(self.row0, i.index), 0, [value], [mask]))


def _usable(matrix: Matrix, compute: str, stride: Index) -> bool:
    return matrix.prologue is None and matrix.element == compute and isinstance(stride, int) and stride == 1
