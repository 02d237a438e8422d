"""AWQ (Lin et al., 2024): inputs with large activations get finer steps. Rows of a weight are multiplied by factors
before they are rounded, and its inputs divided by them: ``factors = mean(|x|) ** alpha``, alpha by trial. What makes
the inputs (a norm, a layer) is divided by them where that is possible; layers with the same inputs have the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from argosy_infer.compress.calibration import Inputs
from argosy_infer.compress.folding import Producer
from argosy_infer.compress.packing import (
    CalibrationData,
    ProductGroup,
    QuantizationReport,
    QuantizedWeight,
    Replaced,
    check_form,
    packed_layer,
    replace_groups,
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
    multiply_inputs: bool = True,
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with its linear layers' weights in ``bits`` (8 or 4), a scale for each output and ``group_size``
    inputs (-1, 32, 64, 128), and its inputs multiplied by one factor each: within the norm or layer that makes them,
    or, where nothing takes factors, when the program runs. ``loaded`` stays as it is.

    data: entries of the program's inputs, in order or by name; evaluation: ids [rows, tokens] that the report's
    perplexities are of; skip: as in :func:`round_to_nearest`; multiply_inputs: False leaves inputs alone that nothing
    takes factors of, as files of other tools have to. Raises ValueError for other bits and groups, InputError
    for no data.
    """
    check_form("awq", bits, group_size)
    found = partial(_replace_group, bits=bits, group_size=group_size, multiply_inputs=multiply_inputs)
    return replace_groups(loaded, bits, group_size, found, data, evaluation, skip)


def _replace_group(group: ProductGroup, bits: int, group_size: int, multiply_inputs: bool) -> Replaced:
    assert group.inputs is not None
    search = partial(_search_scales, inputs=group.inputs, bits=bits, group_size=group_size)
    if group.producer is not None:
        made = search(group.matrices, producer=group.producer)
        pairs = zip(group.products, group.matrices, made, strict=True)
        return [packed_layer(*each, folded=True) for each in pairs], made[0].factors
    trials = _TRIALS if multiply_inputs else 1
    return [
        packed_layer(product, matrix, search((matrix,), producer=None, trials=trials)[0])
        for product, matrix in zip(group.products, group.matrices, strict=True)
    ], None


def _search_scales(
    matrices: Sequence[Array],
    inputs: Inputs,
    bits: int,
    group_size: int,
    producer: Producer | None,
    trials: int = _TRIALS,
) -> list[QuantizedWeight]:
    """The rounded weights, of one exponent, whose outputs on the sample differ least."""
    means = np.maximum(inputs.magnitudes / max(inputs.rows, 1), np.float32(1e-8))
    if producer is not None:
        means = producer.pool(means, np.add)
    tried = []
    for alpha in np.linspace(0, 1, _TRIALS, dtype=np.float32)[:trials]:
        factors = means**alpha
        factors /= np.sqrt(factors.max() * factors.min())
        given = None if alpha == 0 else (np.float32(1) / factors).astype(matrices[0].dtype)
        made = [_round_scaled(matrix, given, bits, group_size) for matrix in matrices]
        tried.append((sum(map(partial(_error, inputs=inputs), made, matrices)), made))
    return min(tried, key=lambda pair: pair[0])[1]


def _round_scaled(matrix: Array, given: Array | None, bits: int, group_size: int) -> QuantizedWeight:
    """A weight [in, out] whose inputs are multiplied with ``given`` first, rounded to the nearest."""
    wide = matrix.astype(np.float32)
    wide = wide if given is None else wide / given.astype(np.float32)[:, None]
    scales = scales_of(wide, bits, group_size).astype(matrix.dtype)
    whole = round_with(wide, scales.astype(np.float32), bits)
    return QuantizedWeight(whole, scales, bits, group_size, None, given)


def _error(made: QuantizedWeight, matrix: Array, inputs: Inputs) -> float:
    """The square of what outputs on the sample differ by."""
    difference = made.dequantize() - matrix.astype(np.float32)
    return float(np.einsum("io,ij,jo->", difference, inputs.products, difference, optimize=True))
