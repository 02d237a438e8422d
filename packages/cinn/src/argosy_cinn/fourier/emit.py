"""The code of a step: for each group of lines, stages from the tensor through scratch memory to the other tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.fourier import FourierForm
from argosy_cinn.fourier.butterfly import Number, multiply_numbers
from argosy_cinn.fourier.convolution import emit_convolutions
from argosy_cinn.fourier.factors import radices
from argosy_cinn.fourier.groups import LineGroups
from argosy_cinn.fourier.memory import (
    ChangedPlace,
    Columns,
    Place,
    RealColumns,
    Rows,
    Scratch,
    TwiddledPlace,
    conjugate,
    scale_numbers,
    swap_parts,
)
from argosy_cinn.fourier.passes import emit_pass, number_at, roots_table, transposed_in, write_transposed
from argosy_cinn.fourier.real_lines import emit_completed, emit_kept, emit_put_together, emit_taken_apart
from argosy_cinn.fourier.square_lines import emit_squares
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import I8, LLVM_TYPES, Index, Value, bytes_of
from argosy_cinn.runtime.workers import scratch
from argosy_cinn.shapes import count
from argosy_cinn.target import Target
from argosy_pir.types import ITEM_SIZES

#: What moves numbers from one place to the next.
Stage = Callable[[Place, Place], None]
_LINE = 64
#: Numbers of the longest table of roots for each number of a line.
_TABLE = 1 << 13
#: Bytes from one position to the next from which on numbers are asked for early, and how many positions.
_FAR, _AHEAD = 512, 2
#: Bytes of lines that are transformed together, up to which the next ones are asked for meanwhile.
_NEAR = 1 << 16


def emit_fourier(module: Module, name: str, kernel: FourierForm, slots: Mapping[Any, int]) -> None:
    """Define the kernel function ``name``."""
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        table, chunk, _ = b.arguments
        pointers = Pointers(b, table, slots)
        groups = _groups(kernel, module.target)
        size = groups.in_chunk
        begin = b.mul(chunk, size)
        end = b.minimum(b.add(begin, size), groups.count)
        _body(groups)(b, kernel, pointers(kernel.source), pointers(kernel.target), begin, end)


def _groups(kernel: FourierForm, target: Target) -> LineGroups:
    return LineGroups(kernel, target.lanes(LLVM_TYPES[kernel.real_dtype]))


EMITTER = Emitter(emit_fourier, lambda kernel, target: _groups(kernel, target).chunks)
"""For `argosy_cinn.kinds`."""


def _body(groups: LineGroups) -> Callable[[Function, FourierForm, Value, Value, Index, Index], None]:
    """What emits the groups of lines."""
    kernel = groups.form
    if kernel.is_convolution:
        return emit_convolutions
    if kernel.pieces:
        return _emit_pieces
    return emit_squares if groups.are_squares else _emit_groups


def _emit_groups(b: Function, kernel: FourierForm, source: Value, target: Value, begin: Index, end: Index) -> None:
    lines = _Lines(b, kernel, source, target)
    lines.memory = scratch(b, lines.scratch_bytes)
    lines.emit(begin, end)


def _emit_pieces(b: Function, kernel: FourierForm, source: Value, target: Value, begin: Index, end: Index) -> None:
    """Lines one after the other, each in two steps: what lies between them stays in a near cache."""
    first, second = kernel.steps()
    between = -(-kernel.length * ITEM_SIZES[kernel.source.dtype] // _LINE) * _LINE + _LINE
    most = max(_Lines(b, step, source, target).scratch_bytes for step in (first, second))
    line = scratch(b, between + most)
    size = ITEM_SIZES[kernel.source.dtype]
    with b.loop(begin, end) as loop:
        here = b.gep(source, b.mul(loop.index, kernel.source_steps[1] * size), I8)
        there = b.gep(target, b.mul(loop.index, kernel.target_steps[1] * size), I8)
        for step, start, stop in ((first, here, line), (second, line, there)):
            lines = _Lines(b, step, start, stop)
            lines.memory = b.gep(line, between, I8)
            lines.emit(0, LineGroups(step, lines.most).count)


class _Lines:
    """Groups of lines of a step, through the scratch memory at ``memory``."""

    memory: Value

    def __init__(self, b: Function, kernel: FourierForm, source: Value, target: Value) -> None:
        self.b, self.kernel, self.source, self.target = b, kernel, source, target
        self.element = LLVM_TYPES[kernel.real_dtype]
        self.most = b.module.target.lanes(self.element)
        self.lanes = LineGroups(kernel, self.most).width
        self.paired = kernel.transform != "c2c" and kernel.length % 2 == 0
        self.inner = kernel.length // 2 if self.paired else kernel.length
        self.spectrum = kernel.length // 2 + 1
        self.along_source = self._is_along(kernel.source_steps)
        self.along_target = self._is_along(kernel.target_steps)
        self.streaming = kernel.streaming and self._writes_lines()

    def _is_along(self, steps: tuple[int, int, int]) -> bool:
        """Whether lines lie behind each other, so that they have to be turned to lie side by side."""
        return self.lanes > 1 and steps[1] != 1

    def _writes_lines(self) -> bool:
        """Whether every vector that is written to the target is a cache line, or two."""
        kernel = self.kernel
        outer, lane, step = (n * ITEM_SIZES[kernel.target.dtype] for n in kernel.target_steps)
        if self.along_target:
            whole = (self.inner if kernel.transform == "c2r" else kernel.length) * ITEM_SIZES[kernel.target.dtype]
            return kernel.transform != "r2c" and not any(n % _LINE for n in (outer, lane, whole)) and self._is_full()
        return not any(n % _LINE for n in (outer, step)) and kernel.lanes % self.lanes == 0 and self._is_full()

    def _is_full(self) -> bool:
        return self.lanes * bytes_of(self.element) == _LINE

    @property
    def scratch_bytes(self) -> int:
        """The memory that a group's lines need: twice."""
        return 2 * self._buffer_bytes

    @property
    def _buffer_bytes(self) -> int:
        numbers = max(self.inner, self.spectrum * (self.kernel.transform != "c2c"))
        return -(-2 * self.lanes * bytes_of(self.element) * numbers // _LINE) * _LINE + _LINE

    def emit(self, begin: Index, end: Index) -> None:
        """The groups from ``begin`` to ``end``."""
        b, kernel = self.b, self.kernel
        across = -(-kernel.lanes // self.lanes)
        buffers = [b.gep(self.memory, i * self._buffer_bytes, I8) for i in (0, 1)]
        memory = [Scratch(base, self.element, self.lanes) for base in buffers]
        with b.loop(begin, end) as groups:
            outer, group = b.div(groups.index, across), b.rem(groups.index, across)
            lane = b.minimum(b.mul(group, self.lanes), kernel.lanes - self.lanes)
            source = self._address(self.source, kernel.source_steps, outer, lane, kernel.transform == "r2c")
            target = self._address(self.target, kernel.target_steps, outer, lane, kernel.transform == "c2r")
            self._group(source, target, group, memory)

    def _address(self, base: Value, steps: tuple[int, int, int], outer: Index, lane: Index, real: bool) -> Value:
        place = self.b.add(self.b.mul(outer, steps[0]), self.b.mul(lane, steps[1]))
        return self.b.gep(base, self.b.mul(place, 1 if real else 2), self.element)

    # -- stages

    def _group(self, source: Value, target: Value, group: Index, memory: list[Scratch]) -> None:
        stages: list[Stage] = []
        if self.along_source:
            stages.append(self._turned_in(source))
        if self.kernel.transform == "c2r":
            stages.append(self._from_spectrum)
        stages += self._passes()
        if self.kernel.transform == "r2c":
            stages.append(self._to_spectrum)
        if self.along_target:
            stages.append(self._transposed_output(target, group))
        places: list[Place] = [memory[i % 2] for i in range(len(stages) - 1)]
        places = [self._source_lines(source), *places, self._target_lines(target, group)]
        for stage, start, end in zip(stages, places, places[1:], strict=False):
            stage(start, end)

    def _source_lines(self, source: Value) -> Place:
        """Lines of the source that lie side by side."""
        step, ahead = self.kernel.source_steps[2], self._prefetch_distance()
        if self.kernel.transform == "r2c":
            return RealColumns(source, self.element, self.lanes, step, self.paired, ahead)
        return ChangedPlace(Columns(source, self.element, self.lanes, step, ahead), self._input_parts)

    def _prefetch_distance(self) -> int:
        """How many positions ahead to ask for numbers of the source: some, or as many as a line in pieces has, so that
        the next line comes."""
        kernel = self.kernel
        step = kernel.source_steps[2] * ITEM_SIZES[kernel.source.dtype]
        if not self._is_large():
            return 0
        if kernel.turn and kernel.outers == 1 and kernel.length * step <= _NEAR:
            return kernel.length
        return _AHEAD if step >= _FAR else 0

    def _group_ahead(self, stride: int) -> int:
        """Elements from a group of lines that lie behind each other to the next group, where to ask for it early."""
        ahead = self.lanes * stride
        return ahead if self._is_large() and ahead * bytes_of(self.element) <= _NEAR else 0

    def _is_large(self) -> bool:
        """Whether the source comes from beyond the second cache."""
        source = self.kernel.source
        return count(source) * ITEM_SIZES[source.dtype] > self.b.module.target.l2_bytes

    def _target_lines(self, target: Value, group: Index) -> Place:
        """Lines of the target that lie side by side."""
        step, streaming = self.kernel.target_steps[2], self.streaming
        place: Place = Columns(target, self.element, self.lanes, step, streaming=streaming)
        if self.kernel.transform == "c2r":
            place = RealColumns(target, self.element, self.lanes, step, self.paired, streaming=streaming)
        return self._output_place(place, group)

    def _turned_in(self, source: Value) -> Stage:
        kernel, real = self.kernel, self.kernel.transform == "r2c"
        stride = kernel.source_steps[1] * (1 if real else 2)
        numbers = {"c2c": kernel.length, "r2c": self.inner, "c2r": self.spectrum}[kernel.transform]
        ahead = self._group_ahead(stride)
        rows = Rows(source, self.element, self.lanes, stride, not real or self.paired, ahead)
        return lambda _, end: transposed_in(
            self.b, rows, numbers, end if real else ChangedPlace(end, self._input_parts)
        )

    def _transposed_output(self, target: Value, group: Index) -> Stage:
        kernel, real = self.kernel, self.kernel.transform == "c2r"
        stride = kernel.target_steps[1] * (1 if real else 2)
        numbers = {"c2c": kernel.length, "r2c": self.spectrum, "c2r": self.inner}[kernel.transform]
        ahead = self._group_ahead(stride)
        rows = Rows(target, self.element, self.lanes, stride, not real or self.paired, ahead, self.streaming)
        return lambda start, _: write_transposed(self.b, rows, numbers, self._output_place(start, group))

    def _passes(self) -> list[Stage]:
        stages: list[Stage] = []
        done = 1
        for radix in radices(self.inner):
            stages.append(self._pass(done, radix))
            done *= radix
        return stages

    def _pass(self, done: int, radix: int) -> Stage:
        return lambda start, end: emit_pass(self.b, self.inner, done, radix, start, end, self.element, self.lanes)

    def _from_spectrum(self, start: Place, end: Place) -> None:
        end = ChangedPlace(end, swap_parts)  # passes have the sign of the forward transform
        if self.paired:
            emit_put_together(self.b, self.inner, start, end, self.element, self.lanes)
        else:
            emit_completed(self.b, self.kernel.length, start, end)

    def _to_spectrum(self, start: Place, end: Place) -> None:
        if self.paired:
            emit_taken_apart(self.b, self.inner, start, end, self.element, self.lanes)
        else:
            emit_kept(self.b, self.kernel.length, start, end)

    # -- changes on the way

    def _input_parts(self, b: Function, x: Number) -> Number:
        if self.kernel.transform == "c2r":
            return x if self.kernel.inverse else conjugate(b, x)
        return swap_parts(b, x) if self.kernel.inverse else x

    def _output_place(self, place: Place, group: Index) -> Place:
        """A place, or a stage's source, with what is done to numbers at last."""
        kernel = self.kernel
        if kernel.scale != 1.0:
            place = ChangedPlace(place, scale_numbers(kernel.scale))
        if kernel.transform == "r2c" and kernel.inverse:
            place = ChangedPlace(place, conjugate)
        if kernel.transform == "c2r" or (kernel.transform == "c2c" and kernel.inverse):
            place = ChangedPlace(place, swap_parts)
        return TwiddledPlace(place, self._roots(group)) if kernel.turn else place

    def _roots(self, group: Index) -> Callable[[Index], Number]:
        """The roots that a first step multiplies with, by position: from one table, or that of the group's first lane
        times that of the lane within the group, where the table would be long."""
        b, kernel, lanes = self.b, self.kernel, self.lanes
        positions, within = np.arange(kernel.length), np.arange(lanes)
        starts = np.minimum(np.arange(-(-kernel.lanes // lanes)) * lanes, kernel.lanes - lanes)
        short = len(starts) * lanes * kernel.length <= _TABLE
        bases = starts if short else starts[:1] * 0
        exponents: np.ndarray[Any, Any] = positions[None, :, None] * (bases[:, None, None] + within)
        wide = Scratch(roots_table(b, exponents, kernel.turn, self.element, lanes), self.element, lanes)
        first = None if short else roots_table(b, np.outer(starts, positions), kernel.turn, self.element)

        def root_at(position: Index) -> Number:
            place = b.add(b.mul(group, kernel.length), position)
            if first is None:
                return wide.load(b, place)
            return multiply_numbers(b, wide.load(b, position), number_at(b, first, place, self.element, lanes))

        return root_at
