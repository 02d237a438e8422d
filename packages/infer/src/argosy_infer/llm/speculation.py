"""Generation with guesses: a module that predicts further tokens names the token after the next, and the model verifies
it beside that one, in one step (Leviathan et al., 2023; DeepSeek-V3's multi-token prediction).
"""

from __future__ import annotations

from collections.abc import Generator as Coroutine
from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_infer.caches import caches_of
from argosy_infer.errors import InputError
from argosy_infer.export import LoadedProgram
from argosy_infer.incremental import make_incremental
from argosy_infer.llm.generator import Generator, pieces_of
from argosy_infer.llm.kv_cache import CacheFull
from argosy_infer.predictor import Predictor
from argosy_infer.weights import lay_out_weights
from argosy_tensorcore.storage import StridedArray

__all__ = ["SpeculativeGenerator"]

Array = np.ndarray[Any, Any]


class SpeculativeGenerator(Generator):
    """A generator whose steps give up to two tokens, which are those that it would give one by one.

    ``source`` gives logits and hidden states [batch, sequence, width]; ``draft`` takes the next ids and these states,
    and gives logits of the tokens after those, over a cache of its own. ``options`` are those of :class:`Generator`.
    How many tokens were ``guessed``, and how many guesses ``accepted``, is counted. Raises InputError for other
    programs.
    """

    def __init__(self, source: LoadedProgram, draft: LoadedProgram, **options: Any) -> None:
        super().__init__(source, **options)
        if len(source.program.outputs) != 2 or len(draft.program.inputs) != 2:
            raise InputError(
                f"expected a program of logits and hidden states, and one of ids and states; got "
                f"{len(source.program.outputs)} outputs and {len(draft.program.inputs)} inputs"
            )
        laid, size = lay_out_weights(draft), self.allocator.block_size
        chosen = options.get("cache_dtype"), laid.states, options.get("text_length")
        program = make_incremental(laid.program, size, *chosen)
        caches = {cache.name: cache.allocate(self.allocator.blocks) for cache in caches_of(program)}
        compiler, invariant = options.get("compiler"), options.get("batch_invariant", True)
        self._draft = Predictor(LoadedProgram(program, {**laid.states, **caches}), compiler, batch_invariant=invariant)
        self._hidden: Array
        self.guessed = self.accepted = 0

    def _run(self, *inputs: StridedArray) -> Array:
        logits, hidden = self.predictor.call(inputs)
        self._hidden = hidden.array()
        return logits.array()

    def _logits(self, prompt: Sequence[int], sequence: int) -> Coroutine[Array, int, None]:
        for places in pieces_of(len(prompt)):
            logits = self.step(prompt[places.start : places.stop], places, [sequence] * len(places))
            following, known = prompt[places.start + 1 : places.stop + 1], self._hidden
            if len(following):
                self._guess(following, known[: len(following)], places.start, sequence)
        position, tokens, states = len(prompt), [(yield logits[-1])], known[-1:]
        while True:
            guess = self._guess(tokens, states, position - len(tokens), sequence)
            logits = self._verify([tokens[-1], guess], position, sequence)
            states, position = self._hidden[:1], position + 1
            tokens = [(yield logits[0])]
            if len(logits) == 2 and tokens[0] == guess:
                states, position, self.accepted = self._hidden, position + 1, self.accepted + 1
                tokens.append((yield logits[1]))

    def _verify(self, tokens: list[int], position: int, sequence: int) -> Array:
        """Logits of a token and of a guess after it, where both have room, else of the token."""
        if self._positions is None or position + 1 < self._positions:
            try:
                logits = self.step(tokens, [position, position + 1], [sequence] * 2)
                self.guessed += 1
                return logits
            except CacheFull:
                pass
        return self.step(tokens[:1], [position], [sequence])

    def _guess(self, following: Sequence[int], states: Array, first: int, sequence: int) -> int:
        """What comes after ``following``, the ids behind the tokens from the position ``first`` on, whose states are
        given."""
        count = len(following)
        numbers = [
            np.asarray(following, self._dtype), np.arange(first, first + count), np.array([0, count]),
            self.allocator.table([sequence]), np.array([count - 1]), np.ascontiguousarray(states),
        ]  # fmt: skip
        (logits,) = self._draft.call([StridedArray.from_array(array) for array in numbers])
        return int(logits.array()[-1].argmax())
