"""Options of operators that few calls use."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

F = "nn.functional."


def cases() -> Iterator[Case]:
    yield from _attention()
    yield from _widths()


def _widths() -> Iterator[Case]:
    """Tensors without axes whose dtype is wider than that of the others."""
    x, wide = t(2, 3), given(0.5, "float64")
    for name in ("maximum", "minimum", "fmax", "fmin", "atan2", "floor_divide", "logaddexp", "outer", "nextafter"):
        grad = name != "nextafter"
        yield call(name, t(2, 3, grad=grad), given(0.5, "float64", grad=grad))
    for name in ("add", "multiply", "subtract", "divide", "remainder", "hypot"):
        yield call(name, x, wide)
    yield call("maximum", wide, x)
    yield call("where", given([[True], [False]], "bool"), x, wide)
    yield call("floor_divide", t(2, 3, dtype="int32", low=1, high=9), given(2, "int64"))


def _attention() -> Iterator[Case]:
    q = t(2, 3, 2, 4)
    yield call(F + "scaled_dot_product_attention", q, q, q, dropout_p=0.5, training=False)
    yield call(F + "scaled_dot_product_attention", q, q, q, None, 1.0)
    yield call(F + "scaled_dot_product_attention", q, t(2, 5, 2, 4), t(2, 5, 2, 4), None, 1.0, training=True)
