"""AWQ (Lin et al., 2024): inputs with large activations get finer steps. Rows of a weight are multiplied by factors
before they are rounded, and its inputs divided by them: ``factors = mean(|x|) ** alpha``, alpha by trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from argosy_infer.compress.calibration import Inputs
from argosy_infer.compress.packing import (
    CalibrationData,
    QuantizationReport,
    QuantizedWeight,
    quantize_weights,
    round_with,
    scales_of,
)
from argosy_infer.export import LoadedProgram
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["awq"]

Array = np.ndarray[Any, Any]
_TRIALS = 11
"""Exponents from 0 to 1; the first is rounding to the nearest."""


@announce_wait("quantising weights by AWQ")
def awq(
    loaded: LoadedProgram,
    data: CalibrationData,
    bits: int = 4,
    group_size: int = 128,
    evaluation: Array | None = None,
    skip: Sequence[str] = (),
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with its linear layers' weights in ``bits`` (8 or 4), a scale for each output and ``group_size``
    inputs (-1, 32, 64, 128), and its inputs multiplied by one factor each. ``loaded`` stays as it is.

    data: entries of the program's inputs, in order or by name; evaluation: ids [rows, tokens] that the report's
    perplexities are of; skip: as in :func:`round_to_nearest`. Raises ValueError for other bits and groups, InputError
    for no data.
    """
    found = partial(_search_scales, bits=bits, group_size=group_size)
    return quantize_weights("awq", loaded, bits, group_size, found, data, evaluation, skip)


def _search_scales(matrix: Array, inputs: Inputs, bits: int, group_size: int) -> QuantizedWeight:
    """The rounded weight whose outputs on the sample differ least."""
    means = np.maximum(inputs.magnitudes / max(inputs.rows, 1), np.float32(1e-8))
    tried = []
    for alpha in np.linspace(0, 1, _TRIALS, dtype=np.float32):
        factors = means**alpha
        factors /= np.sqrt(factors.max() * factors.min())
        given = (np.float32(1) / factors).astype(matrix.dtype)
        wide = matrix.astype(np.float32) / given.astype(np.float32)[:, None]
        scales = scales_of(wide, bits, group_size).astype(matrix.dtype)
        whole = round_with(wide, scales.astype(np.float32), bits)
        made = QuantizedWeight(whole, scales, bits, group_size, None, None if alpha == 0 else given)
        difference = made.dequantize() - matrix.astype(np.float32)
        tried.append((float(np.einsum("io,ij,jo->", difference, inputs.products, difference, optimize=True)), made))
    return min(tried, key=lambda pair: pair[0])[1]
