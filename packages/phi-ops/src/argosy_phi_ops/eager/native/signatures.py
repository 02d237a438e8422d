"""Reading the arguments of a call as words, as native code reads them: calls that read alike are alike.

A tensor is its type, a number its class and value, a list, tuple or slice its class, its length and its items. Of other
objects only those count that never change, by their identity. Names of keywords come before their values.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from argosy_tensorcore.dtype import DType
from argosy_tensorcore.storage import ArrayType
from argosy_tensorcore.tensor import Tensor

__all__ = ["CallSignature", "hash_words", "place_of", "read"]

_BY_IDENTITY = frozenset({bool, str, type(None), type(...), DType})
_DIGIT = 1 << 30
_MASK = (1 << 64) - 1
_MULTIPLIER = 0x9E3779B97F4A7C15


class CallSignature(NamedTuple):
    """``words`` as native code reads them; ``types`` are those of the tensors in order; ``kept`` are objects whose
    addresses are words."""

    words: tuple[int, ...]
    types: tuple[ArrayType, ...]
    kept: tuple[Any, ...]


class _UnreadableArgument(Exception):
    """An argument that native code must not tell apart by what it reads."""


def read(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> CallSignature | None:
    """The reading of a call; None where there is none."""
    words: list[int] = []
    types: list[ArrayType] = []
    kept: list[Any] = []
    try:
        for x in arguments:
            _add(x, words, types, kept)
        for pair in keywords.items():
            for x in pair:
                _add(x, words, types, kept)
    except (_UnreadableArgument, AttributeError):
        return None
    return CallSignature(tuple(words), tuple(types), tuple(kept))


def _add(x: Any, words: list[int], types: list[ArrayType], kept: list[Any]) -> None:
    kind = type(x)
    if kind is Tensor:
        known = x.payload.array_type
        types.append(known)
        kept.append(known)
        words.append(id(known))
    elif kind is int:
        if not -_DIGIT < x < _DIGIT:
            raise _UnreadableArgument
        words += (id(int), x & _MASK)
    elif kind is float:
        words += (id(float), struct.unpack("<Q", struct.pack("<d", x))[0])
    elif kind is list or kind is tuple:
        words += (id(kind), len(x))
        for item in x:
            _add(item, words, types, kept)
    elif kind is slice:
        words.append(id(slice))
        for item in (x.start, x.stop, x.step):
            _add(item, words, types, kept)
    elif kind in _BY_IDENTITY:
        words.append(id(x))
        kept.append(x)
    else:
        raise _UnreadableArgument


def hash_words(callee: int, words: Sequence[int]) -> int:
    """The number by which native code finds the plan of a call."""
    mixed = callee
    for word in words:
        mixed = (mixed ^ word) * _MULTIPLIER & _MASK
    return mixed


def place_of(number: int, places: int) -> int:
    """Which of ``places``, a power of two, follows from a number: its highest bits, where all words are mixed."""
    return number >> 65 - places.bit_length()
