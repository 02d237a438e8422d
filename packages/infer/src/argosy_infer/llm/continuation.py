"""What follows a prompt: which token is chosen from logits, and where the text ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from argosy_infer.llm.sampling import SamplingOptions, sample

__all__ = ["Continuation"]

Array = np.ndarray[Any, Any]


class Continuation:
    """The tokens after a ``prompt``, ``most`` at most, which end before one of ``ends``; these do not come before
    ``least`` others. ``adapter``: which one the text's row has. ``watch`` is called with each token, and says with True
    that the text has ended. Raises ValueError for a prompt without tokens and for counts below 0."""

    def __init__(
        self,
        prompt: Sequence[int],
        most: int,
        options: SamplingOptions | None = None,
        ends: int | Collection[int] | None = None,
        least: int = 0,
        adapter: int = 0,
        watch: Callable[[int], bool] | None = None,
    ) -> None:
        if not len(prompt):
            raise ValueError("the prompt is empty; generation needs at least one token")
        if most < 0 or least < 0:
            raise ValueError(f"max_new_tokens and min_new_tokens should be 0 or more, got {most} and {least}")
        self.text, self.prompt, self.most, self.least = list(prompt), len(prompt), most, least
        self.options, self.adapter = options or SamplingOptions(), adapter
        self.ends = frozenset(() if ends is None else (ends,) if isinstance(ends, int) else ends)
        suppressed = (*self.options.suppressed, *self.ends)
        self._early = replace(self.options, suppressed=suppressed) if least else self.options
        self._watch, self.ended = watch, not most

    @property
    def made(self) -> list[int]:
        """The tokens so far."""
        return self.text[self.prompt :]

    @property
    def longest(self) -> int:
        """How many tokens of the text are cached at most: the last one's successor is not asked for."""
        return self.prompt + max(self.most - 1, 0)

    def options_at(self, count: int) -> SamplingOptions:
        """How the token after ``count`` others is chosen."""
        return self._early if count < self.least else self.options

    def choose(self, logits: Array) -> int | None:
        """The next token, of ``logits`` [vocabulary] after the text so far; None where the text ends before it."""
        count = len(self.text) - self.prompt
        token = sample(logits, self.options_at(count), len(self.text), self.text, self.prompt)
        if token in self.ends:
            self.ended = True
            return None
        self.text.append(token)
        self.ended = (self._watch is not None and self._watch(token)) or count + 1 == self.most
        return token
