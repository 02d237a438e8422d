"""Products with few rows or few columns: bound by reading the large operand once, so it is never copied.

Let the *wide* operand have r rows of length k (B transposed for a product with few rows, A for one with few
columns) and the *skinny* one ``count`` vectors of length k. Two forms, by the direction in which the wide
operand is contiguous:

- along k: `_dots` keeps one vector of partial sums for each (wide row, skinny vector), several wide rows at a
  time, and adds its lanes at the end; the order of a sum depends on k and the vector width alone, so that rows beside
  it change no bit;
- along r: `_sweeps` adds a few terms of k at a time to a block of results in the second-level cache, reading
  whole stretches of memory; each result is one chain over k in ascending order, as in `gemm`.

Results of a block lie in scratch memory as ``[count][block]`` and go to the epilogue row by row. Where the number of
rows is known at run time, a chunk takes ``count`` of them at a time: what the next ones read of the wide operand is in
the second-level cache. The last ones repeat the last row, of which one result is stored.
"""

from __future__ import annotations

from argosy_cinn.contraction.bfloat_terms import BfloatTerms
from argosy_cinn.contraction.block_floats import is_of_bytes
from argosy_cinn.contraction.byte_panels import BytePanels
from argosy_cinn.contraction.group_offsets import GroupOffsets
from argosy_cinn.contraction.packing import convert_element
from argosy_cinn.contraction.pairs import PairTerms
from argosy_cinn.contraction.problem import Cells, Contraction, coordinates
from argosy_cinn.contraction.skinny_blocking import SkinnyBlocking
from argosy_cinn.contraction.skinny_terms import terms_of
from argosy_cinn.contraction.terms import FloatTerms, Operands, Terms
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I8, Index, Value, bytes_of, is_float, vector
from argosy_cinn.runtime.workers import scratch, thread_count
from argosy_cinn.shapes import ceil_div

#: Least bytes from what is read of the wide operand to what is asked for.
_AHEAD_BYTES = 8 << 10
#: The part of the second-level cache that wide rows fill which are multiplied before the next ones, where sums wait,
#: while those are asked for. The fewer, the more often skinny vectors come from there, and then requests are lost.
_GROUP_SHARE = 4
_LINE = 64
#: The second-level cache, as `Function.prefetch` counts: it has more lines on their way than the first one.
_SECOND_LEVEL = 2
#: Bytes of skinny vectors that are read again and again. Of integers and pairs, which take less time than it takes to
#: read them from the second-level cache, as the first one holds beside what streams through it: more are read from
#: there in the place of what was asked for. Pairs beside bytes take longer: whole vectors may be more. So do words, of
#: which two thirds of the first cache are 8 to 15% faster.
_THIN_BYTES, _THIN_FAST, _THIN_WHOLE = 64 << 10, 18 << 10, 32 << 10
#: Bytes of a wide operand from memory that are multiplied at a time with one skinny vector: these are enough sums to
#: keep up with memory, which is read the slower the more places it is read at.
_STREAMED = 128


def skinny_grid(b: Function, problem: Contraction, plan: SkinnyBlocking) -> Index:
    """The number of chunks: batch elements x blocks of wide rows."""
    chunks = b.ceil_div(problem.n if plan.few_rows else problem.m, plan.block)
    for size in problem.batch:
        chunks = b.mul(chunks, size)
    return chunks


def emit_skinny(b: Function, problem: Contraction, plan: SkinnyBlocking, chunk: Value) -> None:
    """Emit the code of one chunk into a kernel."""
    _Skinny(b, problem, plan).emit(chunk)


