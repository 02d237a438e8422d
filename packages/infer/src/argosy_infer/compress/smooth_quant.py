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

from argosy_infer.compress.byte_inputs import SMALLEST, STEPS, experts_of_bytes, product_of_bytes
from argosy_infer.compress.folding import Producer
from argosy_infer.compress.packing import QuantizationReport, report_layer, round_with, scales_of
from argosy_infer.compress.product_groups import (
    CalibrationData,
    GroupMember,
    ProductGroup,
    Replaced,
    replace_groups,
)
from argosy_infer.export import LoadedProgram
from argosy_infer.weights import Replacement, WeightProduct, apply_operator, lay_out_array
from argosy_pir.values import Value
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["smooth_quant"]

Array = np.ndarray[Any, Any]


@announce_wait("quantising products by SmoothQuant")
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
    in int32, those of experts, too. ``loaded`` stays as it is.

    data: entries of the program's inputs, in order or by name; evaluation: ids [rows, tokens] that the report's
    perplexities are of; skip: as in :func:`round_to_nearest`; multiply_inputs: False leaves inputs alone that nothing
    takes factors of, as files of other tools have to. Raises InputError for no data.
    """
    smoothed = partial(_smooth_group, alpha=np.float32(alpha), static=static, multiply_inputs=multiply_inputs)
    return replace_groups(loaded, 8, -1, smoothed, data, evaluation, skip)


def _smooth_group(group: ProductGroup, alpha: np.float32, static: bool, multiply_inputs: bool) -> Replaced:
    producer, made = group.producer, []
    shared = None if producer is None else _common_factors(group, alpha, producer)
    for member in group.members:
        factors = shared
        if factors is None:
            factors = _factors([member], alpha, None) if multiply_inputs else np.ones_like(member.inputs[0].largest)
        largest = np.stack([each.largest for each in member.inputs]) / factors
        step = np.array(np.maximum(largest.max(), SMALLEST) / STEPS, np.float32) if static else None
        folded = producer is not None or not multiply_inputs
        smooth = _smooth_product if member.product.chosen is None else _smooth_experts
        given = np.broadcast_to(factors, largest.shape)
        whole, scales = zip(*map(_round_smoothed, member.matrices, given), strict=True)
        replacement = smooth(member.product, whole, scales, None if folded else np.float32(1) / factors, step)
        after = [w * s / f[:, None] for w, s, f in zip(whole, scales, given, strict=True)]
        made.append((replacement, report_layer(member.product.name, member.matrices, after, replacement.states)))
    return made, None if shared is None else np.float32(1) / shared


def _common_factors(group: ProductGroup, alpha: np.float32, producer: Producer) -> Array:
    """The factors [in] of products with the same inputs; [experts, in] where each expert makes its own."""
    if producer.chosen is None:
        return _factors(group.members, alpha, producer)
    experts = range(len(group.members[0].matrices))
    return np.stack([_factors(group.members_of(expert), alpha, producer) for expert in experts])


def _factors(members: Sequence[GroupMember], alpha: np.float32, producer: Producer | None) -> Array:
    """What inputs [in] are divided by. Those of experts that data chose for no token stay."""
    peaks = np.max([each.largest for member in members for each in member.inputs], axis=0)
    rows = np.max([np.abs(m.astype(np.float32)).max(axis=1) for member in members for m in member.matrices], axis=0)
    if not any(each.rows for member in members for each in member.inputs):
        return np.ones_like(peaks)
    if producer is not None:
        peaks, rows = producer.pool(peaks, np.maximum), producer.pool(rows, np.maximum)
    made: Array = np.maximum(peaks, SMALLEST) ** alpha / np.maximum(rows, SMALLEST) ** (1 - alpha)
    return made


def _round_smoothed(matrix: Array, factors: Array) -> tuple[Array, Array]:
    """Bytes [in, out] of a weight whose rows are multiplied with ``factors``, and their scales [1, out]."""
    wide = matrix.astype(np.float32) * factors[:, None]
    scales = scales_of(wide, 8, -1)
    return round_with(wide, scales, 8), scales


def _parts(name: str, states: dict[str, Array], factors: Array | None, step: Array | None) -> dict[str, Array]:
    """The states of a product of bytes by their full names."""
    given = {**states, "factors": factors, "step": step}
    return {f"{name}{part}": array for part, array in given.items() if array is not None}


def _smooth_product(
    product: WeightProduct, whole: Sequence[Array], scales: Sequence[Array], factors: Array | None, step: Array | None
) -> Replacement:
    """The product of bytes whose inputs are multiplied with ``factors`` (None: they have been before)."""
    name = f"{product.name}."
    states = _parts(name, {"bytes": lay_out_array(whole[0].T), "scales": scales[0][0]}, factors, step)

    def build(x: Value, bias: Value | None, parts: Mapping[str, Value]) -> Value:
        factors, step = (parts.get(name + part) for part in ("factors", "step"))
        return product_of_bytes(x, bias, parts[f"{name}bytes"], parts[f"{name}scales"], factors, step)

    return Replacement(states, build)


def _smooth_experts(
    product: WeightProduct, whole: Sequence[Array], scales: Sequence[Array], factors: Array | None, step: Array | None
) -> Replacement:
    """The same of experts."""
    name = f"{product.name}_"
    numbers = {"numbers": lay_out_array(np.stack([part.T for part in whole])), "scales": np.stack(scales)}

    def build(x: Value, bias: Value | None, parts: Mapping[str, Value]) -> Value:
        where, factors, step = product.op.location, parts.get(f"{name}factors"), parts.get(f"{name}step")
        weight = apply_operator("transpose", parts[f"{name}numbers"], perm=[0, 2, 1], location=where)
        return experts_of_bytes(x, parts["chosen"], bias, weight, parts[f"{name}scales"], factors, step, where)

    return Replacement(_parts(name, numbers, factors, step), build)
