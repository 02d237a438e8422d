"""Passes that round each weight by itself: linear layers, and experts one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from argosy_infer.compress.experts import round_experts
from argosy_infer.compress.packing import (
    CalibrationData,
    LayerReport,
    QuantizationReport,
    QuantizedWeight,
    check_form,
    packed_layer,
    replace_weights,
)
from argosy_infer.compress.perplexity import perplexity
from argosy_infer.export import LoadedProgram
from argosy_infer.weights import Replacement, WeightProduct

__all__ = ["quantize_weights"]

Array = np.ndarray[Any, Any]


def quantize_weights(
    name: str,
    loaded: LoadedProgram,
    bits: int,
    group_size: int,
    quantize: Callable[[Array, Any], QuantizedWeight],
    data: CalibrationData | None = None,
    evaluation: Array | None = None,
    skip: Sequence[str] = (),
    quantize_expert: Callable[[Array, Any], QuantizedWeight] | None = None,
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with the weights that ``quantize(matrix, inputs)`` gives, for the pass ``name``; those of experts
    by ``quantize_expert`` where that is another. Raises ValueError for bits and groups that have no code."""
    check_form(name, bits, group_size)
    entries = None if data is None else list(data)
    experts = round_experts(loaded, bits, group_size, quantize_expert or quantize, entries, skip)

    def replaced(product: WeightProduct, matrix: Array, inputs: Any) -> tuple[Replacement, LayerReport]:
        return packed_layer(product, matrix, quantize(matrix, inputs))

    made, report = replace_weights(experts.loaded, bits, group_size, replaced, entries, None, skip)
    measured = None if evaluation is None else (perplexity(loaded, evaluation), perplexity(made, evaluation))
    skipped = {**report.skipped, **experts.skipped}
    return made, replace(report, layers=(*report.layers, *experts.layers), skipped=skipped, perplexities=measured)
