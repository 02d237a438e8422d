"""Weights rounded to the nearest of 8 or 4 bits, with a scale for each output or group of inputs.

Linear layers and products with a weight become `weight_only_linear`: the bytes are what lies in the file and in memory,
and products read them as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_infer.compress.packing import QuantizationReport, QuantizedWeight, quantize_weights, round_with, scales_of
from argosy_infer.export import LoadedProgram

__all__ = ["round_to_nearest"]

Array = np.ndarray[Any, Any]


def round_to_nearest(
    loaded: LoadedProgram, bits: int = 8, group_size: int = -1
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with its linear layers' weights in ``bits`` (8 or 4), a scale for each output, or for each of those
    and ``group_size`` (32, 64, 128) inputs. ``loaded`` stays as it is.

    Weights that are used otherwise as well, such as tied embeddings, and those whose sizes do not divide stay floats
    and are reported. Raises ValueError for other bits and groups.
    """

    def nearest(matrix: Array, inputs: None) -> QuantizedWeight:
        wide = matrix.astype(np.float32)
        scales = scales_of(wide, bits, group_size).astype(matrix.dtype)
        whole = round_with(wide, scales.astype(np.float32), bits)
        return QuantizedWeight(whole, scales, bits, group_size)

    return quantize_weights("round_to_nearest", loaded, bits, group_size, nearest)
