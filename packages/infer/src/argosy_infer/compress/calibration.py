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
from argosy_tensorcore.wait_notice import count_steps

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
) -> dict[str, list[Inputs]]:
    """The inputs of weight products by the weight's name, while the program runs on ``data``: each entry has the
    program's inputs, in order or by name. Of a grouped product those that each expert was chosen for, of others all.
    Raises :class:`InputError` where there is no entry."""
    counts = {(each.x, each.chosen): len(each.matrices(loaded.states)) for each in products}
    values = list(dict.fromkeys(value for pair in counts for value in pair if value is not None))
    found: dict[Any, list[Inputs]] = {}
    for arrays in observe_values(loaded, values, data):
        made = dict(zip(values, arrays, strict=True))
        for (x, chosen), count in counts.items():
            rows = made[x].reshape(-1, made[x].shape[-1]).astype(np.float32)
            each = found.setdefault((x, chosen), [Inputs.none(rows.shape[1]) for _ in range(count)])
            owners = np.zeros(len(rows), np.int64) if chosen is None else made[chosen].reshape(-1)
            for owner in np.unique(owners).tolist():
                each[owner].add(rows if count == 1 else rows[owners == owner])
    return {product.name: found[product.x, product.chosen] for product in products}


def observe_values(
    loaded: LoadedProgram, values: Sequence[Any], data: Iterable[Sequence[Any] | Mapping[str, Any]]
) -> Iterator[list[Array]]:
    """What values of a program are for each entry of ``data``. Raises :class:`InputError` where there is no entry."""
    mapped: dict[Value, Value] = {}
    program = loaded.program.clone(mapped)
    program.set_outputs([mapped[value] for value in values], list(program.state_updates))
    predictor, count = Predictor(LoadedProgram(program, dict(loaded.states))), 0
    for entry in count_steps(data, "entries of data"):
        count += 1
        yield predictor.run(**entry) if isinstance(entry, Mapping) else predictor.run(*entry)
    if not count:
        raise InputError("calibration needs data: there is no entry")
