"""AWQ (Lin et al., 2024): inputs with large activations get finer steps. Rows of a weight are multiplied by factors
before they are rounded, and its inputs divided by them: ``factors = mean(|x|) ** alpha``, alpha by trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from argosy_infer.compress.calibration import Inputs, observe_inputs
from argosy_infer.compress.packing import (
    QuantizationReport,
    Quantized,
    check_format,
    choose_products,
    packed_layer,
    round_with,
    scales_of,
)
from argosy_infer.export import LoadedProgram
from argosy_infer.weights import replace_products

__all__ = ["awq"]

Array = np.ndarray[Any, Any]
_TRIALS = 11
"""Exponents from 0 to 1; the first is rounding to the nearest."""


def awq(
    loaded: LoadedProgram,
    data: Iterable[Sequence[Any] | Mapping[str, Any]],
    bits: int = 4,
    group_size: int = 128,
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with its linear layers' weights in ``bits`` (8 or 4), a scale for each output and ``group_size``
    inputs (-1, 32, 64, 128), and its inputs multiplied by one factor each. ``loaded`` stays as it is.

    data: entries of the program's inputs, in order or by name. Raises ValueError for other bits and groups, InputError
    for no data.
    """
    check_format("awq", bits, group_size)
    found, skipped = choose_products(loaded, bits, group_size)
    observed = observe_inputs(loaded, list(found.values()), data)
    made, layers = {}, []
    for name, product in found.items():
        matrix = product.matrix(loaded.states)
        chosen = _best(matrix, observed[name], bits, group_size)
        made[product], report = packed_layer(product, matrix, chosen)
        layers.append(report)
    return replace_products(loaded, made), QuantizationReport(tuple(layers), skipped)


def _best(matrix: Array, inputs: Inputs, bits: int, group_size: int) -> Quantized:
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
        made = Quantized(whole, scales, bits, group_size, None, None if alpha == 0 else given)
        difference = made.dequantized() - matrix.astype(np.float32)
        tried.append((float(np.einsum("io,ij,jo->", difference, inputs.products, difference, optimize=True)), made))
    return min(tried, key=lambda pair: pair[0])[1]