class _Skinny:
    def __init__(self, b: Function, problem: Contraction, plan: SkinnyBlocking) -> None:
        self.b, self.problem, self.plan = b, problem, plan
        self.compute, self.lanes = problem.compute, plan.lanes
        self.type = vector(problem.compute, plan.lanes)
        self.size = bytes_of(problem.compute)
        self.wide_rows = problem.n if plan.few_rows else problem.m
        self.wide = problem.b if plan.few_rows else problem.a
        # Where arithmetic fills the time, the hardware's prefetchers see too little of what comes next; some always do.
        of_bytes = plan.bytes or (plan.block_floats and is_of_bytes(problem.a))
        is_busy = plan.count > 1 or (self.wide.element == I8 and not of_bytes)
        self.prefetches = is_busy or b.module.target.gains_from_prefetches
        # A wide row takes one sum for each of the products that read it, and each skinny vector.
        self.products = (problem, *problem.siblings)
        self.sums = plan.count * len(self.products)
        self.offsets = GroupOffsets(b, problem, plan.count, plan.lanes)
        self.ahead: Index = 0
        # Skinny vectors whose results are stored, a bit each; None for all.
        self.stored: Value | None = None

    def emit(self, chunk: Value) -> None:
        b, plan, problem = self.b, self.plan, self.problem
        blocks = b.ceil_div(self.wide_rows, plan.block)
        self.row0 = b.mul(b.rem(chunk, blocks), plan.block)
        self.rows = b.minimum(plan.block, b.sub(self.wide_rows, self.row0))
        self.batch = coordinates(b, problem, b.div(chunk, blocks))
        if not problem.together:
            self._results_of(list(range(plan.count)))
            return
        with b.loop(0, problem.m, plan.count) as tile:
            last = b.sub(problem.m, 1)
            self._results_of([b.minimum(b.add(tile.index, t), last) for t in range(plan.count)])

    def _results_of(self, numbers: list[Index]) -> None:
        """The results of the skinny vectors of these ``numbers``."""
        plan = self.plan
        self.operands = Operands(self.b, self.problem, plan.few_rows, numbers, self.batch)
        floats = FloatTerms(self.operands, plan.lanes, plan.dots)
        if plan.byte_panels:
            self._byte_panels(floats)
        elif plan.dots:
            self._dots_of(terms_of(plan, self.operands, self.problem) or floats, floats)
        else:
            self._allocate(floats.bytes())
            floats.prepare(self.vectors)
            self._sweeps(floats)
        self._finish()

    def _byte_panels(self, floats: FloatTerms) -> None:
        """Sixteen wide rows at a time, which share what follows a group."""
        terms = BytePanels(self.operands, self.problem.group, (self.row0, self.rows, self.plan.block))
        self._prepare(terms, floats)
        self._copy_scales(terms.units)
        terms.emit(self.scales, self.results)
        self._repeat_unsafe(terms, floats)

    def _dots_of(self, terms: Terms, floats: FloatTerms) -> None:
        """The sums of these ``terms``."""
        self._prepare(terms, floats)
        self._dots(terms, self._row_unroll(terms))
        self._repeat_unsafe(terms, floats)

    def _prepare(self, terms: Terms | BytePanels, floats: FloatTerms) -> None:
        b = self.b
        self._allocate(b.add(terms.bytes(), floats.bytes()) if terms.may_overflow else terms.bytes())
        terms.prepare(self.vectors)

    def _repeat_unsafe(self, terms: Terms | BytePanels, floats: FloatTerms) -> None:
        """The sums of skinny vectors where those of ``terms`` would overflow, of floats: one wide row after the other,
        which is rare. Vectors beside them keep their bits."""
        b = self.b
        if terms.unsafe is None:
            return
        with b.if_then(b.icmp("ne", terms.unsafe, 0)):
            floats.prepare(b.gep(self.vectors, terms.bytes(), "i8"))
            self.stored = terms.unsafe
            self._dots(floats, 1)
            self.stored = None

    def _allocate(self, copies: Index) -> None:
        """Results, sums that wait, scales, and room for copies of the skinny vectors."""
        b, plan, group = self.b, self.plan, self.problem.group
        results = self.sums * plan.block * self.size
        waiting = results * self.lanes if plan.dots and plan.count > 2 else 0
        scales = b.mul(b.div(self.problem.k, group), len(self.products) * plan.block * self.size) if group else 0
        sums = self.offsets.bytes()
        slab = scratch(b, b.add(b.add(results + waiting + 320, b.add(scales, sums)), copies))
        self.results, self.waiting = slab, b.gep(slab, results + 64, "i8")
        self.scales = b.gep(self.waiting, waiting + 64, "i8")
        self.group_sums = b.gep(self.scales, b.add(scales, 64), "i8")
        self.vectors = b.gep(self.group_sums, b.add(sums, 64), "i8")
        if sums:
            self.offsets.prepare(self.group_sums, self.operands)

    # -- contiguous along k

    def _dots(self, terms: Terms, together: int) -> None:
        """Blocks of k for which the skinny vectors stay in the first-level cache; sums of a group of wide rows wait in
        scratch memory between them. ``together`` wide rows at a time.
        """
        b, k = self.b, self.problem.k
        if self.problem.group:
            self._copy_scales(terms.units, terms)
        unit = self._group_of(terms) or terms.width
        depth = max(self._thin_bytes(terms) // (self.plan.count * terms.bytes_of_term) // unit, 1) * unit
        if isinstance(k, int) and k > depth:
            depth = ceil_div(ceil_div(k, ceil_div(k, depth)), unit) * unit
        if self.plan.count <= 2 or (isinstance(k, int) and k <= depth):
            self._dot_block(terms, together, (0, self.rows), (0, k), None, None)
            return
        size = self._rows_of_group(together)
        # Threads take chunks in turns: behind the last group comes what this one takes next.
        between = b.mul(b.sub(thread_count(b), 1), self.plan.block)
        with b.loop(0, self.rows, size) as rows, b.loop(0, b.maximum(k, 1), depth) as block:
            is_last = b.icmp("sge", rows.index, self.plan.block - size)
            self.ahead = b.add(b.select(is_last, between, b.index(0)), size)
            group = (rows.index, b.minimum(b.sub(self.rows, rows.index), size))
            left = b.sub(k, block.index)
            first, last = b.icmp("eq", block.index, 0), b.icmp("sle", left, depth)
            self._dot_block(terms, together, group, (block.index, b.minimum(left, depth)), first, last)

    def _rows_of_group(self, together: int) -> int:
        """Wide rows over which a block of k is multiplied before the next one: the chunk's in even parts."""
        k, block = self.problem.k, self.plan.block
        size = k * bytes_of(self.wide.element) if isinstance(k, int) else _AHEAD_BYTES
        parts = ceil_div(block, max(self.b.module.target.l2_bytes // _GROUP_SHARE // size, together))
        return ceil_div(ceil_div(block, parts), together) * together

    def _thin_bytes(self, terms: Terms) -> int:
        if isinstance(terms, FloatTerms | BfloatTerms):
            return _THIN_BYTES
        if self.plan.words:
            return self.b.module.target.l1_bytes * 2 // 3
        k, are_beside_bytes = self.problem.k, isinstance(terms, PairTerms) and terms.is_bytes
        size = k * self.plan.count * terms.bytes_of_term if isinstance(k, int) and are_beside_bytes else 0
        return _THIN_WHOLE if 0 < size <= _THIN_WHOLE else _THIN_FAST

    def _dot_block(
        self,
        terms: Terms,
        together: int,
        group: tuple[Index, Index],
        block: tuple[Index, Index],
        first: Value | None,
        last: Value | None,
    ) -> None:
        """A ``group`` of the chunk's wide rows, over one ``block`` of k: where both begin, and how many they are.
        ``first`` and ``last`` are None for the only block.
        """
        b, (row0, rows), (k0, depth) = self.b, group, block
        if isinstance(self.wide_rows, int):
            together = min(together, self.wide_rows)
        # Rows that are computed together are far apart, so that each is followed by its neighbour in memory: as many
        # streams for the hardware's prefetchers. A row past the end repeats the last one, which stores the same values
        # to the same places; where sums wait, at the same time, lest it be added twice.
        part, end = b.ceil_div(rows, together), b.sub(rows, 1)
        between, step = (part, 1) if first is None else (1, together)
        with b.loop(0, part) as i:
            if first is None:
                self.ahead = self._ahead_of(i.index, part, together)
            waiting = [b.minimum(b.add(b.mul(i.index, step), b.mul(between, q)), end) for q in range(together)]
            start, places = self._start(terms, waiting, first)
            local = [b.add(row0, x) for x in waiting]
            sums = self._dot_products(terms, [b.add(self.row0, x) for x in local], k0, depth, start)
            if last is None:
                self._reduce(local, sums)
            else:
                for place, value in zip(places, sums, strict=True):
                    b.store(value, place, self.lanes * self.size)
                with b.if_then(last):
                    self._reduce(local, sums)

    def _ahead_of(self, i: Index, part: Index, together: int) -> Index:
        """Wide rows from the ``i``-th of a part to those that are asked for, behind the last one in the chunk that
        this thread takes next."""
        b, steps = self.b, self._steps_ahead(together)
        between = b.sub(b.mul(thread_count(b), self.plan.block), part)
        return b.add(b.select(b.icmp("sge", b.add(i, steps), b.index(part)), b.index(between), b.index(0)), steps)

    def _steps_ahead(self, together: int) -> int:
        """How many times wide rows are taken together before those that are asked for."""
        k = self.problem.k
        size = k * bytes_of(self.wide.element) * together if isinstance(k, int) else _AHEAD_BYTES
        return max(ceil_div(_AHEAD_BYTES, max(size, 1)), 1)

    def _row_unroll(self, terms: Terms) -> int:
        """Wide rows at a time: enough independent sums to hide the latency of an addition, as far as they, what is
        multiplied of each row and a vector of a skinny one are in registers. What is read of the skinny vectors serves
        all of them."""
        registers = self.b.module.target.registers - 1 - terms.registers
        most, step = 8 // len(self.products), terms.width * bytes_of(self.wide.element)
        if self.plan.count == 1 and self._is_from_memory():
            most = min(most, ceil_div(_STREAMED, step))
        return max(min(most, registers // (self.sums + terms.registers_of_row)), 1)

    def _is_from_memory(self) -> bool:
        """Whether the wide operand is larger than the second-level cache."""
        rows, k = self.wide_rows, self.problem.k
        size = rows * k * bytes_of(self.wide.element) if isinstance(rows, int) and isinstance(k, int) else 0
        return size > self.b.module.target.l2_bytes

    def _start(self, terms: Terms, local: list[Index], first: Value | None) -> tuple[list[Value], list[Value]]:
        """What the sums of some wide rows start from, and where they wait between blocks of k."""
        b = self.b
        cells = [b.add(b.mul(row, self.sums), t) for row in local for t in range(self.sums)]

        def begin() -> list[Value]:
            if self._group_of(terms):
                return [b.zero(self.type)] * len(cells)
            return self._starts(terms, 0) * (len(cells) // self.plan.count)

        if first is None:
            return begin(), []
        align = self.lanes * self.size
        places = [b.gep(self.waiting, b.mul(cell, self.lanes), self.compute) for cell in cells]
        return b.either(first, begin, lambda: [b.load(self.type, x, align) for x in places]), places

    def _starts(self, terms: Terms, k: Index) -> list[Value]:
        """What the sums of the skinny vectors begin with at a group."""
        return [terms.start(t, k) for t in range(self.plan.count)]

    def _reduce(self, local: list[Index], sums: list[Value]) -> None:
        b, count = self.b, self.sums
        kind = "fadd" if is_float(self.compute) else "add"
        for q, row in enumerate(local):
            for t in range(count):
                place = b.gep(self.results, b.add(t * self.plan.block, row), self.compute)
                total = b.reduce(kind, sums[q * count + t])
                if self.stored is not None:
                    bit = b.binary("and", self.stored, 1 << t % self.plan.count)
                    total = b.select(b.icmp("ne", bit, 0), total, b.load(self.compute, place))
                b.store(total, place)

    def _dot_products(
        self, terms: Terms, rows: list[Index], k0: Index, depth: Index, start: list[Value]
    ) -> list[Value]:
        """The lanewise sums of all (wide row, skinny vector) pairs over a block of k, added to ``start``."""
        b, group = self.b, self._group_of(terms)
        if not group:
            return self._terms(terms, rows, k0, b.add(k0, depth), start)
        with b.loop(b.div(k0, group), b.div(b.add(k0, depth), group), 1, start) as loop:
            k = b.mul(loop.index, group)
            begin = self._starts(terms, k) * (len(start) // self.plan.count)
            sums = self._terms(terms, rows, k, b.add(k, group), begin)
            factors = self._factors(terms, [b.sub(row, self.row0) for row in rows], k)
            sums = [convert_element(b, x, self.compute) for x in sums]
            loop.yield_values(*(b.fma(x, y, z) for x, y, z in zip(sums, factors, loop.carry, strict=True)))
        return list(loop.results)

    def _factors(self, terms: Terms, local: list[Index], k: Index) -> list[Value]:
        """What the sums of a group from k on, or of a block that has no other scale, are multiplied by."""
        count, group = self.plan.count, self.problem.group
        if not group:
            scales = [x for t in range(count) if (x := terms.group_scale(t, k)) is not None]
            return [x if unit == 1 else self.b.fmul(x, unit) for unit in terms.units for x in scales] * len(local)
        several = self._group_of(terms) // group
        first = self.b.div(k, group)
        scales = [self._scale(p, first, several, row) for row in local for p in range(len(self.products))]
        if count == 1:  # is in the scales
            return scales
        return [self._times_group_scale(scale, terms, t, k) for scale in scales for t in range(count)]

    def _group_of(self, terms: Terms) -> int:
        """Terms of a group, or of several that a step of ``terms`` takes, side by side in the lanes of a sum, or of a
        block; 0 where all are one group."""
        return max(self.problem.group, terms.width) if self.problem.group else terms.block

    def _copy_scales(self, units: list[float], terms: Terms | None = None) -> None:
        """The factors of the chunk's wide rows as floats, times ``units`` of the products and, for one skinny vector,
        the group's of ``terms``: in memory, those of one row may be a page apart."""
        b, lanes = self.b, self.lanes
        with b.loop(0, b.div(self.problem.k, self.problem.group)) as group, b.loop(0, self.rows, lanes) as row:
            whole = isinstance(self.problem.n, int) and self.problem.n % lanes == 0
            mask = None if whole else b.tail_mask(b.sub(self.rows, row.index), lanes)
            for number, product in enumerate(self.products):
                assert product.scales is not None
                found = self.operands.scales_vector(
                    product.scales, group.index, b.add(self.row0, row.index), lanes, mask
                )
                unit = units[number]
                found = found if unit == 1 else b.fmul(found, unit)
                if self.plan.count == 1 and terms is not None:
                    found = self._times_group_scale(found, terms, 0, b.mul(group.index, self.problem.group))
                b.store(found, self._scale_place(number, group.index, row.index), lanes * self.size)

    def _times_group_scale(self, scale: Value, terms: Terms, t: int, k: Index) -> Value:
        factor = terms.group_scale(t, k)
        return scale if factor is None else self.b.fmul(scale, factor)

    def _scale_place(self, product: int, group: Index, local: Index) -> Value:
        b = self.b
        row = b.add(b.mul(group, len(self.products)), product)
        return b.gep(self.scales, b.add(b.mul(row, self.plan.block), local), self.compute)

    def _scale(self, product: int, group: Index, count: int, local: Index) -> Value:
        """The factors of the sums of ``count`` groups, for one wide row, each in its part of the lanes."""
        b, lanes = self.b, self.lanes
        factors = [b.load(self.compute, self._scale_place(product, b.add(group, i), local)) for i in range(count)]
        if count == 1:
            return b.splat(factors[0], lanes)
        found = b.zero(vector(self.compute, count))
        for i, factor in enumerate(factors):
            found = b.insert(found, factor, i)
        return b.shuffle(found, None, [lane * count // lanes for lane in range(lanes)])

    def _terms(self, terms: Terms, rows: list[Index], k0: Index, end: Index, start: list[Value]) -> list[Value]:
        """``start`` plus the terms from ``k0`` to ``end``, a cache line of each wide row at a time."""
        b, width, group = self.b, terms.width, self._group_of(terms)
        line = max(_LINE // bytes_of(self.wide.element), width)
        line = min(line, group or line)
        if line == group:
            return self._line(terms, rows, k0, line, start)
        whole = b.sub(end, b.rem(b.sub(end, k0), line))
        with b.loop(k0, whole, line, start) as loop:
            loop.yield_values(*self._line(terms, rows, loop.index, line, list(loop.carry)))
        if group:  # groups are whole vectors
            return self._line(terms, rows, whole, group % line, list(loop.results))
        with b.loop(whole, end, width, loop.results) as rest:
            mask = b.tail_mask(b.sub(end, rest.index), width)
            rest.yield_values(*terms.step(rows, rest.index, mask, rest.carry))
        return list(rest.results)

    def _line(self, terms: Terms, rows: list[Index], k: Index, line: int, sums: list[Value]) -> list[Value]:
        """``sums`` plus ``line`` terms from ``k`` on."""
        b = self.b
        if self.prefetches:
            for row in rows:
                ahead = self.operands.wide_place(b.add(row, self.ahead), k)
                for first in range(0, line * bytes_of(self.wide.element), _LINE):
                    b.prefetch(b.gep(ahead, first, "i8"), level=_SECOND_LEVEL)
        for first in range(0, line, terms.width):
            sums = terms.step(rows, b.add(k, first), None, sums)
        return sums

    # -- contiguous along the wide rows

    def _sweeps(self, vectors: FloatTerms) -> None:
        b, lanes = self.b, self.lanes
        for t in range(self.plan.count):
            with b.loop(0, self.rows, lanes) as j:
                b.store(b.zero(self.type), self._result(t, j.index), lanes * self.size)
        terms = 8 if self.plan.count == 1 else 4
        k = self.problem.k
        whole = b.sub(k, b.rem(k, terms))
        with b.loop(0, whole, terms) as loop:
            self._sweep(vectors, loop.index, terms)
        with b.loop(whole, k) as loop:
            self._sweep(vectors, loop.index, 1)

    def _result(self, t: int, j: Index) -> Value:
        return self.b.gep(self.results, self.b.add(t * self.plan.block, j), self.compute)

    def _sweep(self, vectors: FloatTerms, k: Index, terms: int) -> None:
        """Add ``terms`` terms of the sums to every result of the block."""
        b, lanes = self.b, self.lanes
        factors: list[list[Value]] = []
        for t in range(self.plan.count):
            place = vectors.place(t, k)
            factors.append([b.load(self.compute, b.gep(place, u, self.compute)) for u in range(terms)])
        splats = [[b.splat(x, lanes) for x in row] for row in factors]
        line = max(_LINE // bytes_of(self.wide.element), lanes)
        whole = b.sub(self.rows, b.rem(self.rows, line))
        with b.loop(0, whole, line) as j:
            row = b.add(self.row0, j.index)
            for u in range(terms):
                b.prefetch(self.operands.wide_place(row, b.add(k, terms + u)), level=_SECOND_LEVEL)
            for first in range(0, line, lanes):
                self._sweep_vector(vectors, b.add(j.index, first), k, splats, None)
        last = b.sub(self.rows, b.rem(self.rows, lanes))
        with b.loop(whole, last, lanes) as j:
            self._sweep_vector(vectors, j.index, k, splats, None)
        with b.if_then(b.icmp("slt", last, b.index(self.rows))):
            self._sweep_vector(vectors, last, k, splats, b.tail_mask(b.sub(self.rows, last), lanes))

    def _sweep_vector(
        self, vectors: FloatTerms, j: Index, k: Index, factors: list[list[Value]], mask: Value | None
    ) -> None:
        b, x = self.b, self.operands
        terms = len(factors[0])
        row = b.add(self.row0, j)
        found = [x.wide_vector(row, b.add(k, u), False, self.lanes, mask) for u in range(terms)]
        wide = [x.apply_prologue(self.wide, cells) for cells in found]
        for t, own in enumerate(factors):
            place = self._result(t, j)
            total = b.load(self.type, place, self.lanes * self.size)
            for u in range(terms):
                total = vectors.multiply_add(own[u], wide[u], total)
            b.store(total, place, self.lanes * self.size)

    # -- results

    def _finish(self) -> None:
        if self.plan.few_rows:
            for i, product in enumerate(self.products):
                self._finish_rows(product, i * self.plan.count)
        else:
            self._finish_columns()

    def _finish_rows(self, problem: Contraction, first: int) -> None:
        """Few rows: the results of a skinny vector are consecutive columns. A product's begin with number ``first``."""
        b, lanes = self.b, self.lanes
        numbers = self.operands.numbers
        stored = b.add(b.sub(numbers[-1], numbers[0]), 1)  # a row that is repeated is stored once
        with b.loop(0, stored) as t, b.loop(0, self.rows, lanes) as j:
            place = b.gep(self.results, b.add(b.mul(b.add(t.index, first), self.plan.block), j.index), self.compute)
            mask = None
            if not isinstance(problem.n, int) or problem.n % lanes:
                mask = b.tail_mask(b.sub(self.rows, j.index), lanes)
            value = b.load(self.type, place, lanes * self.size)
            row, column = b.add(numbers[0], t.index), b.add(self.row0, j.index)
            if problem.offsets is not None:
                value = self.offsets.add_to(value, problem.offsets, t.index, column, mask)
            cells = Cells(self.batch, row, column, [value], [mask], flushed=self.plan.pairs)
            problem.epilogue(b, cells)

    def _finish_columns(self) -> None:
        """Few columns: a row of the product takes one result of each skinny vector, of which there may be more than a
        vector has lanes."""
        b, problem, lanes = self.b, self.problem, self.lanes
        starts = range(0, self.plan.count, lanes)
        with b.loop(0, self.rows) as i:
            values = [self._row_of_results(i.index, t) for t in starts]
            masks: list[Value | None] = [b.tail_mask(self.plan.count - t, lanes) for t in starts]
            problem.epilogue(b, Cells(self.batch, b.add(self.row0, i.index), 0, values, masks, flushed=self.plan.pairs))

    def _row_of_results(self, row: Value, start: int) -> Value:
        """A vector of the results that a wide row has with the skinny vectors from ``start`` on."""
        b = self.b
        made = b.zero(vector(self.compute, self.lanes))
        for lane in range(min(self.lanes, self.plan.count - start)):
            place = b.gep(self.results, b.add((start + lane) * self.plan.block, row), self.compute)
            made = b.insert(made, b.load(self.compute, place), lane)
        return made
