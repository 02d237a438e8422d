"""Generation with guesses: modules that predict further tokens name those after the next, and the model verifies them
beside that one, in one step (Leviathan et al., 2023; DeepSeek-V3's multi-token prediction).
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
    """A generator whose steps give up to one token more than there are drafts; they are those that it would give one by
    one.

    ``source`` gives logits and hidden states [batch, sequence, width]; the first of the ``drafts`` takes the next ids
    and these states, and gives logits of the tokens after those, over a cache of its own, and, where another one
    follows, the states that this takes beside the ids after the next. ``options`` are those of :class:`Generator`.
    How many tokens were ``guessed``, and how many guesses ``accepted``, is counted. Raises InputError for other
    programs.
    """

    def __init__(self, source: LoadedProgram, *drafts: LoadedProgram, **options: Any) -> None:
        super().__init__(source, **options)
        for number, loaded in enumerate((source, *drafts)):
            made, taken = len(loaded.program.outputs), len(loaded.program.inputs)
            if not drafts or (made, taken) != (1 if number == len(drafts) else 2, 2 if number else 1):
                raise InputError(
                    f"expected a program of logits and hidden states, and programs of ids and states; program {number} "
                    f"has {made} outputs and {taken} inputs"
                )
        self._drafts = [self._compile(draft, options) for draft in drafts]
        self._hidden: Array
        self.guessed = self.accepted = 0

    def _compile(self, draft: LoadedProgram, options: dict[str, Any]) -> Predictor:
        laid, size = lay_out_weights(draft), self.allocator.block_size
        chosen = options.get("cache_dtype"), laid.states, options.get("text_length")
        program = make_incremental(laid.program, size, *chosen)
        caches = {cache.name: cache.allocate(self.allocator.blocks) for cache in caches_of(program)}
        compiler, invariant = options.get("compiler"), options.get("batch_invariant", True)
        return Predictor(LoadedProgram(program, {**laid.states, **caches}), compiler, batch_invariant=invariant)

    def _paged_states(self) -> list[StridedArray]:
        drafts = [draft.states[cache.name] for draft in self._drafts for cache in caches_of(draft.program)]
        return super()._paged_states() + drafts

    def _run(self, *inputs: StridedArray) -> Array:
        logits, hidden = self.predictor.call(inputs)
        self._hidden = hidden.array()
        return logits.array()

    def _logits(self, prompt: Sequence[int], sequence: int) -> Coroutine[Array, int, None]:
        text, depth = list(prompt), len(self._drafts)
        first, states = 0, None  # hidden states from a position on: drafts know the tokens that follow those before
        for places in pieces_of(len(text)):
            logits = self.step(text[places.start : places.stop], places, [sequence] * len(places))
            states = self._hidden if states is None else np.concatenate([states, self._hidden])
            known = max(min(places.stop, len(text) - depth) - first, 0)
            if known:
                self._guess(text, states[:known], first, sequence)
                first, states = first + known, states[known:]
        text.append((yield logits[-1]))
        while True:
            assert states is not None
            guesses = self._guess(text, states, first, sequence)
            known = max(len(text) - depth - first, 0)
            logits = self._verify(text[-1], guesses, len(text) - 1, sequence)
            hidden = self._hidden
            for right in range(len(logits)):
                text.append((yield logits[right]))
                if right + 1 == len(logits) or text[-1] != guesses[right]:
                    break
                self.accepted += 1
            first, states = first + known, np.concatenate([states[known:], hidden[: right + 1]])

    def _verify(self, token: int, guesses: Sequence[int], position: int, sequence: int) -> Array:
        """Logits of a token and of the guesses after it that have room."""
        room = len(guesses) if self._positions is None else min(len(guesses), self._positions - 1 - position)
        if room > 0:
            try:
                logits = self.step(
                    [token, *guesses[:room]], range(position, position + room + 1), [sequence] * (room + 1)
                )
                self.guessed += room
                return logits
            except CacheFull:
                pass
        return self.step([token], [position], [sequence])

    def _guess(self, text: Sequence[int], states: Array, first: int, sequence: int) -> list[int]:
        """What each draft takes to come next, by the ``states`` of the tokens of ``text`` from position ``first`` on. A
        draft knows of tokens that are not in the text what those before it have guessed."""
        count, guesses = len(states), list[int]()
        numbers = [
            np.arange(first, first + count), np.array([0, count]), self.allocator.table([sequence]),
        ]  # fmt: skip
        for depth, draft in enumerate(self._drafts, 1):
            following = np.asarray([*text, *guesses][first + depth : first + depth + count], self._dtype)
            wanted = np.arange(count) if depth < len(self._drafts) else np.array([count - 1])
            inputs = [following, *numbers, wanted, np.ascontiguousarray(states)]
            logits, *rest = draft.call([StridedArray.from_array(array) for array in inputs])
            states = rest[0].array() if rest else states
            guesses.append(int(logits.array()[-1].argmax()))
        return guesses
