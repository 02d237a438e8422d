"""Cases with one argument spoiled: what no call should take, or what a call may take only with care.

Each argument of a case is replaced by what a user might give by mistake: a tensor of another dtype, rank or size, None
in its place; integers, axes and sizes out of range, negative or of another type; lists of another length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from parity.case import Case
from parity.inputs import Input

__all__ = ["spoiled"]

_FAR = 31
"""An axis, index or size that no case has."""


def spoiled(case: Case) -> Iterator[tuple[str, Case]]:
    """``case`` with one argument spoiled, in all ways, each with words that say how."""
    for field in ("args", "inputs"):
        given = getattr(case, field)
        for at, value in enumerate(given):
            for how, wrong in _spoilings(value):
                yield f"{field}[{at}] {how}", replace(case, **{field: (*given[:at], wrong, *given[at + 1 :])})
    for name, value in case.kwargs.items():
        for how, wrong in _spoilings(value):
            yield f"{name} {how}", replace(case, kwargs={**case.kwargs, name: wrong})


def _spoilings(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Input):
        yield from _tensors(value)
    elif isinstance(value, (bool, str)):
        yield from (("is another name", "unknown"), ("is an empty list", []))
    elif isinstance(value, int):
        yield from (("is far", _FAR), ("is far below", -_FAR), ("is a fraction", 1.5), ("is text", "text"))
        yield from (("is None", None), ("is a list", [1, 2, 3]))
    elif isinstance(value, float):
        yield from (("is text", "text"), ("is None", None), ("is a list", [1.0, 2.0]), ("is negative", -9.5))
    elif isinstance(value, (list, tuple)) and value[:1] != ("make",):
        yield from _lists(value)


def _tensors(value: Input) -> Iterator[tuple[str, Any]]:
    yield "is None", None
    yield "is text", "text"
    for dtype in ("bool", "int64", "float32", "complex64"):
        if dtype != value.dtype and not (dtype == "float32" and value.dtype == "float64"):
            yield f"is {dtype}", _drawn(value, value.shape, dtype)
    yield "has a rank more", _drawn(value, (*value.shape, 2))
    if value.shape:
        yield "has no rank", _drawn(value, ())
        yield "has a rank less", _drawn(value, value.shape[1:])
        yield "is longer", _drawn(value, (*value.shape[:-1], value.shape[-1] + 1))
        yield "is empty", _drawn(value, (*value.shape[:-1], 0))
        yield "has more rows", _drawn(value, (value.shape[0] + 1, *value.shape[1:]))
    if value.dtype.startswith("int"):
        yield "is far", replace(value, values=None, low=_FAR, high=_FAR + 5)
        yield "is far below", replace(value, values=None, low=-_FAR, high=5 - _FAR)


def _drawn(value: Input, shape: tuple[int, ...], dtype: str = "") -> Input:
    if value.values is not None:
        low, high = (min(value.values), max(value.values)) if value.dtype.startswith("int") and value.values else (0, 2)
        value = replace(value, values=None, low=float(low), high=float(high + 1))
    return replace(value, shape=shape, layout="", dtype=dtype or value.dtype)


def _lists(value: list[Any] | tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    yield "is empty", kind()
    yield "is None", None
    yield "is text", "text"
    if value:
        yield "is longer", kind([*value, value[-1]])
        yield "is shorter", kind(value[:-1])
    if value and all(type(v) is int for v in value):
        yield "is far", kind([_FAR] * len(value))
        yield "is far below", kind([-_FAR] * len(value))
        yield "holds fractions", kind([1.5] * len(value))
        yield "holds None", kind([None] * len(value))
        yield "holds text", kind(["text"] * len(value))
        yield "is a number", 1.5
    elif value:
        for how, wrong in _spoilings(value[-1]):
            yield f"[-1] {how}", kind([*value[:-1], wrong])
