"""Sizes of values in programs whose sizes are all known."""

from __future__ import annotations

from math import prod

from argosy_pir.values import Value


def sizes(value: Value) -> tuple[int, ...]:
    """The shape in plain integers."""
    return value.shape  # type: ignore[return-value]  # symbolic sizes are gone by now


def count(value: Value) -> int:
    """The number of elements."""
    return prod(sizes(value))
