"""Generate text with an exported causal program: prefill the prompt, then decode token by token over the paged
cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_infer.export import LoadedProgram, load_program
from argosy_infer.incremental import make_incremental
from argosy_infer.llm.kv_cache import BlockAllocator
from argosy_infer.llm.sampling import SamplingOptions, sample
from argosy_infer.predictor import Predictor
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import Strided

__all__ = ["Generator", "SamplingOptions"]

Array = np.ndarray[Any, Any]
_LONGEST_PIECE = 256  # tokens of a prompt in one step


class Generator:
    """A causal language model ready to generate.

    ``source`` is an exported program over tokens [batch, sequence] giving logits [batch, sequence, vocabulary]; it is
    made incremental here, and once more, at the first prompt, for several tokens of a single sequence, which read what
    is cached together. The cache holds ``capacity`` tokens in all.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | LoadedProgram,
        capacity: int = 4096,
        block_size: int = 16,
        compiler: str | None = None,
    ) -> None:
        loaded = source if isinstance(source, LoadedProgram) else load_program(source)
        program = make_incremental(loaded.program, block_size)
        self.allocator = BlockAllocator(-(-capacity // block_size), block_size)
        states = dict(loaded.states)
        for state in program.states:
            if state.attributes.get("role") == "cache":
                assert isinstance(state.type, TensorType)
                shape = (self.allocator.blocks, *(int(n) for n in state.type.shape[1:]))  # type: ignore[arg-type]
                states[state.name] = np.zeros(shape, as_dtype(state.type.dtype).numpy)
        self.predictor = Predictor(LoadedProgram(program, states), compiler)
        self._loaded, self._compiler = loaded, compiler
        self._of_one: Predictor | None = None
        self._next_sequence = 0
        self._first_row = Strided(np.zeros(1, np.int64))
        self._blocks: list[int] | None = None  # the latest table, and its payload
        self._table: Strided

    def step(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int]) -> Array:
        """Logits [t, vocabulary] of new tokens; sequence ``sequences[i]`` holds token ``i`` at ``positions[i]``."""
        rows = list(dict.fromkeys(sequences))
        for sequence in rows:
            last = max(p for p, s in zip(positions, sequences, strict=True) if s == sequence)
            self.allocator.reserve(sequence, last + 1)
        row_of = {sequence: i for i, sequence in enumerate(rows)}
        inputs = (tokens, positions, [row_of[s] for s in sequences], self.allocator.table(rows))
        predictor = self._predictor_of_one() if len(rows) == 1 < len(tokens) else self.predictor
        return self._run(predictor, *(Strided(np.array(x, np.int64)) for x in inputs))

    def _predictor_of_one(self) -> Predictor:
        """The program for tokens of one sequence, over the same weights and caches."""
        if self._of_one is None:
            program = make_incremental(self._loaded.program, self.allocator.block_size, rows=1)
            states = {name: state.array() for name, state in self.predictor.states.items()}
            self._of_one = Predictor(LoadedProgram(program, states), self._compiler)
        return self._of_one

    def _run(self, predictor: Predictor, *inputs: Strided) -> Array:
        """Logits of new tokens; all inputs are of int64, as `make_incremental` asks for."""
        (logits,) = predictor.call(inputs)
        return logits.array()

    def _next(self, token: int, position: int, sequence: int) -> Array:
        """`step` for one token of one sequence, whose block table is kept until it grows."""
        self.allocator.reserve(sequence, position + 1)
        blocks = self.allocator.tables[sequence]
        if self._blocks is not blocks:
            self._blocks, self._table = blocks, Strided(np.array([blocks], np.int64))
        new = Strided(np.array([token], np.int64))
        return self._run(self.predictor, new, Strided(np.array([position], np.int64)), self._first_row, self._table)

    def stream(
        self,
        prompt: Sequence[int],
        max_new_tokens: int,
        options: SamplingOptions | None = None,
        stop: int | None = None,
    ) -> Iterator[int]:
        """New tokens after ``prompt``, one by one; ends before the token ``stop``.

        Raises ``ValueError`` for an empty prompt and ``CacheFull`` when the cache cannot hold the sequence.
        """
        if not len(prompt):
            raise ValueError("the prompt is empty; generation needs at least one token")
        options = options or SamplingOptions()
        sequence = self._next_sequence
        self._next_sequence += 1
        try:
            logits = self._prefill(prompt, sequence)
            for position in range(len(prompt), len(prompt) + max_new_tokens):
                token = sample(logits[-1], options, position)
                if token == stop:
                    return
                yield token
                if position + 1 < len(prompt) + max_new_tokens:
                    logits = self._next(token, position, sequence)
        finally:
            self.allocator.release(sequence)

    def _prefill(self, prompt: Sequence[int], sequence: int) -> Array:
        """Feed the prompt in pieces whose lengths are powers of two, so that few sizes are ever compiled."""
        at = 0
        while True:
            piece = min(_LONGEST_PIECE, 1 << ((len(prompt) - at).bit_length() - 1))
            logits = self.step(prompt[at : at + piece], range(at, at + piece), [sequence] * piece)
            at += piece
            if at == len(prompt):
                return logits

    def generate(
        self,
        prompt: Sequence[int],
        max_new_tokens: int,
        options: SamplingOptions | None = None,
        stop: int | None = None,
    ) -> list[int]:
        """All new tokens at once; see :meth:`stream`."""
        return list(self.stream(prompt, max_new_tokens, options, stop))
