"""Compiled derivatives for native code that goes back over the tape."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import prod
from typing import Any

from argosy_phi_ops.compiler import NativeCode
from argosy_phi_ops.eager.native.loading import native_library
from argosy_tensorcore.dtype import DType

__all__ = ["least_steps_back", "way_back"]

_LARGEST = 1 << 16  # bytes of an operand: the global lock is held meanwhile

Kind = tuple[DType, tuple[int, ...]]


def least_steps_back(kinds: Sequence[Kind]) -> int:
    """How many light steps of a derivative of operands and results of these ``kinds`` native code gains something for:
    one where it goes back by itself, as moving elements does, too."""
    return 1 if all(map(_is_small, kinds)) and native_library() is not None else 2


def _is_small(kind: Kind) -> bool:
    return prod(kind[1]) * kind[0].itemsize <= _LARGEST


def way_back(
    code: NativeCode, operands: Sequence[Kind], result: Kind, saved: Sequence[int], reads: bool, given: Sequence[int]
) -> tuple[Any, ...] | None:
    """What native code reads to go back by the derivative ``code`` through an operator with ``operands`` and one
    ``result``, with what that names: its inputs are entries ``saved`` of what the node saves, then the result's
    gradient where it ``reads`` that; it makes the gradients of the operands ``given``. None where native code leaves
    that to Python."""
    made = native_library()
    inputs = len(saved) + reads
    if made is None or len(code.table) > made.build.table or code.arena > made.build.scratch:
        return None
    if not 0 < len(given) <= made.build.gradients or code.output != 1 + inputs:
        return None
    if not all(map(_is_small, (*operands, result))):
        return None
    table = array("q", [*code.table, *[0] * (made.build.table - len(code.table))])
    table[0] = made.addresses["scratch"] if code.arena else 0
    kinds = [operands[i] for i in given]
    dtypes, shapes = [dtype.numpy for dtype, _ in kinds], [shape for _, shape in kinds]
    places = array("q", saved or [0])
    outputs = array("q", [word for i, s, d in zip(given, shapes, dtypes, strict=True) for word in (i, id(s), id(d))])
    words = {
        "kernel": code.address, "table": table.buffer_info()[0], "output": code.output, "saved": len(saved),
        "places": places.buffer_info()[0], "reads": int(reads), "gradients": len(given),
        "outputs": outputs.buffer_info()[0],
    }  # fmt: skip
    record = bytearray(array("q", [words[word] for word in made.build.back_words]))
    return record, code, table, dtypes, shapes, places, outputs
