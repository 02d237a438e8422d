"""Few rows times weights of four bits with scales of groups, by products of bytes or words in sums of int32 (VNNI).

Sixteen wide rows (a panel) are taken at a time, each as a lane of int32: what is done once for a group's sum, a
conversion and its scale, is done for sixteen rows then, and no lanes are added up. A line of 64 bytes of each of them
(a unit) is transposed in two steps: by blocks of sixteen bytes into memory as it is read, and by fours of bytes as it
is multiplied, with four terms of each skinny vector in all lanes. The next unit is read while one is multiplied, for
processors shuffle in other ports than they multiply in.

Skinny vectors of bytes are multiplied in fours. Those of bfloat16 are integers of 16 bits times a power of two for each
group (`block_integers`) and are multiplied in pairs, with even bytes of a line and odd ones: as many products as two
digits of a byte would take, and half the sums. One with a group that has no scale has to go another way
(`BytePanels.unsafe`).

Sums of groups are exact, and are added to the results in ascending order: skinny vectors beside one change no bit. The
high halves of bytes are multiplied where they are, as sixteen times their number.
"""

from __future__ import annotations

from typing import NamedTuple

from argosy_cinn.contraction.block_floats import is_of_bytes, nibbles_of
from argosy_cinn.contraction.block_integers import becomes_integers, block_integers, prepare_groups
from argosy_cinn.contraction.packing import byte_products, word_products
from argosy_cinn.contraction.problem import Contraction
from argosy_cinn.contraction.terms import Operands
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import FLOAT, I8, I16, I32, I64, Index, Value, vector
from argosy_cinn.runtime.workers import thread_count
from argosy_cinn.shapes import ceil_div
from argosy_cinn.target import Target

#: Wide rows of a panel, terms of a line, blocks of a line, and their bytes.
_ROWS, _LINE, _BLOCKS, _BLOCK_BYTES = 16, 64, 4, 16
_UNIT_BYTES = _ROWS * _LINE
#: Sums that are so few that a multiplication would wait for the one before.
_FEW_SUMS = 8
#: Groups of which a line has several, and the longest of words whose sums are integers of 32 bits, whatever they are:
#: those of weights that are multiplied as sixteen times their number.
_SHORT, _MOST_WORDS = (16, 32), 256
#: Words of four terms: those of even bytes are multiplied together, and those of odd ones.
_EVEN_ODD = [i + j for i in range(0, _ROWS, 4) for j in (0, 2, 1, 3)]
#: Bytes of skinny vectors that are read again and again: what the first-level cache holds of them beside what streams
#: through it.
_THIN_BYTES = 18 << 10
#: Bytes from what is read of the wide operand to what is asked for, to be in the second-level cache by then. The rows
#: of a panel are too many streams for the processor to ask by itself.
_AHEAD_BYTES, _SECOND_LEVEL = 16 << 10, 2


def multiplies_byte_panels(problem: Contraction, target: Target) -> bool:
    """Whether a product of few rows with scales of groups and its siblings are computed so."""
    is_narrow = is_of_bytes(problem.a) or _multiplies_words(problem, target)
    if target.vector_bits != 512 or not target.has("avx512vnni") or not is_narrow:
        return False
    k, group = problem.k, problem.group
    whole = group > 0 and (group % _LINE == 0 or (group in _SHORT and isinstance(k, int) and k % _LINE == 0))
    found = nibbles_of([each.b for each in (problem, *problem.siblings)])
    return whole and problem.compute == FLOAT and len(found) > 0


def _multiplies_words(problem: Contraction, target: Target) -> bool:
    return becomes_integers(problem) and problem.group <= _MOST_WORDS and not target.multiplies_pairs


class _Unit(NamedTuple):
    """Lines of a panel: its first wide row, counted in the chunk, and the first term."""

    row: Index
    k: Index


