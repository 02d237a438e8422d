"""Powers of a panel's scores, and what they make of the sums so far."""

from __future__ import annotations

from argosy_cinn import functions
from argosy_cinn.loops.elementwise import convert
from argosy_cinn.paged_attention.memory import PANEL_VECTORS
from argosy_cinn.paged_attention.panels import Cache, Panel
from argosy_cinn.printers.types import (
    DOUBLE,
    FLOAT,
    I32,
    Index,
    Operand,
    Value,
    constant,
    vector,
    vector_constant,
)


class Powers(Panel):
    """A running softmax."""

    def weigh(self, rows: Index, keys: Cache, values: Cache) -> None:
        """Powers of scores, times their values' scales, and sums so far rescaled to them."""
        b, memory, lanes = self.b, self.memory, self.lanes
        self._copy_scales(keys, memory.key_scales)
        self._copy_scales(values, memory.value_scales)
        with b.loop(0, rows) as loop:
            row = loop.index
            position = self.position(row)
            scores = self._masked_scores(row, keys, *self._bounds(position, position))
            top = scores[0]
            for x in scores[1:]:
                top = b.fmax(top, x)
            before = b.load(self.real, b.gep(memory.tops, row, self.real))
            after = b.fmax(before, b.reduce("fmax", top))
            shift = b.select(b.fcmp("oeq", after, float("-inf")), b.zero(self.real), after)
            powers = [self._function("exp", b.fsub(x, b.splat(shift, lanes))) for x in scores]
            total = powers[0]
            for v, x in enumerate(powers):
                memory.store_powers(self._scale(x, values, memory.value_scales, v), row, v * lanes)
                total = b.fadd(total, x) if v else x
            place, sum = b.gep(memory.totals, row, self.real), b.reduce("fadd", total)
            b.store(after, b.gep(memory.tops, row, self.real))

            def rescale() -> list[Value]:
                less = self._function("exp", change)
                self._rescale(row, b.splat(less, lanes))
                return [b.fma(b.load(self.real, place), less, sum)]

            change = b.fsub(before, shift)
            is_same = b.fcmp("oeq", change, 0.0)  # not where both are infinite, which makes all sums NaN
            b.store(b.either(is_same, lambda: [b.fadd(b.load(self.real, place), sum)], rescale)[0], place)

    def _copy_scales(self, cache: Cache, target: Value) -> None:
        """The factors of the panel's places, beside each other."""
        b, scales = self.b, cache.scales
        if scales is None:
            return
        with b.loop(0, self.memory.panel) as loop:
            scale = b.load(FLOAT, self._entry(scales, scales.offsets, loop.index))
            scale = convert(b, scale, "float32", "float64") if self.real == DOUBLE else scale
            b.store(scale, b.gep(target, loop.index, self.real))

    def _scale(self, x: Value, cache: Cache, scales: Value, number: int) -> Value:
        """A vector of the panel's scores or powers times the scales of a cache, where it has some."""
        b = self.b
        return x if cache.scales is None else b.fmul(x, b.load(x.type, b.gep(scales, number * self.lanes, self.real)))

    def _masked_scores(self, row: Value, keys: Cache, first: Index, behind: Index) -> list[Value]:
        """A row's scores, minus infinity where it does not see."""
        b, lanes, rule = self.b, self.lanes, self.rule
        bounds = [b.splat(b.convert("trunc", b.index(x), I32), lanes) for x in (first, behind)]
        made, scale = [], self._query_scale(row)
        for v in range(PANEL_VECTORS):
            x = b.fmul(b.load(vector(self.real, lanes), self.memory.score(row, v * lanes)), scale)
            x = self._scale(x, keys, self.memory.key_scales, v)
            if rule.softcap:
                x = b.fmul(self._function("tanh", b.fmul(x, 1 / rule.softcap)), rule.softcap)
            place = vector_constant(I32, [self._place(v * lanes + i) for i in range(lanes)])
            inside = b.icmp("slt", place, bounds[1])
            if rule.window:
                inside = b.binary("and", inside, b.icmp("sge", place, bounds[0]))
            made.append(b.select(inside, x, constant(x.type, float("-inf"))))
        return made

    def _query_scale(self, row: Value) -> Operand:
        """What makes sums of products scores, but for what keys are multiplied with."""
        b, memory, scale = self.b, self.memory, self.rule.scale
        if not memory.words:
            return scale
        return b.splat(b.fmul(b.load(self.real, b.gep(memory.query_scales, row, self.real)), scale), self.lanes)

    def _function(self, name: str, x: Value) -> Value:
        return functions.apply(self.b, name, x)

    def _rescale(self, row: Value, factor: Value) -> None:
        b, sums = self.b, self.memory.sum(row)
        with b.loop(0, self.memory.width, self.lanes) as loop:
            place = b.gep(sums, loop.index, self.real)
            b.store(b.fmul(b.load(factor.type, place), factor), place)
