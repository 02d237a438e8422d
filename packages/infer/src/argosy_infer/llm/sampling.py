"""Choosing the next token from logits: penalties on what was said, cutoffs of what is unlikely, and a draw.

Penalties apply to greedy choices, too. Cutoffs apply in the order of their fields, each to what the one before left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_infer.errors import LogitsError
from argosy_tensorcore.rng import philox_bits

__all__ = ["SamplingOptions", "sample"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SamplingOptions:
    """How tokens are chosen. Draws are a pure function of ``seed`` and the position, so that a run repeats.

    - ``temperature``: 0 is greedy. ``top_k``: how many are left (0: all). ``top_p``: the likeliest that have this mass
      together (nucleus; Holtzman et al., 2020).
    - ``min_p``: a share of the likeliest one's probability. ``typical_p``: those whose information is nearest to the
      entropy, of this mass (Meister et al., 2023). ``epsilon_cutoff``, ``eta_cutoff``: probabilities below these, the
      latter adapted to the entropy, are left out (Hewitt et al., 2022).
    - ``repetition_penalty``: positive logits of tokens of prompt and answer are divided by it, others multiplied
      (Keskar et al., 2019). ``presence_penalty``, ``frequency_penalty``: taken from logits of the answer's tokens, once
      and for each occurrence. ``no_repeat_ngram_size``: no sequence of so many tokens occurs twice.
    - ``bad_words``: sequences of tokens that do not occur. ``suppressed``: tokens that do not.

    Raises ``ValueError`` naming the field that is out of range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    min_p: float = 0.0
    typical_p: float = 1.0
    epsilon_cutoff: float = 0.0
    eta_cutoff: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    no_repeat_ngram_size: int = 0
    bad_words: tuple[tuple[int, ...], ...] = ()
    suppressed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for names, fits, expected in _RANGES:
            for name in names:
                if not fits(getattr(self, name)):
                    raise ValueError(f"{name} must be {expected}, got {getattr(self, name)}")

    @property
    def looks_back(self) -> bool:
        """Whether a choice depends on the tokens before it."""
        penalties = (self.repetition_penalty, self.presence_penalty, self.frequency_penalty)
        return penalties != (1, 0, 0) or bool(self.no_repeat_ngram_size or self.bad_words)


_RANGES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("temperature",), lambda x: 0 <= x < np.inf, "at least 0"),
    (("top_k", "no_repeat_ngram_size"), lambda x: x >= 0, "at least 0 (0 keeps all)"),
    (("top_p", "typical_p"), lambda x: 0 < x <= 1, "in (0, 1]"),
    (("min_p",), lambda x: 0 <= x <= 1, "in [0, 1]"),
    (("epsilon_cutoff", "eta_cutoff"), lambda x: 0 <= x < 1, "in [0, 1)"),
    (("repetition_penalty",), lambda x: 0 < x < np.inf, "above 0"),
    (("presence_penalty", "frequency_penalty"), lambda x: bool(np.isfinite(x)), "finite"),
    (("bad_words",), lambda x: all(x), "sequences of one token at least"),
)


