"""What a program foresees of a text: the measure of what compression loses."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_infer.export import LoadedProgram
from argosy_infer.predictor import Predictor

__all__ = ["perplexity"]


def perplexity(loaded: LoadedProgram, ids: np.ndarray[Any, Any]) -> float:
    """``exp`` of the mean negative logarithm of the probability that logits [rows, tokens, vocabulary] of a program
    give the next token, over ``ids`` [rows, tokens]. The gap of a pass is the ratio of both programs' less one."""
    (logits,) = Predictor(loaded).run(ids[:, :-1])
    wide = logits.astype(np.float64)
    peak = wide.max(-1, keepdims=True)
    totals = np.log(np.exp(wide - peak).sum(-1)) + peak[..., 0]
    chosen = np.take_along_axis(wide, ids[:, 1:, None], -1)[..., 0]
    return float(np.exp((totals - chosen).mean()))
