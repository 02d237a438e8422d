"""SmoothQuant (Xiao et al., 2023): products of bytes. Inputs whose magnitudes are large are divided by factors, and
rows of the weight multiplied with them, so that both are rounded to eight bits with little loss:
``factors = max |x| ** alpha / max |w| ** (1 - alpha)``. What makes the inputs (a norm, a layer) is divided by them
where that is possible; layers with the same inputs have the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from argosy_infer.compress.packing import (
    CalibrationData,
    LayerReport,
    ProductGroup,
    QuantizationReport,
    Replaced,
    replace_groups,
    round_with,
    scales_of,
)
from argosy_infer.export import LoadedProgram
from argosy_infer.weights import Replacement, WeightProduct
from argosy_phi_ops import prim
from argosy_pir.values import Value

__all__ = ["smooth_quant"]

Array = np.ndarray[Any, Any]
_SMALLEST = np.float32(1e-5)
_STEPS = np.float32(127.5)
"""Of the largest magnitude: as compressed-tensors rounds inputs, to bytes from -128 to 127."""


def smooth_quant(
    loaded: LoadedProgram,
    data: CalibrationData,
    alpha: float = 0.5,
    static: bool = False,
    evaluation: Array | None = None,
    skip: Sequence[str] = (),
    multiply_inputs: bool = True,
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with products of bytes in its linear layers: weights with a scale for each output, inputs with one
    for each row, found when it runs, or where ``static`` is True with one for all, found on ``data``. Sums are exact,
    in int32. ``loaded`` stays as it is.

    data: entries of the program's inputs, in order or by name; evaluation: ids [rows, tokens] that the report's
    perplexities are of; skip: as in :func:`round_to_nearest`; multiply_inputs: False leaves inputs alone that nothing
    takes factors of, as files of other tools have to. Raises InputError for no data.
    """
    smoothed = partial(_smooth_group, alpha=np.float32(alpha), static=static, multiply_inputs=multiply_inputs)
    return replace_groups(loaded, 8, -1, smoothed, data, evaluation, skip)


def _smooth_group(group: ProductGroup, alpha: np.float32, static: bool, multiply_inputs: bool) -> Replaced:
    assert group.inputs is not None
    largest, producer = group.inputs.largest, group.producer
    rows = [np.abs(matrix.astype(np.float32)).max(axis=1) for matrix in group.matrices]
    peaks = largest
    if producer is not None:
        peaks = producer.pool(largest, np.maximum)
        rows = [producer.pool(np.max(rows, axis=0), np.maximum)] * len(rows)
    made = []
    for product, matrix, own in zip(group.products, group.matrices, rows, strict=True):
        factors = np.maximum(peaks, _SMALLEST) ** alpha / np.maximum(own, _SMALLEST) ** (1 - alpha)
        factors = factors if producer is not None or multiply_inputs else np.ones_like(factors)
        step = np.maximum((largest / factors).max(), _SMALLEST) / _STEPS if static else None
        made.append(_smooth_product(product, matrix, factors, step, producer is not None or not multiply_inputs))
    return made, None if producer is None else np.float32(1) / factors


def _smooth_product(
    product: WeightProduct, matrix: Array, factors: Array, step: np.float32 | None, folded: bool
) -> tuple[Replacement, LayerReport]:
    """The product of bytes whose inputs are divided by ``factors``: before, where they are ``folded``."""
    name, wide = product.name, matrix.astype(np.float32)
    scales = scales_of(wide * factors[:, None], 8, -1)
    whole = round_with(wide * factors[:, None], scales, 8)
    states = {f"{name}.bytes": np.ascontiguousarray(whole.T), f"{name}.scales": scales[0]}
    if not folded:
        states[f"{name}.factors"] = np.float32(1) / factors
    if step is not None:
        states[f"{name}.step"] = step.astype(np.float32).reshape(())

    def build(x: Value, bias: Value | None, parts: Mapping[str, Value]) -> Value:
        return _product_of_bytes(
            x, bias, *(parts.get(f"{name}.{part}") for part in ("bytes", "scales", "factors", "step"))
        )

    error = whole * scales / factors[:, None] - wide
    norm = float(np.linalg.norm(wide)) or 1.0
    size = sum(array.nbytes for array in states.values())
    return Replacement(states, build), LayerReport(name, matrix.nbytes, size, float(np.linalg.norm(error)) / norm)


def _product_of_bytes(
    x: Value, bias: Value | None, weight: Any, scales: Any, factors: Value | None, step: Value | None
) -> Value:
    """``x * factors`` [..., in] rounded to bytes, times ``weight`` [out, in], times both scales, plus ``bias``."""
    last, outer, dtype = x.ndim - 1, tuple(range(x.ndim - 1)), x.dtype
    wide: Any = prim.cast(x, dtype="float32")
    if factors is not None:
        wide = prim.mul(wide, prim.broadcast(factors, shape=wide.shape, axes=(last,)))
    if step is None:
        peak = prim.maximum(prim.reduce_max(prim.abs(wide), axes=(last,)), float(_SMALLEST))
        steps = prim.div(peak, float(_STEPS))
    else:
        steps = prim.broadcast(step, shape=x.shape[:-1], axes=())
    spread = prim.round(prim.div(wide, prim.broadcast(steps, shape=wide.shape, axes=outer)))
    whole = prim.cast(prim.maximum(prim.minimum(spread, 127.0), -128.0), dtype="int8")
    sums = prim.dot_general(whole, weight, lhs_contract=(last,), rhs_contract=(1,), accumulate="int32")
    made = prim.mul(prim.cast(sums, dtype="float32"), prim.broadcast(steps, shape=sums.shape, axes=outer))
    made = prim.mul(made, prim.broadcast(scales, shape=sums.shape, axes=(last,)))
    if bias is not None:
        made = prim.add(made, prim.broadcast(prim.cast(bias, dtype="float32"), shape=sums.shape, axes=(last,)))
    return prim.cast(made, dtype=dtype)  # type: ignore[no-any-return]
