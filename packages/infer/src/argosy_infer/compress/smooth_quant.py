"""SmoothQuant (Xiao et al., 2023): products of bytes. Inputs whose magnitudes are large are divided by factors, and
rows of the weight multiplied with them, so that both are rounded to eight bits with little loss:
``factors = max |x| ** alpha / max |w| ** (1 - alpha)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from argosy_infer.compress.calibration import Inputs
from argosy_infer.compress.packing import (
    CalibrationData,
    LayerReport,
    QuantizationReport,
    replace_weights,
    round_with,
    scales_of,
)
from argosy_infer.export import LoadedProgram
from argosy_infer.weights import Replacement, WeightProduct
from argosy_phi_ops import prim
from argosy_pir.values import Value

__all__ = ["smooth_quant"]

Array = np.ndarray[Any, Any]
_LARGEST, _SMALLEST = np.float32(127), np.float32(1e-5)


def smooth_quant(
    loaded: LoadedProgram,
    data: CalibrationData,
    alpha: float = 0.5,
    static: bool = False,
    evaluation: Array | None = None,
    skip: Sequence[str] = (),
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with products of bytes in its linear layers: weights with a scale for each output, inputs with one
    for each row, found when it runs, or where ``static`` is True with one for all, found on ``data``. Sums are exact,
    in int32. ``loaded`` stays as it is.

    data: entries of the program's inputs, in order or by name; evaluation: ids [rows, tokens] that the report's
    perplexities are of; skip: as in :func:`round_to_nearest`. Raises InputError for no data.
    """
    smoothed = partial(_smooth_product, alpha=np.float32(alpha), static=static)
    return replace_weights(loaded, 8, -1, smoothed, data, evaluation, skip)


def _smooth_product(
    product: WeightProduct, matrix: Array, inputs: Inputs, alpha: np.float32, static: bool
) -> tuple[Replacement, LayerReport]:
    name, wide = product.name, matrix.astype(np.float32)
    rows = np.maximum(np.abs(wide).max(axis=1), _SMALLEST)
    factors = np.maximum(inputs.largest, _SMALLEST) ** alpha / rows ** (1 - alpha)
    scales = scales_of(wide * factors[:, None], 8, -1)
    whole = round_with(wide * factors[:, None], scales, 8)
    states = {
        f"{name}.bytes": np.ascontiguousarray(whole.T), f"{name}.scales": scales[0],
        f"{name}.factors": np.float32(1) / factors,
    }  # fmt: skip
    if static:
        step = (inputs.largest / factors).max() / _LARGEST
        states[f"{name}.step"] = np.maximum(step, _SMALLEST / _LARGEST).astype(np.float32).reshape(())

    def build(x: Value, bias: Value | None, parts: Mapping[str, Value]) -> Value:
        return _product_of_bytes(
            x, bias, *(parts.get(f"{name}.{part}") for part in ("bytes", "scales", "factors", "step"))
        )

    error = whole * scales / factors[:, None] - wide
    norm = float(np.linalg.norm(wide)) or 1.0
    size = sum(array.nbytes for array in states.values())
    return Replacement(states, build), LayerReport(name, matrix.nbytes, size, float(np.linalg.norm(error)) / norm)


def _product_of_bytes(
    x: Value, bias: Value | None, weight: Any, scales: Any, factors: Any, step: Value | None
) -> Value:
    """``x * factors`` [..., in] rounded to bytes, times ``weight`` [out, in], times both scales, plus ``bias``."""
    last, outer, dtype = x.ndim - 1, tuple(range(x.ndim - 1)), x.dtype
    wide: Any = prim.cast(x, dtype="float32")
    wide = prim.mul(wide, prim.broadcast(factors, shape=wide.shape, axes=(last,)))
    if step is None:
        peak = prim.maximum(prim.reduce_max(prim.abs(wide), axes=(last,)), float(_SMALLEST))
        steps = prim.div(peak, float(_LARGEST))
    else:
        steps = prim.broadcast(step, shape=x.shape[:-1], axes=())
    spread = prim.round(prim.div(wide, prim.broadcast(steps, shape=wide.shape, axes=outer)))
    whole = prim.cast(prim.maximum(prim.minimum(spread, float(_LARGEST)), -float(_LARGEST)), dtype="int8")
    sums = prim.dot_general(whole, weight, lhs_contract=(last,), rhs_contract=(1,), accumulate="int32")
    made = prim.mul(prim.cast(sums, dtype="float32"), prim.broadcast(steps, shape=sums.shape, axes=outer))
    made = prim.mul(made, prim.broadcast(scales, shape=sums.shape, axes=(last,)))
    if bias is not None:
        made = prim.add(made, prim.broadcast(prim.cast(bias, dtype="float32"), shape=sums.shape, axes=(last,)))
    return prim.cast(made, dtype=dtype)  # type: ignore[no-any-return]
