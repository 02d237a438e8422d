"""Options of operators that few calls use."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import tensor as t

F = "nn.functional."


def cases() -> Iterator[Case]:
    q = t(2, 3, 2, 4)
    yield call(F + "scaled_dot_product_attention", q, q, q, dropout_p=0.5, training=False)
    yield call(F + "scaled_dot_product_attention", q, q, q, None, 1.0)
    yield call(F + "scaled_dot_product_attention", q, t(2, 5, 2, 4), t(2, 5, 2, 4), None, 1.0, training=True)
