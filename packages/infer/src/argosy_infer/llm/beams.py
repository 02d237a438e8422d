"""Beam search: of the texts that go on from a prompt, the most probable ones are kept at each token.

The sum of a text's logarithms of probabilities, divided by a power of its length when it has ended, is its score. Texts
are kept, ended and chosen among as by transformers, whose early stopping this has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from argosy_infer.llm.continuation import Continuation
from argosy_infer.llm.sampling import penalise

__all__ = ["Beam", "BeamOptions", "BeamSearch"]

Array = np.ndarray[Any, Any]
_LARGEST = 700.0
"""Of a power of e that is a float, as is its inverse."""


@dataclass(frozen=True)
class BeamOptions:
    """``count`` texts go on together; scores are divided by the number of tokens to the power of ``length_penalty``.

    A search is over once ``count`` texts have ended and, with ``early_stopping`` True, at once; False: when the most
    probable one that goes on would not be among them if it ended now; "never": nor at the best length it may come to.
    Raises ValueError for other values.
    """

    count: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise ValueError(f"num_beams should be 1 or more, got {self.count!r:.80}")
        penalty = self.length_penalty
        if isinstance(penalty, bool) or not isinstance(penalty, (int, float)) or not math.isfinite(penalty):
            raise ValueError(f"length_penalty should be a number, got {penalty!r:.80}")
        if not isinstance(self.early_stopping, bool) and self.early_stopping != "never":
            raise ValueError(f"early_stopping is True, False or 'never', got {self.early_stopping!r:.80}")


class Beam(NamedTuple):
    """The tokens of a text after the prompt, and their score."""

    tokens: list[int]
    score: float


class BeamSearch:
    """The search for what follows ``text``, a continuation without tokens: texts that go on (``open``, the most
    probable first, with sums as scores) and those that have ``ended``, the best first.

    Raises NotImplementedError for options that draw tokens.
    """

    def __init__(self, text: Continuation, options: BeamOptions) -> None:
        if text.options.temperature:
            raise NotImplementedError("beams are not drawn: temperature should be 0 where num_beams is more than 1")
        self.text, self.options = text, options
        self.open, self.ended, self._may_improve = [Beam([], 0.0)], list[Beam](), True

    def advance(self, logits: Array) -> list[int]:
        """Let the open texts grow by a token, of ``logits`` [open texts, vocabulary]: for each that is open then, the
        number of the one that it goes on from; none when the search is over. Raises LogitsError as `sample` does."""
        rows = [beam.score + self._scores(row, beam) for row, beam in zip(logits, self.open, strict=True)]
        flat, size = np.concatenate(rows), len(rows[0])
        kept, ended, parents = list[Beam](), list[Beam](), list[int]()
        length = len(self.open[0].tokens) + 1
        for rank, place in enumerate(self._best(flat)):
            parent, token = divmod(int(place), size)
            tokens, score = [*self.open[parent].tokens, token], float(flat[place])
            if token not in self.text.ends and length < self.text.most:
                if len(kept) < self.options.count:
                    kept.append(Beam(tokens, score))
                    parents.append(parent)
            elif rank < self.options.count:
                made = tokens[:-1] if token in self.text.ends else tokens
                ended.append(Beam(made, self._score(score, length)))
        self._end(ended)
        self.open = kept
        return [] if not kept or self._is_over(length) else parents

    def _scores(self, row: Array, beam: Beam) -> Array:
        """Logarithms of probabilities [vocabulary] of the token after a text, changed by its penalties."""
        wide = row.astype(np.float64)
        shifted = wide - wide.max()
        said = self.text.text + beam.tokens
        given = shifted - np.log(np.exp(shifted).sum())
        return penalise(given, self.text.options_at(len(beam.tokens)), len(said), said, self.text.prompt)

    def _best(self, flat: Array) -> Array:
        """The places of the best scores, so many that texts are left to go on when others end."""
        count = min(max(2, 1 + len(self.text.ends)) * self.options.count, len(flat))
        found = np.sort(np.argpartition(-flat, count - 1)[:count])
        found = found[np.argsort(-flat[found], kind="stable")]
        return found[flat[found] > -np.inf]

    def _score(self, total: float, length: int) -> float:
        exponent = self.options.length_penalty * math.log(length)
        return total / math.exp(min(max(exponent, -_LARGEST), _LARGEST))

    @property
    def _is_full(self) -> bool:
        return len(self.ended) == self.options.count

    def _end(self, found: list[Beam]) -> None:
        """Keep the best of what has ended."""
        if self._may_improve and not (self._is_full and self.options.early_stopping is True):
            self.ended = sorted(self.ended + found, key=lambda beam: -beam.score)[: self.options.count]

    def _is_over(self, length: int) -> bool:
        """Whether no open text is to become one of those that have ended."""
        if not self._is_full:
            return False
        longest = self.options.early_stopping == "never" and self.options.length_penalty > 0
        best = self._score(self.open[0].score, self.text.most if longest else length)
        self._may_improve = self._may_improve and best > self.ended[-1].score
        return not self._may_improve or self.options.early_stopping is True
