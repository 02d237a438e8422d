"""Choosing the next token from logits: greedy, temperature, top-k and top-p (nucleus; Holtzman et al., 2020)."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_infer.errors import LogitsError
from argosy_tensorcore.rng import philox_bits

__all__ = ["SamplingOptions", "sample"]


class SamplingOptions:
    """How tokens are chosen.

    ``temperature`` 0 is greedy; ``top_k`` 0 keeps all; ``top_p`` 1 keeps all; draws are a pure function of ``seed`` and
    the position, so that a run repeats. Raises ``ValueError`` naming the field that is out of range.
    """

    __slots__ = ("seed", "temperature", "top_k", "top_p")

    def __init__(self, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0, seed: int = 0) -> None:
        if not temperature >= 0:
            raise ValueError(f"temperature must be at least 0, got {temperature}")
        if top_k < 0:
            raise ValueError(f"top_k must be at least 0 (0 keeps all), got {top_k}")
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p must be in (0, 1], got {top_p}")
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.seed = seed


def sample(logits: np.ndarray[Any, Any], options: SamplingOptions, position: int) -> int:
    """The token chosen from ``logits`` [vocabulary] for the token at ``position``.

    Raises :class:`LogitsError` where logits are NaN, where all are minus infinity, and where some are infinite and
    tokens are drawn: these have no probabilities.
    """
    scores = logits.astype(np.float64)
    first = int(np.argmax(scores))  # of a NaN, where there is one
    if not -np.inf < scores[first] < np.inf:
        _refuse(scores, scores[first], options, position)
    if options.temperature == 0:
        return first
    order = np.argsort(-scores, kind="stable")
    if options.top_k:
        order = order[: options.top_k]
    scaled = (scores[order] - scores[order[0]]) / options.temperature
    probabilities = np.exp(scaled)
    probabilities /= probabilities.sum()
    kept = int(np.searchsorted(np.cumsum(probabilities), options.top_p)) + 1
    cumulative = np.cumsum(probabilities[:kept])
    uniform = float(philox_bits(options.seed, position, (1,))[0]) / 2.0**32
    return int(
        order[min(int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right")), len(cumulative) - 1)]
    )


def _refuse(scores: np.ndarray[Any, Any], top: float, options: SamplingOptions, position: int) -> None:
    """Raise :class:`LogitsError` unless ``top``, the largest score, can be chosen all the same."""
    if top == np.inf and options.temperature == 0:
        return
    count = int(np.isnan(scores).sum()) or int((scores == top).sum())
    kind = "NaN" if np.isnan(top) else "infinite" if top > 0 else "minus infinity"
    raise LogitsError(f"logits for the token at position {position}: {count} of {scores.size} are {kind}")
