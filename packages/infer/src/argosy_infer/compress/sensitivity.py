"""Precision by layer: what a program's results lose when one weight alone has few bits says which ones get more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from argosy_infer.compress.packing import QuantizationReport, check_form, packed_layer, round_matrix
from argosy_infer.compress.product_groups import (
    CalibrationData,
    ProductGroup,
    Replaced,
    choose_products,
    replace_groups,
)
from argosy_infer.errors import InputError
from argosy_infer.export import LoadedProgram
from argosy_infer.predictor import Predictor
from argosy_infer.weights import WeightProduct
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.wait_notice import announce_wait, count_steps

__all__ = ["mixed_precision"]

Array = np.ndarray[Any, Any]


@announce_wait("measuring what each layer's precision is worth")
def mixed_precision(
    loaded: LoadedProgram,
    data: CalibrationData,
    average_bits: float = 6.0,
    group_size: int = -1,
    evaluation: Array | None = None,
    skip: Sequence[str] = (),
    input_bits: int | None = None,
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with its linear layers' and experts' weights in 4 or 8 bits, ``average_bits`` of a weight at most,
    rounded to the nearest: 8 where results on ``data`` change most for the bits that it takes, of a layer's experts for
    all or none. ``loaded`` stays as it is.

    The report's ``sensitivity`` is the mean square of that change, relative to that of the results; its perplexities
    are those of ``evaluation`` (ids [rows, tokens]); skip and input_bits: as in :func:`round_to_nearest`. Raises
    ValueError for fewer bits than 4 and other groups, InputError for no data.
    """
    if average_bits < 4:
        raise ValueError(f"mixed_precision: 4 bits or more; got {average_bits}")
    check_form("mixed_precision", 4, group_size, input_bits)
    products, _ = choose_products(loaded, 4, group_size, skip)
    found = _sensitivities(loaded, products, data, group_size)
    sizes = {name: loaded.states[name].size for name in products}
    room, bits = (average_bits - 4) * sum(sizes.values()), dict.fromkeys(products, 4)
    for name in sorted(found, key=lambda name: found[name] / sizes[name], reverse=True):
        if 4 * sizes[name] <= room:
            bits[name], room = 8, room - 4 * sizes[name]
    chosen = partial(_replace, bits=bits, group_size=group_size, input_bits=input_bits)
    made, report = replace_groups(loaded, 4, group_size, chosen, evaluation=evaluation, skip=skip)
    return made, replace(report, sensitivity=found)


def _replace(group: ProductGroup, bits: Mapping[str, int], group_size: int, input_bits: int | None) -> Replaced:
    made = []
    for member in group.members:
        parts = [round_matrix(matrix, bits[member.product.name], group_size) for matrix in member.matrices]
        made.append(packed_layer(member.product, member.matrices, parts, input_bits=input_bits))
    return made, None


def _sensitivities(
    loaded: LoadedProgram, products: Mapping[str, WeightProduct], data: CalibrationData, group_size: int
) -> dict[str, float]:
    """One program, compiled once, whose weights have four bits one after the other."""
    entries, predictor = list(data), Predictor(loaded)
    if not entries:
        raise InputError("calibration needs data: there is no entry")

    def results() -> list[Array]:
        runs = [predictor.run(**e) if isinstance(e, Mapping) else predictor.run(*e) for e in entries]
        return [array.astype(np.float64) for run in runs for array in run]

    whole, states, found = results(), dict(predictor.states), {}
    for name, product in count_steps(products.items(), "layers"):
        parts = [round_matrix(matrix, 4, group_size).dequantize() for matrix in product.matrices(loaded.states)]
        turned = np.stack([matrix.T if product.is_turned else matrix for matrix in parts])
        weight = turned.reshape(loaded.states[name].shape).astype(loaded.states[name].dtype)
        predictor.move(predictor.device, {**states, name: StridedArray.from_array(weight, predictor.device)})
        change = sum(float(np.square(got - want).sum()) for got, want in zip(results(), whole, strict=True))
        found[name] = change / (sum(float(np.square(want).sum()) for want in whole) or 1.0)
    return found
