"""Nests of tensors (lists, tuples, named tuples, dictionaries): what cells and decoders carry from step to step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["flatten", "map_structure", "pack_as"]


def flatten(nest: Any) -> list[Any]:
    """The leaves in order; those of a dictionary by sorted keys."""
    if isinstance(nest, dict):
        return [leaf for key in sorted(nest) for leaf in flatten(nest[key])]
    if isinstance(nest, (list, tuple)):
        return [leaf for item in nest for leaf in flatten(item)]
    return [nest]


def pack_as(nest: Any, leaves: Sequence[Any]) -> Any:
    """``leaves`` in the structure of ``nest``. Raises ValueError when their number differs. Returns a nest."""
    if not isinstance(leaves, Sequence):
        raise TypeError(f"argument 'leaves' (or 'flat_sequence') must be a sequence, got {leaves!r:.80}")
    if len(leaves) != (count := len(flatten(nest))):
        raise ValueError(f"a nest of {count} leaves cannot hold {len(leaves)}")
    return _pack(nest, iter(leaves))


def _pack(nest: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(nest, dict):
        found = {key: _pack(nest[key], leaves) for key in sorted(nest)}
        return {key: found[key] for key in nest}
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return type(nest)(*(_pack(item, leaves) for item in nest))
    if isinstance(nest, (list, tuple)):
        return type(nest)(_pack(item, leaves) for item in nest)
    return next(leaves)


def map_structure(function: Callable[..., Any], *nests: Any) -> Any:
    """``function`` of the leaves at the same place of every nest, in the structure of the first. Returns a nest."""
    if not callable(function):
        raise TypeError(f"map_structure(): argument 'function' must be a function, got {function!r:.80}")
    columns = zip(*(flatten(nest) for nest in nests), strict=True)
    return pack_as(nests[0], [function(*column) for column in columns])
