"""Recurrent networks over sequences, and decoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parity.case import Case, call, layer, script, state
from parity.inputs import given
from parity.inputs import tensor as t

SIZES: dict[str, Any] = {"input_size": 3, "hidden_size": 4}
LENGTHS = given([2, 5], "int64")


def cases() -> Iterator[Case]:
    for name in ("SimpleRNN", "GRU", "LSTM"):
        yield from _stacks(f"nn.{name}", 2 if name == "LSTM" else 1)
    yield layer("nn.SimpleRNN", t(2, 5, 3), **SIZES, activation="relu")
    yield layer("nn.LSTM", t(2, 5, 3), **SIZES, proj_size=2)
    yield layer("nn.LSTM", t(2, 5, 3), (t(4, 2, 2), t(4, 2, 4)), LENGTHS, **SIZES, proj_size=2, num_layers=2,
                direction="bidirect")  # fmt: skip
    yield state("nn.LSTM", **SIZES, proj_size=2, num_layers=2)
    yield from _wrappers()
    yield from _decoding()


def _stacks(name: str, states: int) -> Iterator[Case]:
    def start(count: int) -> Any:
        return tuple(t(count, 2, 4) for _ in range(states)) if states > 1 else t(count, 2, 4)

    yield layer(name, t(2, 5, 3), start(1), **SIZES)
    yield layer(name, t(2, 5, 3), None, LENGTHS, **SIZES)
    yield layer(name, t(5, 2, 3), **SIZES, time_major=True)
    yield layer(name, t(2, 5, 3), start(4), LENGTHS, **SIZES, num_layers=2, direction="bidirect")
    yield layer(name, t(2, 5, 3), **SIZES, num_layers=2, direction="bidirectional", training=False, dropout=0.4)
    yield layer(name, t(2, 5, 3), **SIZES, bias_ih_attr=False, weight_hh_attr=False)
    yield layer(name, t(2, 1, 3), **SIZES, num_layers=3)
    yield state(name, **SIZES, num_layers=2, direction="bidirect")
    yield state(name, **SIZES, bias_hh_attr=False)
    yield layer(name, t(2, 5, 3), **SIZES, direction="backward")
    yield layer(name, t(2, 5, 4), **SIZES)


def _wrappers() -> Iterator[Case]:
    for cell in ("SimpleRNNCell", "GRUCell", "LSTMCell"):
        made = ("make", f"nn.{cell}", SIZES)
        yield layer("nn.RNN", t(2, 5, 3), cell=made)
        yield layer("nn.RNN", t(2, 5, 3), None, LENGTHS, cell=made, is_reverse=True)
        yield layer("nn.RNN", t(5, 2, 3), cell=made, time_major=True)
        yield layer("nn.BiRNN", t(2, 5, 3), None, LENGTHS, cell_fw=made, cell_bw=made)
    yield script("own_cell", t(2, 4, 3))
    yield script("own_cell", t(2, 4, 3), lengths=[1, 3])


def _decoding() -> Iterator[Case]:
    yield call("nn.functional.gather_tree", t(4, 2, 3, dtype="int64", low=0, high=9),
               t(4, 2, 3, dtype="int64", low=0, high=3))  # fmt: skip
    yield script("beam_search", t(3, 4), t(6, 4), t(4, 6), steps=5)
    yield script("beam_search", t(3, 4), t(6, 4), t(4, 6), steps=8, end=4, time_major=True)
    yield script("greedy", t(3, 4), t(6, 4), t(4, 6), impute=False)
    yield script("greedy", t(3, 4), t(6, 4), t(4, 6), impute=True)
