"""What a program multiplies its weights with: sums over calibration data, by which weights are rounded better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_infer.errors import InputError
from argosy_infer.export import LoadedProgram
from argosy_infer.predictor import Predictor
from argosy_infer.weights import WeightProduct

__all__ = ["Inputs", "observe_inputs"]

Array = np.ndarray[Any, Any]


@dataclass
class Inputs:
    """The inputs [rows, in] of a weight product: how many ``rows``, the sums of ``x x^T`` [in, in] in float64, of
    ``|x|`` [in], and the ``largest`` magnitudes [in]."""

    rows: int
    products: Array
    magnitudes: Array
    largest: Array

    def add(self, x: Array) -> None:
        """Count in more rows."""
        self.rows += len(x)
        self.products += x.T.astype(np.float64) @ x
        self.magnitudes += np.abs(x).sum(axis=0)
        np.maximum(self.largest, np.abs(x).max(axis=0), out=self.largest)


def observe_inputs(
    loaded: LoadedProgram,
    products: Sequence[WeightProduct],
    data: Iterable[Sequence[Any] | Mapping[str, Any]],
) -> dict[str, Inputs]:
    """The inputs of weight products by the weight's name, while the program runs on ``data``: each entry has the
    program's inputs, in order or by name. Raises :class:`InputError` where there is no entry."""
    program = loaded.program.clone()
    names = {state.name: state.argument for state in program.states}
    weights = [names[product.name] for product in products]
    inputs = [_other_operand(weight) for weight in weights]
    distinct = list(dict.fromkeys(inputs))
    program.set_outputs(distinct, list(program.state_updates))
    predictor = Predictor(LoadedProgram(program, dict(loaded.states)))
    found: dict[Any, Inputs] = {}
    for entry in data:
        made = predictor.run(**entry) if isinstance(entry, Mapping) else predictor.run(*entry)
        for value, array in zip(distinct, made, strict=True):
            rows = array.reshape(-1, array.shape[-1]).astype(np.float32)
            if value not in found:
                size = rows.shape[1]
                zeros = np.zeros(size, np.float32)
                found[value] = Inputs(0, np.zeros((size, size)), zeros, zeros.copy())
            found[value].add(rows)
    if not found:
        raise InputError("calibration needs data: there is no entry")
    return {product.name: found[value] for product, value in zip(products, inputs, strict=True)}


def _other_operand(weight: Any) -> Any:
    """What a weight is multiplied with."""
    (user,) = (user for user in weight.users if user.name != "builtin.return")
    return user.operand(0)
