"""Sequences of tags."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call, layer
from parity.inputs import given
from parity.inputs import tensor as t


def cases() -> Iterator[Case]:
    for dtype in ("float32", "float64"):
        for tagged in (False, True):
            emission, transitions = t(3, 5, 4, dtype=dtype, grad=False), t(4, 4, dtype=dtype, grad=False)
            yield call("text.viterbi_decode", emission, transitions, given([5, 2, 1], "int64"), tagged)
            yield call("text.viterbi_decode", emission, transitions, given([3, 3, 2], "int64"), tagged)
    yield call("text.viterbi_decode", t(2, 1, 3, grad=False), t(3, 3, grad=False), given([1, 1], "int64"))
    yield call("text.viterbi_decode", t(2, 4, 3, grad=False), t(2, 3, grad=False), given([4, 1], "int64"))
    lengths = given([4, 2], "int64")
    decoder = {"transitions": t(3, 3, grad=False), "include_bos_eos_tag": False}
    yield layer("text.ViterbiDecoder", t(2, 4, 3, grad=False), lengths, **decoder)
