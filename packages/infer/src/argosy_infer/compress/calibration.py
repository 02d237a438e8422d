"""What a program multiplies its weights with: sums over calibration data, by which weights are rounded better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_infer.errors import InputError
from argosy_infer.export import LoadedProgram
from argosy_infer.predictor import Predictor
from argosy_infer.weights import WeightProduct
from argosy_pir.values import Value

__all__ = ["Inputs", "observe_inputs", "observe_values"]

Array = np.ndarray[Any, Any]


@dataclass
class Inputs:
    """The inputs [rows, in] of a weight product: how many ``rows``, the sums of ``x x^T`` [in, in] in float64, of
    ``|x|`` [in], and the ``largest`` magnitudes [in]."""

    rows: int
    products: Array
    magnitudes: Array
    largest: Array

    @classmethod
    def none(cls, size: int) -> Inputs:
        """Of no rows yet."""
        zeros = np.zeros(size, np.float32)
        return cls(0, np.zeros((size, size)), zeros, zeros.copy())

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
    names = {state.name: state.argument for state in loaded.program.states}
    inputs = [_other_operand(names[product.name]) for product in products]
    distinct = list(dict.fromkeys(inputs))
    found: dict[Any, Inputs] = {}
    for made in observe_values(loaded, distinct, data):
        for value, array in zip(distinct, made, strict=True):
            rows = array.reshape(-1, array.shape[-1]).astype(np.float32)
            found.setdefault(value, Inputs.none(rows.shape[1])).add(rows)
    return {product.name: found[value] for product, value in zip(products, inputs, strict=True)}


def observe_values(
    loaded: LoadedProgram, values: Sequence[Any], data: Iterable[Sequence[Any] | Mapping[str, Any]]
) -> Iterator[list[Array]]:
    """What values of a program are for each entry of ``data``. Raises :class:`InputError` where there is no entry."""
    mapped: dict[Value, Value] = {}
    program = loaded.program.clone(mapped)
    program.set_outputs([mapped[value] for value in values], list(program.state_updates))
    predictor, count = Predictor(LoadedProgram(program, dict(loaded.states))), 0
    for entry in data:
        count += 1
        yield predictor.run(**entry) if isinstance(entry, Mapping) else predictor.run(*entry)
    if not count:
        raise InputError("calibration needs data: there is no entry")


def _other_operand(weight: Any) -> Any:
    """What a weight is multiplied with."""
    (user,) = (user for user in weight.users if user.name != "builtin.return")
    return user.operand(0)
