"""Integer weights with scales: how they are found, packed and put into a program, and what is reported of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from argosy_infer.compress.calibration import Inputs, observe_inputs
from argosy_infer.compress.folding import Producer, find_producers
from argosy_infer.compress.perplexity import perplexity
from argosy_infer.export import LoadedProgram
from argosy_infer.latent_attention import latent_weights
from argosy_infer.weights import (
    Replacement,
    WeightProduct,
    apply_operator,
    find_expert_products,
    find_weight_products,
    replace_products,
)
from argosy_pir.values import Value

__all__ = [
    "LARGEST", "CalibrationData", "LayerReport", "ProductGroup", "QuantizationReport", "QuantizedWeight", "Replaced",
    "check_form", "choose_products", "packed_layer", "replace_groups", "replace_weights",
    "round_matrix", "round_with", "scales_of",
]  # fmt: skip

Array = np.ndarray[Any, Any]
CalibrationData = Iterable[Sequence[Any] | Mapping[str, Any]]
LARGEST = {8: 127.0, 4: 7.0}
GROUPS = (-1, 32, 64, 128)


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
        spread = np.repeat(self.scales.astype(np.float32), self.whole.shape[0] // len(self.scales), axis=0)
        made = self.whole.astype(np.float32) * spread
        if self.order is not None:
            made = made[np.argsort(self.order)]
        return made if self.factors is None else made * self.factors.astype(np.float32)[:, None]


def _explain_refusal(shape: tuple[int, ...], bits: int, group_size: int) -> str:
    """Why a weight [in, out] has no such form; empty where it has."""
    size, out = shape
    if bits == 4 and out % 2:
        return f"{out} outputs do not fill bytes of two"
    if group_size > 0 and size % group_size:
        return f"{size} inputs are no multiple of {group_size}"
    return ""


def choose_products(
    loaded: LoadedProgram, bits: int, group_size: int, skip: Sequence[str] = ()
) -> tuple[dict[str, WeightProduct], dict[str, str]]:
    """The weight products that have such a form by the weight's name, and why others have none. Raises ValueError for
    a pattern of ``skip`` that is of no weight."""
    found, skipped = find_weight_products(loaded.program)
    reason = "experts are rounded by round_to_nearest, round_to_float8 and gptq alone"
    for experts in find_expert_products(loaded.program):
        skipped.update(dict.fromkeys(experts, reason))
    rounded = [state.name.removesuffix("_numbers") for state in loaded.program.states]
    names = {**found, **skipped, **dict.fromkeys(rounded)}
    unknown = [pattern for pattern in skip if not any(fnmatchcase(name, pattern) for name in names)]
    if unknown:
        raise ValueError(f"skip: {unknown[0]!r} is no weight of a product; there are {', '.join(found)}")
    latent = latent_weights(loaded.program)
    for name, product in list(found.items()):
        reason = _explain_refusal(product.matrix(loaded.states).shape, bits, group_size)
        reason = "heads make keys and values of cached channels by it" if name in latent else reason
        reason = "it was to be skipped" if any(fnmatchcase(name, pattern) for pattern in skip) else reason
        if reason:
            skipped[name] = reason
            del found[name]
    return found, skipped


@dataclass(frozen=True)
class ProductGroup:
    """Products with the same inputs, their weights [in, out], what was observed of the inputs (None without data), and
    what makes these, if that takes factors of theirs (None: nothing does)."""

    products: tuple[WeightProduct, ...]
    matrices: tuple[Array, ...]
    inputs: Inputs | None
    producer: Producer | None


Replaced = tuple[Sequence[tuple[Replacement, LayerReport]], "Array | None"]
"""What takes the place of each product of a group, and factors [in] that its producer multiplies from then on."""


def replace_groups(
    loaded: LoadedProgram,
    bits: int,
    group_size: int,
    replace: Callable[[ProductGroup], Replaced],
    data: CalibrationData | None = None,
    evaluation: Array | None = None,
    skip: Sequence[str] = (),
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with what ``replace`` gives in the place of its weight products that have such a form.

    ``evaluation``: the tokens that perplexity is measured on; ``skip``: names or patterns of weights that stay."""
    found, skipped = choose_products(loaded, bits, group_size, skip)
    observed = {} if data is None else observe_inputs(loaded, list(found.values()), data)
    made, layers, folded = {}, {}, []
    for group in _groups(loaded, found, observed):
        replaced, given = replace(group)
        for product, (replacement, report) in zip(group.products, replaced, strict=True):
            made[product], layers[product.name] = replacement, report
        if given is not None and group.producer is not None:
            folded.append((group.producer, given))
    compressed = replace_products(loaded, made)
    states = dict(compressed.states)
    for producer, given in folded:
        producer.scale(states, given)
    compressed = LoadedProgram(compressed.program, states)
    measured = None if evaluation is None else (perplexity(loaded, evaluation), perplexity(compressed, evaluation))
    return compressed, QuantizationReport(tuple(layers[name] for name in found), skipped, perplexities=measured)


