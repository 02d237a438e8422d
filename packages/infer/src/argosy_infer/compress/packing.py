"""Weights of few bits with scales: how they are rounded and packed, what takes the place of their products, and what is
reported of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from argosy_infer.compress.byte_inputs import experts_of_bytes, product_of_bytes
from argosy_infer.weights import (
    Replacement,
    WeightProduct,
    apply_operator,
    lay_out_array,
    pack_outputs,
    unpack_experts,
)
from argosy_pir.values import Value

__all__ = [
    "LARGEST", "LayerReport", "QuantizationReport", "QuantizedWeight", "check_form", "packed_layer",
    "report_layer", "round_matrix", "round_with", "scales_of",
]  # fmt: skip

Array = np.ndarray[Any, Any]
LARGEST = {8: 127.0, 4: 7.0}
_GROUPS = (-1, 32, 64, 128)


@dataclass(frozen=True)
class LayerReport:
    """A weight that was rounded: bytes before and after, and its error, in the Frobenius norm and relative to it."""

    name: str
    bytes_before: int
    bytes_after: int
    error: float


@dataclass(frozen=True)
class QuantizationReport:
    """What a pass has done: ``layers``, and weights that were ``skipped`` with the reason; what results lose by each
    layer (``sensitivity``) and the ``perplexities`` before and after where these were measured."""

    layers: tuple[LayerReport, ...]
    skipped: Mapping[str, str]
    sensitivity: Mapping[str, float] = field(default_factory=dict)
    perplexities: tuple[float, float] | None = None

    @property
    def bytes_before(self) -> int:
        """Of the weights of all layers."""
        return sum(layer.bytes_before for layer in self.layers)

    @property
    def bytes_after(self) -> int:
        """Of the same, with scales and what else stands for them."""
        return sum(layer.bytes_after for layer in self.layers)

    @property
    def perplexity_gap(self) -> float | None:
        """The share by which perplexity has risen; None where it was not measured."""
        return None if self.perplexities is None else self.perplexities[1] / self.perplexities[0] - 1

    def __str__(self) -> str:
        rows = [f"{x.name}: {x.bytes_before:,} bytes to {x.bytes_after:,}, error {x.error:.3g}" for x in self.layers]
        rows += [f"{name}: skipped, {reason}" for name, reason in self.skipped.items()]
        rows.append(f"{len(self.layers)} layers: {self.bytes_before:,} bytes to {self.bytes_after:,}")
        if self.perplexities is not None:
            before, after = self.perplexities
            rows.append(f"perplexity {before:.4g} to {after:.4g}, {self.perplexity_gap:+.2%}")
        return "\n".join(rows)


@dataclass(frozen=True)
class QuantizedWeight:
    """Numbers ``whole`` [in, out] (integers, or in e4m3) that stand for ``whole * scales``, [groups, out] of
    ``group_size`` inputs (-1: all are one group). ``order``: which input each row belongs to, where they are not in
    order; ``factors`` [in]: what inputs are multiplied with first."""

    whole: Array
    scales: Array
    bits: int
    group_size: int
    order: Array | None = None
    factors: Array | None = None

    def dequantize(self) -> Array:
        """The matrix [in, out] in float32 that is multiplied with the inputs as they were."""
        groups = self.whole.astype(np.float32).reshape(len(self.scales), -1, self.whole.shape[1])
        made = (groups * self.scales.astype(np.float32)[:, None]).reshape(self.whole.shape)
        if self.order is not None:
            made = made[np.argsort(self.order)]
        return made if self.factors is None else made * self.factors.astype(np.float32)[:, None]


def check_form(name: str, bits: int, group_size: int, input_bits: int | None = None) -> None:
    """Raises ValueError for bits and groups that have no code."""
    if input_bits not in (None, 8):
        raise ValueError(f"{name}: input_bits None or 8; got {input_bits}")
    if bits not in LARGEST or group_size not in _GROUPS:
        raise ValueError(f"{name}: bits 8 or 4, groups of -1, 32, 64 or 128; got {bits} and {group_size}")


def scales_of(matrix: Array, bits: int, group_size: int) -> Array:
    """The largest magnitude of each output [groups, out] over the largest whole number; 1 where all are zero."""
    groups = matrix.shape[0] // group_size if group_size > 0 else 1
    scales = np.abs(matrix.reshape(groups, -1, matrix.shape[1])).max(axis=1) / np.float32(LARGEST[bits])
    return np.where(scales == 0, np.float32(1), scales)


def round_with(matrix: Array, scales: Array, bits: int) -> Array:
    """The nearest whole numbers (int8) of a matrix [in, out] with scales [groups, out]."""
    wide = matrix.reshape(len(scales), -1, matrix.shape[1])
    whole = np.clip(np.rint(wide / scales[:, None]), -LARGEST[bits], LARGEST[bits])
    return whole.reshape(matrix.shape).astype(np.int8)


def round_matrix(matrix: Array, bits: int, group_size: int) -> QuantizedWeight:
    """A matrix [in, out] rounded to the nearest, its scales in its dtype."""
    wide = matrix.astype(np.float32)
    scales = scales_of(wide, bits, group_size).astype(matrix.dtype)
    return QuantizedWeight(round_with(wide, scales.astype(np.float32), bits), scales, bits, group_size)


def packed_layer(
    product: WeightProduct,
    before: Sequence[Array],
    made: Sequence[QuantizedWeight],
    folded: bool = False,
    input_bits: int | None = None,
) -> tuple[Replacement, LayerReport]:
    """What takes the place of a product whose weights [in, out] (one, or one of each expert) were ``before``, and the
    report of it; ``folded``: what makes the inputs multiplies them with the factors; ``input_bits``: 8 rounds inputs to
    bytes."""
    pack = _pack_matrix if product.chosen is None else _pack_experts
    packed = pack(product, made, None if folded else made[0].factors, input_bits)
    return packed, report_layer(product.name, before, [each.dequantize() for each in made], packed.states)


def report_layer(
    name: str, before: Sequence[Array], after: Sequence[Array], states: Mapping[str, Array]
) -> LayerReport:
    """The report of a weight whose matrices are ``after`` now, which ``states`` hold."""
    wide = [matrix.astype(np.float32) for matrix in before]
    norm = float(np.sqrt(sum(np.square(np.linalg.norm(matrix)) for matrix in wide))) or 1.0
    lost = sum(np.square(np.linalg.norm(made - matrix)) for made, matrix in zip(after, wide, strict=True))
    small, large = (sum(array.nbytes for array in arrays) for arrays in (states.values(), before))
    return LayerReport(name, large, small, float(np.sqrt(lost)) / norm)


def _pack_matrix(
    product: WeightProduct, parts: Sequence[QuantizedWeight], factors: Array | None, input_bits: int | None
) -> Replacement:
    """What takes the place of a linear layer."""
    name, (made,) = product.name, parts
    numbers = pack_outputs(made.whole.T) if made.bits == 4 else made.whole.T
    scales = made.scales if made.group_size > 0 else made.scales[0]
    states = {f"{name}.bytes": lay_out_array(numbers), f"{name}.scales": scales}
    if made.order is not None:
        states[f"{name}.order"] = made.order.astype(np.int64)
    if factors is not None:
        states[f"{name}.factors"] = factors

    def build(x: Value, bias: Value | None, given: Mapping[str, Value]) -> Value:
        where = product.op.location
        if f"{name}.factors" in given:
            x = apply_operator("multiply", x, given[f"{name}.factors"], location=where)
        if f"{name}.order" in given:
            x = apply_operator("index_select", x, given[f"{name}.order"], axis=-1, location=where)
        weight, scales = given[f"{name}.bytes"], given[f"{name}.scales"]
        dtype = f"int{made.bits}" if made.whole.dtype == np.int8 else made.whole.dtype.name
        form: dict[str, Any] = {"weight_dtype": dtype, "group_size": made.group_size}
        if input_bits is None:
            return apply_operator("weight_only_linear", x, weight, bias, scales, location=where, **form)
        return product_of_bytes(x, bias, weight, scales, location=where, **form)

    return Replacement(states, build)


def _pack_experts(
    product: WeightProduct, parts: Sequence[QuantizedWeight], factors: Array | None, input_bits: int | None
) -> Replacement:
    """What takes the place of a grouped product."""
    name, is_packed = product.name, parts[0].bits == 4 and parts[0].whole.shape[1] % 2 == 0
    matrices = [pack_outputs(part.whole.T) if is_packed else part.whole.T for part in parts]
    states = {
        f"{name}_numbers": lay_out_array(np.stack(matrices)),
        f"{name}_scales": np.stack([part.scales for part in parts]),
    }
    if factors is not None:
        states[f"{name}_factors"] = factors

    def build(x: Value, bias: Value | None, given: Mapping[str, Value]) -> Value:
        where, chosen = product.op.location, given["chosen"]
        if f"{name}_factors" in given:
            x = apply_operator("multiply", x, given[f"{name}_factors"], location=where)
        numbers, scales = given[f"{name}_numbers"], given[f"{name}_scales"]
        numbers = unpack_experts(numbers) if is_packed else numbers
        weight = apply_operator("transpose", numbers, perm=[0, 2, 1], location=where)
        if input_bits is None:
            return apply_operator("gather_mm", x, chosen, weight, bias, scales, location=where)
        return experts_of_bytes(x, chosen, bias, weight, scales, location=where)

    return Replacement(states, build)
