"""Generate text with an exported causal program: prefill the prompt, then decode token by token over the paged
cache.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Generator as Coroutine
from itertools import count
from typing import Any

import numpy as np

from argosy_infer.adapters import ADAPTER
from argosy_infer.caches import caches_of
from argosy_infer.errors import InputError
from argosy_infer.export import LoadedProgram, load_program
from argosy_infer.incremental import make_incremental
from argosy_infer.limits import check_range, input_limit, integers
from argosy_infer.llm.beams import Beam, BeamOptions, BeamSearch
from argosy_infer.llm.continuation import Continuation
from argosy_infer.llm.kv_cache import BlockAllocator
from argosy_infer.llm.sampling import SamplingOptions
from argosy_infer.predictor import Predictor
from argosy_infer.weights import lay_out_weights
from argosy_pir.program import Program
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import StridedArray

__all__ = ["Generator", "SamplingOptions"]

Array = np.ndarray[Any, Any]
_LONGEST_PIECE = 256  # tokens of a prompt in one step


class Generator:
    """A causal language model ready to generate.

    ``source`` is an exported program over tokens [batch, sequence] giving logits [batch, sequence, vocabulary]; it is
    made incremental here, its weights laid out for reading. The cache holds ``capacity`` tokens in all, in bytes
    with scales where ``cache_dtype`` is "int8". Where a program computes with the length of the text, it is taken as
    ``text_length``. What a sequence gives does not depend on others beside it, nor on the
    pieces of its prompt, unless ``batch_invariant`` is False.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | LoadedProgram,
        capacity: int = 4096,
        block_size: int = 16,
        compiler: str | None = None,
        batch_invariant: bool = True,
        cache_dtype: str | None = None,
        text_length: int | None = None,
    ) -> None:
        loaded = lay_out_weights(source if isinstance(source, LoadedProgram) else load_program(source))
        program = make_incremental(loaded.program, block_size, cache_dtype, loaded.states, text_length)
        names = [x.name_hint for x in loaded.program.inputs[1:]]
        if names not in ([], [ADAPTER]):
            raise InputError(f"a generator gives tokens and adapters of rows; the program takes {names}, too")
        self.adapters: dict[int, int] | None = {} if names else None  #: Each sequence's, where the program takes some.
        self.allocator = BlockAllocator(-(-capacity // block_size), block_size)
        caches = {cache.name: cache.allocate(self.allocator.blocks) for cache in caches_of(program)}
        self._caches, states = tuple(caches), {**loaded.states, **caches}
        self.predictor = Predictor(LoadedProgram(program, states), compiler, batch_invariant=batch_invariant)
        self._dtype = as_dtype(program.inputs[0].dtype).numpy
        self._positions = input_limit(program, "positions")
        self._vocabulary = input_limit(program, "tokens") or _width(program)
        self._next_sequence = 0
        self._one_row, self._first_token = StridedArray(np.arange(2)), StridedArray(np.zeros(1, np.int64))
        self._blocks: list[int] | None = None  # the latest table, and its payload
        self._table: StridedArray

    @property
    def capacity(self) -> int:
        """How many tokens the cache holds."""
        return self.allocator.blocks * self.allocator.block_size

    def step(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[int],
        outputs: Sequence[int] | None = None,
    ) -> Array:
        """Logits [m, vocabulary] of the tokens that ``outputs`` numbers (all of them, unless given) among new tokens;
        sequence ``sequences[i]`` holds token ``i`` at ``positions[i]``.

        A sequence goes on where it ends, or earlier: what was cached behind is forgotten then. Raises
        :class:`InputError` for tokens and positions that the model does not have, that are no integers, and for
        positions that leave some out, and ``CacheFull``; nothing has changed then.
        """
        ids, places, owners = self._check_vectors(tokens, positions, sequences)
        wanted = integers("outputs", range(len(ids)) if outputs is None else outputs)
        check_range("output", wanted, len(ids), "step")
        rows = np.unique(owners).tolist()
        ends = {row: self._end_of(row, places[owners == row]) for row in rows}
        for row, end in ends.items():
            self._reserve(row, int(places[owners == row].min()), end)
        order = np.argsort(owners, kind="stable")
        starts = np.searchsorted(owners[order], [*rows, rows[-1] + 1])
        numbers = [places[order], starts, self.allocator.table(rows), np.argsort(order)[wanted]]
        if self.adapters is not None:
            numbers.append(np.array([self.adapters.get(row, 0) for row in rows], np.int64))
        logits = self._run(*map(StridedArray.from_array, (ids[order].astype(self._dtype, copy=False), *numbers)))
        self.allocator.lengths.update(ends)
        return logits

    def _check_vectors(self, tokens: Any, positions: Any, sequences: Any) -> tuple[Array, Array, Array]:
        """Tokens, positions and sequences as vectors."""
        ids, places = integers("tokens", tokens), integers("positions", positions)
        owners = integers("sequences", sequences)
        if not len(ids) or len({len(ids), len(places), len(owners)}) > 1:
            raise InputError(
                f"a step takes as many tokens as positions and sequences, one at least; got {len(ids)}, {len(places)} "
                f"and {len(owners)}"
            )
        check_range("token", ids, self._vocabulary, "vocabulary")
        check_range("position", places, self._positions, "positions")
        return ids, places, owners

    def _end_of(self, sequence: int, places: Array) -> int:
        """How many tokens a sequence holds with new ones at these positions."""
        start = self.allocator.lengths.get(sequence, 0)
        placed = np.sort(places)
        if placed[0] > start or (np.diff(placed) != 1).any():
            expected = f"0 to {start}" if start else "0"
            raise InputError(
                f"positions of sequence {sequence} should begin at {expected} and follow each other, got "
                f"{places[:8].tolist()}{' ...' if len(places) > 8 else ''}"
            )
        return int(placed[-1]) + 1

    def _reserve(self, sequence: int, start: int, end: int) -> None:
        """Room for the tokens of a sequence up to ``end``; those from ``start`` on are to be written."""
        for source, target in self.allocator.reserve(sequence, end, start):
            for cache in self._paged_states():
                parts = [cache.view(cache.shape[1:], cache.strides[1:], i * cache.strides[0]) for i in (target, source)]
                parts[0].copy_from(parts[1])

    def _paged_states(self) -> list[StridedArray]:
        """All states whose first axis is that of blocks."""
        return [self.predictor.states[name] for name in self._caches]

    def fork(self, sequence: int) -> int:
        """A new sequence with the tokens of another one so far: what is cached of these is in memory once."""
        child = self._next_sequence
        self._next_sequence += 1
        self.allocator.fork(sequence, child)
        if self.adapters is not None:
            self.adapters[child] = self.adapters.get(sequence, 0)
        return child

    def _run(self, *inputs: StridedArray) -> Array:
        """Logits of wanted tokens; inputs are of the dtypes that `make_incremental` asks for."""
        (logits,) = self.predictor.call(inputs)
        return logits.array()

    def _step_one(self, token: int, position: int, sequence: int) -> Array:
        """`step` for one token of one sequence, whose block table is kept until it grows."""
        if self._positions is not None and position >= self._positions:
            check_range("position", np.array([position]), self._positions, "positions")
        self._reserve(sequence, position, position + 1)
        blocks = self.allocator.tables[sequence]
        if self._blocks is not blocks:
            self._blocks, self._table = blocks, StridedArray(np.array([blocks], np.int64))
        new = StridedArray(np.array([token], self._dtype))
        place = StridedArray(np.array([position], np.int64))
        given = [new, place, self._one_row, self._table, self._first_token]
        if self.adapters is not None:
            given.append(StridedArray(np.array([self.adapters.get(sequence, 0)], np.int64)))
        logits = self._run(*given)
        self.allocator.lengths[sequence] = position + 1
        return logits

    def stream(
        self,
        prompt: Sequence[int],
        max_new_tokens: int,
        options: SamplingOptions | None = None,
        stop: int | Collection[int] | None = None,
        min_new_tokens: int = 0,
        adapter: int = 0,
    ) -> Iterator[int]:
        """New tokens after ``prompt``, one by one; ends before the token ``stop``, or one of them, which do not come
        before ``min_new_tokens`` others. ``adapter``: which of those of ``add_adapters`` it has, 0 for none.

        Raises ``ValueError`` for an empty prompt, :class:`InputError` for one that the model cannot take (ids outside
        of its vocabulary, more tokens than it has positions), when generation goes beyond its positions, too,
        :class:`LogitsError` where logits are NaN, and ``CacheFull`` when the cache cannot hold the sequence.
        """
        text = Continuation(prompt, max_new_tokens, options, stop, min_new_tokens, adapter)
        self._check_text(text)
        sequence = self._open(text)
        try:
            rows = self._logits(text.text, sequence)
            row = next(rows)
            while not text.ended and (token := text.choose(row)) is not None:
                yield token
                if not text.ended:
                    row = rows.send(token)
        finally:
            self._close(sequence)

    def _check_text(self, text: Continuation) -> None:
        check_range("token", integers("the prompt", text.text), self._vocabulary, "vocabulary")
        if self._positions is not None and text.prompt > self._positions:
            raise InputError(f"the prompt has {text.prompt} tokens; the model has {self._positions} positions")
        if text.adapter and self.adapters is None:
            raise InputError(f"the program takes no adapters (see add_adapters), got {text.adapter}")

    def _open(self, text: Continuation) -> int:
        """A new sequence."""
        sequence = self._next_sequence
        self._next_sequence += 1
        if self.adapters is not None:
            self.adapters[sequence] = text.adapter
        return sequence

    def _close(self, sequence: int) -> None:
        self.allocator.release(sequence)
        if self.adapters is not None:
            self.adapters.pop(sequence, None)

    def _logits(self, prompt: Sequence[int], sequence: int) -> Coroutine[Array, int, None]:
        """Logits [vocabulary] of the token after the prompt, then of the one after each that is sent."""
        for places in pieces_of(len(prompt)):
            given = prompt[places.start : places.stop]
            logits = self.step(given, places, [sequence] * len(places), [len(places) - 1])
        for position in count(len(prompt)):
            token = yield logits[-1]
            logits = self._step_one(token, position, sequence)

    def generate(
        self,
        prompt: Sequence[int],
        max_new_tokens: int,
        options: SamplingOptions | None = None,
        stop: int | Collection[int] | None = None,
        min_new_tokens: int = 0,
        adapter: int = 0,
    ) -> list[int]:
        """All new tokens at once; see :meth:`stream`."""
        return list(self.stream(prompt, max_new_tokens, options, stop, min_new_tokens, adapter))

    def generate_batch(
        self,
        prompts: Sequence[Sequence[int]],
        max_new_tokens: int,
        options: SamplingOptions | Sequence[SamplingOptions] | None = None,
        stop: int | Collection[int] | None = None,
        min_new_tokens: int = 0,
        adapters: Sequence[int] = (),
    ) -> list[list[int]]:
        """All new tokens after each of the ``prompts``, which may be of any lengths, with ``options`` of all or of each
        and ``adapters`` of each: what :meth:`generate` gives after them one by one.

        Texts go on together, a token of each in a step; where the cache does not hold all of them at their longest,
        some wait until others have ended. Raises as :meth:`stream`.
        """
        each = [options] * len(prompts) if options is None or isinstance(options, SamplingOptions) else options
        rows = zip(prompts, each, adapters or [0] * len(prompts), strict=True)
        texts = [Continuation(p, max_new_tokens, o, stop, min_new_tokens, adapter) for p, o, adapter in rows]
        self.extend(texts)
        return [text.made for text in texts]

    def search(
        self,
        prompt: Sequence[int],
        max_new_tokens: int,
        beams: BeamOptions,
        options: SamplingOptions | None = None,
        stop: int | Collection[int] | None = None,
        min_new_tokens: int = 0,
        adapter: int = 0,
    ) -> list[Beam]:
        """The best of the texts after ``prompt``, by beam search (see :class:`BeamOptions`), the best first, without
        the tokens that end them. Texts share what is cached of the tokens that they have in common. Raises as
        :meth:`stream`, and NotImplementedError for options that draw tokens."""
        text = Continuation(prompt, max_new_tokens, options, stop, min_new_tokens, adapter)
        self._check_text(text)
        search = BeamSearch(text, beams)
        if not max_new_tokens:
            return search.open
        sequences = [self._open(text)]
        try:
            logits = next(self._logits(text.text, sequences[0])).reshape(1, -1)
            while parents := search.advance(logits):
                sequences = self._fork_beams(sequences, parents)
                last = [beam.tokens[-1] for beam in search.open]
                position = len(text.text) + len(search.open[0].tokens) - 1
                logits = self.step(last, [position] * len(last), sequences)
        finally:
            for sequence in sequences:
                self._close(sequence)
        return search.ended

    def _fork_beams(self, sequences: Sequence[int], parents: Sequence[int]) -> list[int]:
        """Sequences that go on from those numbered ``parents``; others are closed."""
        seen, made = set[int](), list[int]()
        for parent in parents:
            made.append(self.fork(sequences[parent]) if parent in seen else sequences[parent])
            seen.add(parent)
        for number, sequence in enumerate(sequences):
            if number not in seen:
                self._close(sequence)
        return made

    def extend(self, texts: Sequence[Continuation]) -> None:
        """Let texts grow until each has ended, together: see :meth:`generate_batch`."""
        for text in texts:
            self._check_text(text)
        waiting, live = [text for text in texts if not text.ended][::-1], dict[int, Continuation]()
        rows: dict[int, Array] = {}
        try:
            while waiting or live:
                while waiting and (not live or self._has_room(waiting[-1], live)):
                    self._start(waiting.pop(), live, waiting, rows)
                if live:
                    last = [(text.text[-1], len(text.text) - 1, sequence) for sequence, text in live.items()]
                    self._choose(live, list(live), self.step(*zip(*last, strict=True)))
        finally:
            for sequence in live:
                self._close(sequence)

    def _has_room(self, text: Continuation, live: Mapping[int, Continuation]) -> bool:
        """Whether the cache holds one more text beside those that are ``live``, all at their longest."""
        size = self.allocator.block_size
        others = sum(len(table) for sequence, table in self.allocator.tables.items() if sequence not in live)
        return others + sum(-(-each.longest // size) for each in (text, *live.values())) <= self.allocator.blocks

    def _start(
        self, text: Continuation, live: dict[int, Continuation], waiting: Sequence[Continuation], rows: dict[int, Array]
    ) -> None:
        """Let a text be ``live``: what follows its prompt is chosen. Texts with the prompt of a live one share what is
        cached of it; ``rows``: the logits after prompts that texts ``waiting`` have, too, by sequence."""
        same = next((each for each in rows if each in live and _begin_alike(text, live[each])), None)
        sequence = self._open(text) if same is None else self.fork(same)
        live[sequence] = text
        row = next(self._logits(text.text, sequence)) if same is None else rows[same]
        if any(_begin_alike(text, each) for each in waiting):
            rows[sequence] = row
        self._choose(live, [sequence], [row])

    def _choose(self, live: dict[int, Continuation], sequences: Sequence[int], rows: Iterable[Array]) -> None:
        """Choose the next token of texts; those that end are no longer ``live``."""
        for sequence, row in zip(sequences, rows, strict=True):
            text = live[sequence]
            text.choose(row)
            if text.ended:
                self._close(sequence)
                del live[sequence]


def _begin_alike(one: Continuation, other: Continuation) -> bool:
    """Whether two texts have the same prompt, and adapter."""
    return one.adapter == other.adapter and one.text[: one.prompt] == other.text[: other.prompt]


def pieces_of(length: int) -> Iterator[range]:
    """The places of a prompt in pieces whose lengths are powers of two, so that few sizes are ever compiled."""
    at = 0
    while at < length:
        piece = min(_LONGEST_PIECE, 1 << ((length - at).bit_length() - 1))
        yield range(at, at + piece)
        at += piece


def _width(program: Program) -> int | None:
    """How many logits a token has."""
    width = program.outputs[0].shape[-1]
    return width if isinstance(width, int) else None