def _groups(
    loaded: LoadedProgram, found: Mapping[str, WeightProduct], observed: Mapping[str, Inputs]
) -> Iterable[ProductGroup]:
    """The products by their inputs, in the program's order."""
    by_inputs: dict[Value, list[WeightProduct]] = {}
    for product in found.values():
        by_inputs.setdefault(product.x, []).append(product)
    producers = find_producers(loaded.program, list(found.values()))
    for x, products in by_inputs.items():
        matrices = tuple(product.matrix(loaded.states) for product in products)
        yield ProductGroup(tuple(products), matrices, observed.get(products[0].name), producers.get(x))


def replace_weights(
    loaded: LoadedProgram,
    bits: int,
    group_size: int,
    replace: Callable[[WeightProduct, Array, Any], tuple[Replacement, LayerReport]],
    data: CalibrationData | None = None,
    evaluation: Array | None = None,
    skip: Sequence[str] = (),
) -> tuple[LoadedProgram, QuantizationReport]:
    """:func:`replace_groups` by ``replace(product, matrix, inputs)`` for each product by itself."""

    def each(group: ProductGroup) -> Replaced:
        pairs = zip(group.products, group.matrices, strict=True)
        return [replace(product, matrix, group.inputs) for product, matrix in pairs], None

    return replace_groups(loaded, bits, group_size, each, data, evaluation, skip)


def check_form(name: str, bits: int, group_size: int) -> None:
    """Raises ValueError for bits and groups that have no code."""
    if bits not in LARGEST or group_size not in GROUPS:
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
    product: WeightProduct, before: Array, made: QuantizedWeight, folded: bool = False
) -> tuple[Replacement, LayerReport]:
    """What takes the place of a product whose weight [in, out] was ``before``, and the report of it; ``folded``: what
    makes the inputs multiplies them with the factors."""
    name = product.name
    numbers = np.ascontiguousarray(made.whole.T)
    if made.bits == 4:  # two outputs in a byte: see `weight_quantize`
        low, high = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
        numbers = (low & 15) | (high << 4)
    states = {f"{name}.bytes": numbers, f"{name}.scales": made.scales if made.group_size > 0 else made.scales[0]}
    if made.order is not None:
        states[f"{name}.order"] = made.order.astype(np.int64)
    if made.factors is not None and not folded:
        states[f"{name}.factors"] = made.factors

    def build(x: Value, bias: Value | None, parts: Mapping[str, Value]) -> Value:
        where = product.op.location
        if f"{name}.factors" in parts:
            x = apply_operator("multiply", x, parts[f"{name}.factors"], location=where)
        if f"{name}.order" in parts:
            x = apply_operator("index_select", x, parts[f"{name}.order"], axis=-1, location=where)
        weight, scales = parts[f"{name}.bytes"], parts[f"{name}.scales"]
        dtype = f"int{made.bits}" if made.whole.dtype == np.int8 else made.whole.dtype.name
        form = {"weight_dtype": dtype, "group_size": made.group_size}
        return apply_operator("weight_only_linear", x, weight, bias, scales, location=where, **form)

    norm = float(np.linalg.norm(before.astype(np.float32))) or 1.0
    error = float(np.linalg.norm(made.dequantize() - before.astype(np.float32))) / norm
    size = sum(array.nbytes for array in states.values())
    return Replacement(states, build), LayerReport(name, before.nbytes, size, error)
