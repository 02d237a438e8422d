"""GPTQ (Frantar et al., 2023): weights rounded one input after the other; what rounding one changes in the outputs, the
inputs that are left make up for, as far as calibration data tells.

With H the sum of ``x x^T`` over the data and U the upper Cholesky factor of its inverse, rounding row i with the error
e moves each later row j by ``-e U[i, j] / U[i, i]``. ``act_order`` takes inputs with large activations first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from argosy_infer.compress.calibration import Inputs
from argosy_infer.compress.packing import LARGEST, QuantizationReport, QuantizedWeight, scales_of
from argosy_infer.compress.product_groups import CalibrationData
from argosy_infer.compress.quantization import quantize_weights
from argosy_infer.export import LoadedProgram
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["gptq"]

Array = np.ndarray[Any, Any]
_BLOCK = 128
"""Rows between which later ones are moved at once, by a matrix product."""


@announce_wait("quantising weights by GPTQ")
def gptq(
    loaded: LoadedProgram,
    data: CalibrationData,
    bits: int = 4,
    group_size: int = 128,
    act_order: bool = False,
    damping: float = 0.01,
    evaluation: Array | None = None,
    skip: Sequence[str] = (),
    input_bits: int | None = None,
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with its linear layers' and experts' weights in ``bits`` (8 or 4), a scale for each output and
    ``group_size`` inputs (-1, 32, 64, 128), rounded so that their outputs on ``data`` stay, experts by the tokens that
    they are chosen for, their inputs in order (and to the nearest where that is none). ``loaded`` stays as it is.

    data: entries of the program's inputs, in order or by name. damping: what is added to the diagonal of H, as a share
    of its mean; evaluation: ids [rows, tokens] that the report's perplexities are of; skip and input_bits:
    as in :func:`round_to_nearest`. Raises ValueError for other bits and groups, InputError for no data.
    """
    linear = partial(_quantize_matrix, bits=bits, group_size=group_size, act_order=act_order, damping=damping)
    expert = partial(_quantize_matrix, bits=bits, group_size=group_size, act_order=False, damping=damping)
    return quantize_weights("gptq", loaded, bits, group_size, linear, data, evaluation, skip, expert, input_bits)


def _quantize_matrix(
    matrix: Array, inputs: Inputs, bits: int, group_size: int, act_order: bool, damping: float
) -> QuantizedWeight:
    hessian = inputs.products / max(inputs.rows, 1)
    order = np.argsort(-np.diag(hessian), kind="stable") if act_order else np.arange(len(matrix))
    hessian, left = hessian[np.ix_(order, order)], matrix[order].astype(np.float64)
    dead = np.diag(hessian) == 0
    hessian[dead, dead] = 1
    left[dead] = 0
    hessian[np.diag_indices_from(hessian)] += damping * np.diag(hessian).mean()
    factor = np.linalg.cholesky(np.linalg.inv(hessian)).T
    each = group_size if group_size > 0 else len(matrix)
    whole, scales = np.empty(matrix.shape, np.int8), np.empty((len(matrix) // each, matrix.shape[1]), np.float32)
    for start in range(0, len(matrix), _BLOCK):
        stop = min(start + _BLOCK, len(matrix))
        errors = np.empty((stop - start, matrix.shape[1]))
        for i in range(start, stop):
            if i % each == 0:
                if i + each > stop:  # the group's end has to know the errors so far
                    ahead = left[stop : i + each] - factor[start:i, stop : i + each].T @ errors[: i - start]
                    group = np.concatenate([left[i:stop], ahead])
                else:
                    group = left[i : i + each]
                scales[i // each] = scales_of(group.astype(np.float32), bits, -1)[0].astype(matrix.dtype)
            step = scales[i // each]
            numbers = np.clip(np.rint(left[i] / step), -LARGEST[bits], LARGEST[bits])
            whole[i] = numbers
            errors[i - start] = (left[i] - numbers * step) / factor[i, i]
            left[i + 1 : stop] -= np.outer(factor[i, i + 1 : stop], errors[i - start])
        left[stop:] -= factor[start:stop, stop:].T @ errors
    return QuantizedWeight(whole, scales.astype(matrix.dtype), bits, group_size, order if act_order else None)
