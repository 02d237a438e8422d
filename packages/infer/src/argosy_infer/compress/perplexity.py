"""What a program foresees of a text: the measure of what compression loses."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_infer.export import LoadedProgram
from argosy_infer.predictor import Predictor

__all__ = ["perplexity"]

_LOGITS = 1 << 24
"""Logits that one call gives, at most, where a row has fewer."""
_TOKENS = 256
"""Tokens whose logits are summed in float64 at a time."""


def perplexity(loaded: LoadedProgram, ids: np.ndarray[Any, Any]) -> float:
    """``exp`` of the mean negative logarithm of the probability that logits [rows, tokens, vocabulary] of a program
    give the next token, over ``ids`` [rows, tokens]. The gap of a pass is the ratio of both programs' less one.

    As many rows run at once as have ``2**24`` logits, one at least; all of them where the program fixes their number.
    """
    predictor, (shape,) = Predictor(loaded), (value.shape for value in loaded.program.outputs)
    rows, tokens = ids[:, 1:].shape
    some = max(1, _LOGITS // max(1, tokens * shape[-1])) if not isinstance(shape[0], int) else rows
    total = 0.0
    for start in range(0, rows, some):
        part = ids[start : start + some]
        (logits,) = predictor.run(part[:, :-1])
        flat, following = logits.reshape(-1, logits.shape[-1]), part[:, 1:].reshape(-1)
        total += sum(_cost(flat[i : i + _TOKENS], following[i : i + _TOKENS]) for i in range(0, len(flat), _TOKENS))
    return float(np.exp(total / (rows * tokens)))


def _cost(logits: np.ndarray[Any, Any], following: np.ndarray[Any, Any]) -> float:
    """The sum of negative logarithms of the probabilities of tokens."""
    wide = logits.astype(np.float64)
    peak = wide.max(-1, keepdims=True)
    totals = np.log(np.exp(wide - peak).sum(-1)) + peak[:, 0]
    return float((totals - np.take_along_axis(wide, following[:, None], -1)[:, 0]).sum())