class BytePanels:
    """The sums of a chunk: ``rows`` wide rows from ``row0`` on, of at most ``block``. ``unsafe`` is None, or tells once
    skinny vectors are prepared which of them, a bit each, have a group without a scale."""

    def __init__(self, operands: Operands, group: int, chunk: tuple[Index, Index, int]) -> None:
        self.b, self.operands, self.group = operands.b, operands, group
        self.row0, self.rows, self.block = chunk
        self.nibbles = nibbles_of([operands.wide_of(each) for each in operands.products])
        self.sums = operands.count * len(self.nibbles)
        self.may_overflow = not is_of_bytes(operands.skinny)
        self.unsafe: Value | None = None
        self._size = 2 if self.may_overflow else 1  # bytes of a term
        # Of each sum, in registers: those of even words and of odd ones, where few wait for each other else.
        self._chains = self._size if self.sums <= _FEW_SUMS else 1

    @property
    def units(self) -> list[float]:
        """What the sums of each product have to be multiplied by, together with the scale of a group."""
        return [nibble.unit / (1 << nibble.shift) for nibble in self.nibbles]

    # -- the skinny vectors

    def bytes(self) -> Index:
        """Memory that `prepare` needs: two units, the terms, what ``zero`` takes from the sums of each group, and the
        scales of groups."""
        b, x = self.b, self.operands
        of_groups = b.mul(b.div(x.k, self.group), (self.sums + x.count) * 4)
        return b.add(b.add(b.mul(x.k, x.count * self._size), 2 * _UNIT_BYTES), of_groups)

    def prepare(self, memory: Value) -> None:
        """Copy the skinny vectors to where they are multiplied from."""
        x, b = self.operands, self.b
        self._memory, self._terms = memory, b.gep(memory, 2 * _UNIT_BYTES, I8)
        self._starts = b.gep(self._terms, b.mul(x.k, x.count * self._size), I8)
        self._group_scales = b.gep(self._starts, b.mul(b.div(x.k, self.group), self.sums), I32)
        if self.may_overflow:
            self.unsafe = prepare_groups(x, self.group, self._prepare_words)
            return
        with b.loop(0, x.count) as t, b.loop(0, x.k, max(self.group, _LINE)) as first:
            self._copy_bytes(t.index, first.index)

    def _prepare_words(self, t: Index, k: Index) -> Value:
        """Store a group of words; whether it has no scale."""
        b = self.b
        group = b.div(k, self.group)
        integers, scale, has_no_scale = block_integers(self.operands, t, k, self.group, _ROWS)
        total = integers[0]
        for i, integer in enumerate(integers):
            total = b.binary("add", total, integer) if i else total
            first = b.add(k, i * _ROWS)
            within = b.rem(first, _LINE)
            words = b.shuffle(b.convert("trunc", integer, I16), None, _EVEN_ODD)
            b.store(words, self._place(t, b.sub(first, within), within), 2 * _ROWS)
        self._store_starts(t, group, b.binary("mul", b.reduce("add", total), -self.nibbles[0].zero))
        b.store(scale, self._group_scale_place(group, t))
        return has_no_scale

    def _copy_bytes(self, t: Index, first: Index) -> None:
        """Store a group of bytes, or a line of several."""
        b, span = self.b, max(self.group, _LINE)
        zeros = b.constant(vector(I8, _LINE), self.nibbles[0].zero)
        with b.loop(first, b.add(first, span), _LINE, [b.zero(vector(I32, _ROWS))]) as k:
            terms = self.operands.skinny_elements(t, k.index, _LINE, None).values[0]
            b.store(terms, self._place(t, k.index, 0), _LINE)
            k.yield_values(byte_products(b, k.carry[0], zeros, terms))
        lanes = _ROWS * self.group // span
        for i in range(span // self.group):
            own = b.shuffle(k.results[0], None, list(range(i * lanes, (i + 1) * lanes)))
            group = b.add(b.div(first, self.group), i)
            self._store_starts(t, group, b.binary("sub", 0, b.reduce("add", own)))

    def _store_starts(self, t: Index, group: Index, taken: Value) -> None:
        b = self.b
        for number, nibble in enumerate(self.nibbles):
            place = self._start_place(group, b.add(number * self.operands.count, t))
            b.store(b.binary("mul", taken, 1 << nibble.shift), place)

    def _place(self, t: Index, k: Index, first: Index) -> Value:
        """A line's terms from ``first`` on; lines of all skinny vectors are side by side, lest these share few sets of
        the cache."""
        b = self.b
        number = b.add(b.add(b.mul(k, self.operands.count), b.mul(t, _LINE)), first)
        return b.gep(self._terms, b.mul(number, self._size), I8)

    def _start_place(self, group: Index, number: Index) -> Value:
        return self.b.gep(self._starts, self.b.add(self.b.mul(group, self.sums), number), I32)

    def _group_scale_place(self, group: Index, t: Index) -> Value:
        return self.b.gep(self._group_scales, self.b.add(self.b.mul(group, self.operands.count), t), FLOAT)

    # -- sums

    def emit(self, scales: Value, results: Value) -> None:
        """Store the sums into ``results`` [sums][block]; ``scales`` are [groups][products][block]."""
        b, k, group = self.b, self.operands.k, self.group
        self._scales, self._results = scales, results
        with b.loop(0, self.rows, _ROWS) as row:
            for number in range(self.sums):
                b.store(b.zero(vector(FLOAT, _ROWS)), self._result(number, row.index), _LINE)
        span = max(group, _LINE)
        depth = max(_THIN_BYTES // (self.operands.count * self._size * span), 1) * span
        if isinstance(k, int):
            depth = ceil_div(ceil_div(k, ceil_div(k, depth)), span) * span
        self._between = b.mul(b.sub(thread_count(b), 1), self.block)
        with b.loop(0, k, depth) as block:
            self._multiply_block(block.index, b.minimum(b.add(block.index, depth), k))

    def _result(self, number: int, row: Index) -> Value:
        return self.b.gep(self._results, self.b.add(number * self.block, row), FLOAT)

    def _multiply_block(self, start: Index, end: Index) -> None:
        """The terms from ``start`` to ``end`` of all panels, for which those stay in the first-level cache."""
        b = self.b
        self._start, self._end = start, end
        for part in range(_BLOCKS):
            self._read(_Unit(0, start), part, self._buffer(_Unit(0, start)))
        with b.loop(0, self.rows, _ROWS) as row, b.loop(start, end, max(self.group, _LINE)) as first:
            group = b.div(first.index, self.group)
            if self.group < _LINE:
                self._multiply_unit(_Unit(row.index, first.index), [])
            else:
                with b.loop(first.index, b.add(first.index, self.group), _LINE, self._begin(group)) as line:
                    line.yield_values(*self._multiply_unit(_Unit(row.index, line.index), list(line.carry)))
                self._add_group(row.index, group, list(line.results))

    def _begin(self, group: Index) -> list[Value]:
        """What a panel's sums of a group begin with."""
        b = self.b
        starts = [b.splat(b.load(I32, self._start_place(group, number)), _ROWS) for number in range(self.sums)]
        return starts + [b.zero(vector(I32, _ROWS))] * (self.sums * (self._chains - 1))

    def _add_group(self, row: Index, group: Index, sums: list[Value]) -> None:
        """Add a panel's sums of a group, times its scales, to the results."""
        b, count, products = self.b, self.operands.count, len(self.nibbles)
        if self._chains > 1:
            sums = [b.binary("add", *both) for both in zip(sums[: self.sums], sums[self.sums :], strict=True)]
        for product in range(products):
            place = b.add(b.mul(b.add(b.mul(group, products), product), self.block), row)
            scale = b.load(vector(FLOAT, _ROWS), b.gep(self._scales, place, FLOAT), _LINE)
            for t in range(count):
                place = self._result(product * count + t, row)
                total, factor = b.load(scale.type, place, _LINE), self._times_group_scale(scale, group, t)
                b.store(b.fma(b.convert("sitofp", sums[product * count + t], FLOAT), factor, total), place, _LINE)

    def _times_group_scale(self, scale: Value, group: Index, t: int) -> Value:
        if not self.may_overflow:
            return scale
        return self.b.fmul(scale, self.b.splat(self.b.load(FLOAT, self._group_scale_place(group, t)), _ROWS))

    # -- units

    def _multiply_unit(self, unit: _Unit, sums: list[Value]) -> list[Value]:
        """``sums`` plus the terms of a unit, or all groups of it where these are short; the next one is read
        meanwhile."""
        b = self.b
        following, asked = self._following(unit, _LINE), self._asked(unit)
        here, there = self._buffer(unit), self._buffer(following)
        # Behind the last panel it is read again.
        last = b.mul(b.div(b.sub(self.rows, 1), _ROWS), _ROWS)
        following = _Unit(b.minimum(following.row, last), following.k)
        for part in range(_BLOCKS):
            for row in self._rows(asked, part):
                b.prefetch(self.operands.wide_place(row, asked.k), level=_SECOND_LEVEL)
            self._read(following, part, there)
            sums = self._multiply_part(unit, part, here, sums)
        return sums

    def _multiply_part(self, unit: _Unit, part: int, buffer: Value, sums: list[Value]) -> list[Value]:
        """``sums`` plus the terms of a block of each line; groups shorter than a line begin and end here."""
        b = self.b
        is_short, parts = self.group < _LINE, self.group // _BLOCK_BYTES
        group = b.add(b.div(unit.k, self.group), part // parts)
        if is_short and part % parts == 0:
            sums = self._begin(group)
        for i, fours in enumerate(self._fours(buffer, part)):
            sums = self._step(fours, unit.k, part * _BLOCK_BYTES + i * _BLOCKS, sums)
        if is_short and (part + 1) % parts == 0:
            self._add_group(unit.row, group, sums)
        return sums

    def _step(self, fours: Value, k: Index, first: int, sums: list[Value]) -> list[Value]:
        """``sums`` plus four terms of the line at k, from its term ``first`` on; ``fours``: their bytes of each row."""
        b, count = self.b, self.operands.count
        factors = self._factors(fours)
        for t in range(count):
            place = self._place(t, k, first)
            for i, own in enumerate(factors):
                terms = b.splat(b.load(I32, b.gep(place, i, I32)), _ROWS)
                first_sum = t + i % self._chains * self.sums
                for number, factor in zip(range(first_sum, first_sum + self.sums, count), own, strict=True):
                    sums[number] = self._multiply_add(sums[number], factor, terms)
        return [b.pin(x) for x in sums]

    def _factors(self, fours: Value) -> list[list[Value]]:
        """What the terms of each four bytes are multiplied with for each product: all of them, or even and odd ones."""
        b = self.b
        if not self.may_overflow:
            bytes_ = b.bitcast(fours, vector(I8, _LINE))
            return [[b.binary("and", bytes_, 15 << nibble.shift) for nibble in self.nibbles]]
        even = b.bitcast(fours, vector(I16, 2 * _ROWS))
        return [[b.binary("and", x, 15 << n.shift) for n in self.nibbles] for x in (even, b.binary("lshr", even, 8))]

    def _multiply_add(self, total: Value, factor: Value, terms: Value) -> Value:
        if self.may_overflow:
            return word_products(self.b, factor, terms, total)
        return byte_products(self.b, total, factor, terms)

    def _following(self, unit: _Unit, terms: Index) -> _Unit:
        """So many terms behind a unit, in the next panel behind the end of the block."""
        b, k = self.b, self.b.add(unit.k, terms)
        is_over = b.icmp("sge", k, b.index(self._end))
        row = b.add(unit.row, b.select(is_over, b.index(_ROWS), b.index(0)))
        return _Unit(row, b.select(is_over, b.sub(k, b.sub(self._end, self._start)), k))

    def _asked(self, unit: _Unit) -> _Unit:
        """The unit that is asked for meanwhile. Behind the last panel come the next terms of these rows, or the chunk
        that this thread takes next."""
        b = self.b
        depth = b.sub(self._end, self._start)
        found = self._following(unit, b.minimum(_AHEAD_BYTES // _ROWS, depth))
        is_over = b.icmp("sge", found.row, b.index(self.rows))
        is_last = b.icmp("sge", b.index(self._end), b.index(self.operands.k))
        row = b.select(is_last, b.add(found.row, self._between), b.index(0))
        k = b.select(is_last, b.sub(found.k, self._start), b.add(found.k, depth))
        return _Unit(b.select(is_over, row, found.row), b.select(is_over, k, found.k))

    def _buffer(self, unit: _Unit) -> Value:
        """The memory of a unit: two take turns."""
        b = self.b
        lines = b.div(b.sub(self._end, self._start), _LINE)
        number = b.add(b.mul(b.div(unit.row, _ROWS), lines), b.div(b.sub(unit.k, self._start), _LINE))
        return b.gep(self._memory, b.mul(b.binary("and", b.index(number), 1), _UNIT_BYTES), I8)

    def _rows(self, unit: _Unit, part: int) -> list[Index]:
        """Every fourth wide row of a unit, from ``part`` on; behind the last one, that again."""
        b, n = self.b, self.operands.wide_rows
        first = b.add(self.row0, unit.row)
        rows = [b.add(first, i) for i in range(part, _ROWS, _BLOCKS)]
        return rows if isinstance(n, int) and n % _ROWS == 0 else [b.minimum(row, b.sub(n, 1)) for row in rows]

    def _read(self, unit: _Unit, part: int, buffer: Value) -> None:
        """Store equal blocks of four rows' lines side by side."""
        b, flip = self.b, self.nibbles[0].flip * 0x11
        lines = [self.operands.wide_vector(row, unit.k, True, _LINE, None).values[0] for row in self._rows(unit, part)]
        lines = [b.bitcast(b.binary("xor", x, flip) if flip else x, vector(I64, _LINE // 8)) for x in lines]
        for column, block in enumerate(_transpose_blocks(b, lines)):
            b.store(block, b.gep(buffer, (column * _BLOCKS + part) * _LINE, I8), _LINE)

    def _fours(self, buffer: Value, column: int) -> list[Value]:
        """Four times four bytes of a column of blocks, each of all rows of a panel."""
        b, type = self.b, vector(I32, _ROWS)
        places = [b.gep(buffer, (column * _BLOCKS + i) * _LINE, I8) for i in range(_BLOCKS)]
        return _transpose_fours(b, [b.load(type, place, _LINE) for place in places])


def _transpose_blocks(b: Function, lines: list[Value]) -> list[Value]:
    """The transpose of the blocks of sixteen bytes of four lines, as vectors of i64."""
    even, odd = ([i + j for i in range(half, 16, 4) for j in range(2)] for half in (0, 2))
    (e01, o01), (e23, o23) = (_shuffle(b, lines[i], lines[i + 1], even, odd) for i in (0, 2))
    (first, third), (second, fourth) = _shuffle(b, e01, e23, even, odd), _shuffle(b, o01, o23, even, odd)
    return [first, second, third, fourth]


def _transpose_fours(b: Function, blocks: list[Value]) -> list[Value]:
    """The transposes of the blocks of four i32 at the same place of four vectors."""
    low = [i + j for i in range(0, _ROWS, 4) for j in (0, _ROWS, 1, _ROWS + 1)]
    first = [i + j for i in range(0, _ROWS, 4) for j in (0, 1, _ROWS, _ROWS + 1)]
    high, second = [j + 2 for j in low], [j + 2 for j in first]
    (l01, h01), (l23, h23) = (_shuffle(b, blocks[i], blocks[i + 1], low, high) for i in (0, 2))
    return [*_shuffle(b, l01, l23, first, second), *_shuffle(b, h01, h23, first, second)]


def _shuffle(b: Function, x: Value, y: Value, first: list[int], second: list[int]) -> tuple[Value, Value]:
    return b.shuffle(x, y, first), b.shuffle(x, y, second)
