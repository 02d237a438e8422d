"""Passes that round each weight by itself: linear layers, and experts one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy_infer.compress.packing import QuantizationReport, QuantizedWeight, check_form, packed_layer, round_matrix
from argosy_infer.compress.product_groups import (
    CalibrationData,
    GroupMember,
    ProductGroup,
    Replaced,
    replace_groups,
)
from argosy_infer.export import LoadedProgram

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
    input_bits: int | None = None,
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with the weights that ``quantize(matrix, inputs)`` gives, for the pass ``name``; those of experts
    by ``quantize_expert`` where that is another, and to the nearest where ``data`` chooses them for no token. Raises
    ValueError for bits and groups that have no code."""
    check_form(name, bits, group_size, input_bits)

    def rounded(member: GroupMember) -> list[QuantizedWeight]:
        own = quantize if member.product.chosen is None else quantize_expert or quantize
        inputs = member.inputs or [None] * len(member.matrices)
        return [
            round_matrix(matrix, bits, group_size) if seen is not None and not seen.rows else own(matrix, seen)
            for matrix, seen in zip(member.matrices, inputs, strict=True)
        ]

    def replaced(group: ProductGroup) -> Replaced:
        made = [(each, rounded(each)) for each in group.members]
        return [packed_layer(e.product, e.matrices, parts, input_bits=input_bits) for e, parts in made], None

    return replace_groups(loaded, bits, group_size, replaced, data, evaluation, skip)
