"""Weights of experts in few bits: each matrix of a grouped product is rounded by itself, by the inputs that its expert
was chosen for.

Numbers of four bits take eight here: grouped products read bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from argosy_infer.compress.calibration import Inputs, observe_values
from argosy_infer.compress.packing import CalibrationData, LayerReport, QuantizedWeight, round_matrix
from argosy_infer.export import LoadedProgram
from argosy_infer.weights import Replacement, WeightProduct, apply_operator, find_expert_products, replace_products
from argosy_pir.values import Value

__all__ = ["ExpertsRounded", "round_experts"]

Array = np.ndarray[Any, Any]
Rounding = Callable[[Array, "Inputs | None"], QuantizedWeight]


@dataclass(frozen=True)
class ExpertsRounded:
    """The program with the experts that were rounded, the reports of these, and why others were not."""

    loaded: LoadedProgram
    layers: tuple[LayerReport, ...]
    skipped: Mapping[str, str]


def round_experts(
    loaded: LoadedProgram,
    bits: int,
    group_size: int,
    rounding: Rounding,
    data: CalibrationData | None,
    skip: Sequence[str],
) -> ExpertsRounded:
    """The program with weights of experts as ``rounding(matrix, inputs)`` gives them. Experts that ``data`` chooses
    for no token are rounded to the nearest."""
    found, skipped = find_expert_products(loaded.program)
    for name, product in list(found.items()):
        size = product.x.shape[-1]
        reason = f"{size} inputs are no multiple of {group_size}" if group_size > 0 and size % group_size else ""
        reason = "it was to be skipped" if any(fnmatchcase(name, pattern) for pattern in skip) else reason
        if reason:
            skipped[name] = reason
            del found[name]
    inputs = {} if data is None else _inputs_of_experts(loaded, list(found.values()), data)
    made, layers = {}, []
    for name, product in found.items():
        weight = loaded.states[name]
        parts = []
        for expert, matrix in enumerate(weight):
            seen = inputs[name][expert] if inputs else None
            unseen = bool(inputs) and seen is None
            parts.append(round_matrix(matrix, bits, group_size) if unseen else rounding(matrix, seen))
        made[product], report = _packed(product, weight, parts)
        layers.append(report)
    return ExpertsRounded(replace_products(loaded, made) if made else loaded, tuple(layers), skipped)


def _inputs_of_experts(
    loaded: LoadedProgram, products: Sequence[WeightProduct], data: Iterable[Any]
) -> dict[str, list[Inputs | None]]:
    """What each expert was multiplied with, by the weight's name; None where nothing was."""
    values = [value for product in products for value in (product.x, product.chosen)]
    found: dict[str, list[Inputs | None]] = {
        product.name: [None] * len(loaded.states[product.name]) for product in products
    }
    for arrays in observe_values(loaded, values, data):
        for product, x, chosen in zip(products, arrays[0::2], arrays[1::2], strict=True):
            rows, owners = x.reshape(-1, x.shape[-1]).astype(np.float32), chosen.reshape(-1)
            each = found[product.name]
            for expert in np.unique(owners).tolist():
                seen = each[expert] = each[expert] or Inputs.none(rows.shape[1])
                seen.add(rows[owners == expert])
    return found


def _packed(product: WeightProduct, before: Array, parts: Sequence[QuantizedWeight]) -> tuple[Replacement, LayerReport]:
    """What takes the place of a grouped product, and the report of it."""
    name = product.name
    states = {
        f"{name}_numbers": np.stack([np.ascontiguousarray(part.whole.T) for part in parts]),
        f"{name}_scales": np.stack([part.scales for part in parts]),
    }

    def build(x: Value, bias: Value | None, given: Mapping[str, Value]) -> Value:
        where, chosen = product.op.location, given["chosen"]
        weight = apply_operator("transpose", given[f"{name}_numbers"], perm=[0, 2, 1], location=where)
        scales = given[f"{name}_scales"]
        return apply_operator("gather_mm", x, chosen, weight, bias, scales, location=where)

    wide = before.astype(np.float32)
    error = float(np.linalg.norm(np.stack([part.dequantize() for part in parts]) - wide))
    size = sum(array.nbytes for array in states.values())
    return Replacement(states, build), LayerReport(
        name, before.nbytes, size, error / (float(np.linalg.norm(wide)) or 1.0)
    )
