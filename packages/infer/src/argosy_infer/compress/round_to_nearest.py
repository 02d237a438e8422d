"""Weights rounded to the nearest of 8 or 4 bits, or of e4m3, with a scale for each output or group of inputs.

Linear layers and products with a weight become `weight_only_linear`: the bytes are what lies in the file and in memory,
and products read them as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_infer.compress.packing import (
    LARGEST,
    QuantizationReport,
    QuantizedWeight,
    round_matrix,
    scales_of,
)
from argosy_infer.compress.quantization import quantize_weights
from argosy_infer.export import LoadedProgram
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["round_to_float8", "round_to_nearest"]

Array = np.ndarray[Any, Any]
_LARGEST_FLOAT8 = 448.0  # of e4m3


@announce_wait("rounding weights to the nearest")
def round_to_nearest(
    loaded: LoadedProgram,
    bits: int = 8,
    group_size: int = -1,
    evaluation: Array | None = None,
    skip: Sequence[str] = (),
    input_bits: int | None = None,
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with its linear layers' and experts' weights in ``bits`` (8 or 4), a scale for each output, or
    for each of those and ``group_size`` (32, 64, 128) inputs. ``loaded`` stays as it is.

    Weights that are used otherwise as well, such as tied embeddings, and those whose sizes do not divide stay floats
    and are reported, as are those that ``skip`` names, or has patterns of ("lm_head.*", as other tools do); evaluation:
    ids [rows, tokens] that the report's perplexities are of; input_bits: 8 rounds the inputs of these layers to bytes
    while the program runs, with a step for each row, and sums in integers (W8A8, W4A8): faster with several rows, less
    exact. Raises ValueError for other bits and groups, and for patterns of no weight.
    """

    def nearest(matrix: Array, inputs: None) -> QuantizedWeight:
        return round_matrix(matrix, bits, group_size)

    return quantize_weights(
        "round_to_nearest", loaded, bits, group_size, nearest, None, evaluation, skip, None, input_bits
    )


@announce_wait("rounding weights to the nearest of e4m3")
def round_to_float8(
    loaded: LoadedProgram, group_size: int = -1, evaluation: Array | None = None, skip: Sequence[str] = ()
) -> tuple[LoadedProgram, QuantizationReport]:
    """The same with weights in float8 (e4m3: four bits of exponent, three of fraction), whose largest is 448."""

    def nearest(matrix: Array, inputs: None) -> QuantizedWeight:
        wide = matrix.astype(np.float32)
        scales = (scales_of(wide, 8, group_size) * np.float32(LARGEST[8] / _LARGEST_FLOAT8)).astype(matrix.dtype)
        spread = np.repeat(scales.astype(np.float32), len(wide) // len(scales), axis=0)
        steps = np.clip(wide / spread, -_LARGEST_FLOAT8, _LARGEST_FLOAT8)
        return QuantizedWeight(steps.astype(as_dtype("float8_e4m3fn").numpy), scales, 8, group_size)

    return quantize_weights("round_to_float8", loaded, 8, group_size, nearest, None, evaluation, skip)