def sample(logits: Array, options: SamplingOptions, position: int, said: Sequence[int] = (), prompt: int = 0) -> int:
    """The token chosen from ``logits`` [vocabulary] for the token at ``position``.

    ``said`` are the tokens before it, the first ``prompt`` of which are the prompt's. Raises :class:`LogitsError` where
    logits are NaN, where all are minus infinity, and where some are infinite and tokens are drawn: these have no
    probabilities.
    """
    scores = penalise(logits, options, position, said, prompt)
    first = int(np.argmax(scores))
    if options.temperature == 0:
        return first
    scores = (scores - scores[first]) / options.temperature
    for cut in _CUTOFFS:
        cut(scores, options)
    order = np.flatnonzero(scores > -np.inf)
    order = order[np.argsort(-scores[order], kind="stable")]
    cumulative = np.cumsum(np.exp(scores[order]))
    uniform = float(philox_bits(options.seed, position, (1,))[0]) / 2.0**32
    return int(order[min(int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right")), len(order) - 1)])


def penalise(logits: Array, options: SamplingOptions, position: int, said: Sequence[int], prompt: int) -> Array:
    """Scores [vocabulary] in float64: logits, or logarithms of probabilities, after the penalties of what was said. The
    arguments and errors are those of `sample`."""
    scores = logits.astype(np.float64)
    if options.looks_back or options.suppressed:
        _penalise(scores, options, np.asarray(said, np.int64), prompt)
    top = scores[int(np.argmax(scores))]  # a NaN, where there is one
    if not -np.inf < top < np.inf:
        _refuse(scores, top, options, position)
    return scores


def _penalise(scores: Array, options: SamplingOptions, said: Array, prompt: int) -> None:
    """Lower the scores of what was said, and rule out what must not be said."""
    before, counts = np.unique(said[prompt:], return_counts=True)
    known = np.unique(said)
    factor = options.repetition_penalty
    scores[known] = np.where(scores[known] < 0, scores[known] * factor, scores[known] / factor)
    scores[before] -= options.presence_penalty + options.frequency_penalty * counts
    if options.no_repeat_ngram_size:
        scores[_would_repeat(said, options.no_repeat_ngram_size)] = -np.inf
    for *start, last in options.bad_words:
        if len(start) <= len(said) and said[len(said) - len(start) :].tolist() == start:
            scores[last : last + 1] = -np.inf
    scores[[token for token in options.suppressed if token < len(scores)]] = -np.inf


def _would_repeat(said: Array, size: int) -> Array:
    """Tokens that have followed the last ``size - 1`` ones before."""
    if len(said) < size:
        return said[:0]
    windows = np.lib.stride_tricks.sliding_window_view(said, size)
    made: Array = windows[(windows[:, :-1] == said[len(said) - size + 1 :]).all(1), -1]
    return made


def _keep_top_k(scores: Array, options: SamplingOptions) -> None:
    if 0 < options.top_k < len(scores):
        least = np.partition(scores, -options.top_k)[-options.top_k]
        over = np.flatnonzero(scores == least)[options.top_k - int((scores > least).sum()) :]
        scores[scores < least] = -np.inf
        scores[over] = -np.inf  # of equal ones the first are kept


def _keep_top_p(scores: Array, options: SamplingOptions) -> None:
    if options.top_p < 1:
        order = np.argsort(-scores, kind="stable")
        cumulative = np.cumsum(_probabilities(scores)[order])
        scores[order[int(np.searchsorted(cumulative, options.top_p)) + 1 :]] = -np.inf


def _keep_min_p(scores: Array, options: SamplingOptions) -> None:
    if options.min_p:
        scores[scores < scores.max() + np.log(options.min_p)] = -np.inf


def _keep_typical(scores: Array, options: SamplingOptions) -> None:
    if options.typical_p < 1:
        shares = _probabilities(scores)
        distance = np.full(len(scores), np.inf)
        some = shares > 0
        distance[some] = np.abs(-np.log(shares[some]) - _entropy(shares))
        order = np.argsort(distance, kind="stable")
        cumulative = np.cumsum(shares[order])
        scores[order[int(np.searchsorted(cumulative, options.typical_p)) + 1 :]] = -np.inf


def _keep_likely(scores: Array, options: SamplingOptions) -> None:
    if options.epsilon_cutoff:
        _drop_below(scores, _probabilities(scores), options.epsilon_cutoff)
    if options.eta_cutoff:
        shares = _probabilities(scores)
        adapted = np.sqrt(options.eta_cutoff) * np.exp(-_entropy(shares))
        _drop_below(scores, shares, min(options.eta_cutoff, adapted))


def _drop_below(scores: Array, shares: Array, least: float) -> None:
    """The likeliest one stays."""
    scores[(shares < least) & (scores < scores.max())] = -np.inf


_CUTOFFS = (_keep_top_k, _keep_top_p, _keep_min_p, _keep_typical, _keep_likely)


def _probabilities(scores: Array) -> Array:
    powers = np.exp(scores - scores.max())
    made: Array = powers / powers.sum()
    return made


def _entropy(shares: Array) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())


def _refuse(scores: Array, top: float, options: SamplingOptions, position: int) -> None:
    """Raise :class:`LogitsError` unless ``top``, the largest score, can be chosen all the same."""
    if top == np.inf and options.temperature == 0:
        return
    count = int(np.isnan(scores).sum()) or int((scores == top).sum())
    kind = "NaN" if np.isnan(top) else "infinite" if top > 0 else "minus infinity"
    raise LogitsError(f"logits for the token at position {position}: {count} of {scores.size} are {kind}")
