"""AWQ (Lin et al., 2024): inputs with large activations get finer steps. Rows of a weight are multiplied by factors
before they are rounded, and its inputs divided by them: ``factors = mean(|x|) ** alpha``, alpha by trial. What makes
the inputs (a norm, a layer) is divided by them where that is possible; layers with the same inputs have the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from argosy_infer.compress.calibration import Inputs
from argosy_infer.compress.folding import Producer
from argosy_infer.compress.packing import (
    QuantizationReport,
    QuantizedWeight,
    check_form,
    packed_layer,
    round_with,
    scales_of,
)
from argosy_infer.compress.product_groups import CalibrationData, GroupMember, ProductGroup, Replaced, replace_groups
from argosy_infer.export import LoadedProgram
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["awq"]

Array = np.ndarray[Any, Any]
_TRIALS = 11
"""Exponents from 0 to 1; the first is rounding to the nearest."""


@announce_wait("quantising weights by AWQ")
def awq(
    loaded: LoadedProgram,
    data: CalibrationData,
    bits: int = 4,
    group_size: int = 128,
    evaluation: Array | None = None,
    skip: Sequence[str] = (),
    multiply_inputs: bool = True,
    input_bits: int | None = None,
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with its linear layers' and experts' weights in ``bits`` (8 or 4), a scale for each output and
    ``group_size`` inputs (-1, 32, 64, 128), and its inputs multiplied by one factor each: within the norm or layer that
    makes them (the inputs of each expert's way back within that expert), or, where nothing takes factors, when the
    program runs. ``loaded`` stays as it is.

    data: entries of the program's inputs, in order or by name; evaluation: ids [rows, tokens] that the report's
    perplexities are of; skip and input_bits: as in :func:`round_to_nearest`; multiply_inputs: False leaves inputs alone
    that nothing takes factors of, as files of other tools have to. Raises ValueError for other bits and groups,
    InputError for no data.
    """
    check_form("awq", bits, group_size, input_bits)
    found = partial(
        _replace_group, bits=bits, group_size=group_size, multiply_inputs=multiply_inputs, input_bits=input_bits
    )
    return replace_groups(loaded, bits, group_size, found, data, evaluation, skip)


def _replace_group(
    group: ProductGroup, bits: int, group_size: int, multiply_inputs: bool, input_bits: int | None
) -> Replaced:
    search = partial(_search_scales, bits=bits, group_size=group_size)
    pack = partial(packed_layer, input_bits=input_bits)
    producer = group.producer
    if producer is None:
        alone = [search([member], trials=_TRIALS if multiply_inputs else 1) for member in group.members]
        return [pack(m.product, m.matrices, made) for m, (made,) in zip(group.members, alone, strict=True)], None
    if producer.chosen is None:
        made = search(group.members, producer=producer)
        given = made[0][0].factors
    else:  # each expert has channels of its own
        experts = range(len(group.members[0].matrices))
        by_expert = [search(group.members_of(expert), producer=producer) for expert in experts]
        made = [[parts[i][0] for parts in by_expert] for i in range(len(group.members))]
        found = [parts[0].factors for parts in zip(*made, strict=True)]
        size = len(producer.channels)
        given = np.stack([np.ones(size, np.float32) if one is None else one.astype(np.float32) for one in found])
    pairs = zip(group.members, made, strict=True)
    return [pack(member.product, member.matrices, parts, folded=True) for member, parts in pairs], given


def _search_scales(
    members: Sequence[GroupMember], bits: int, group_size: int, producer: Producer | None = None, trials: int = _TRIALS
) -> list[list[QuantizedWeight]]:
    """The rounded matrices of each product, of one exponent, whose outputs on the sample differ least."""
    inputs = [each for member in members for each in member.inputs]
    rows = max(sum(each.rows for each in inputs), 1)
    means = np.maximum(np.sum([each.magnitudes for each in inputs], axis=0) / np.float32(rows), np.float32(1e-8))
    if producer is not None:
        means = producer.pool(means, np.add)
    best, least = list[list[QuantizedWeight]](), np.inf
    for alpha in np.linspace(0, 1, _TRIALS, dtype=np.float32)[:trials]:
        factors = means**alpha
        factors /= np.sqrt(factors.max() * factors.min())
        given = None if alpha == 0 else (np.float32(1) / factors).astype(members[0].matrices[0].dtype)
        made = [[_round_scaled(matrix, given, bits, group_size) for matrix in member.matrices] for member in members]
        error = sum(
            sum(map(_error, parts, member.matrices, member.inputs)) for parts, member in zip(made, members, strict=True)
        )
        if error < least:
            best, least = made, error
    return best


def _round_scaled(matrix: Array, given: Array | None, bits: int, group_size: int) -> QuantizedWeight:
    """A weight [in, out] whose inputs are multiplied with ``given`` first, rounded to the nearest."""
    wide = matrix.astype(np.float32)
    wide = wide if given is None else wide / given.astype(np.float32)[:, None]
    scales = scales_of(wide, bits, group_size).astype(matrix.dtype)
    whole = round_with(wide, scales.astype(np.float32), bits)
    return QuantizedWeight(whole, scales, bits, group_size, None, given)


def _error(made: QuantizedWeight, matrix: Array, inputs: Inputs) -> float:
    """The square of what outputs on the sample differ by."""
    if not inputs.rows:
        return 0.0
    difference = made.dequantize() - matrix.astype(np.float32)
    return float(np.einsum("io,ij,jo->", difference, inputs.products, difference, optimize=True))
