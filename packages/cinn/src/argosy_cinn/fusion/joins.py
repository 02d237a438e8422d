"""Tensors end to end for the host, without a copy: each is made where it is to lie.

What ranks communicate together, gradients for instance, is one tensor of many. Its parts are made by kernels of their
own, which write anywhere; so memory is planned for the whole, and parts are places in it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from math import prod

from argosy_cinn.lowering.classify import CONSTANT, HOST
from argosy_cinn.shapes import nbytes, sizes
from argosy_pir.core import Operation
from argosy_pir.dims import is_static
from argosy_pir.program import Program
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import OpResult, Value

__all__ = ["find_joins", "offsets_in"]

#: Bytes that kernels take the start of a buffer to be a multiple of.
_ALIGNMENT = 64


def find_joins(program: Program, kinds: Mapping[Operation, str]) -> list[Operation]:
    """The concatenations whose parts may be made in place: they lie one after the other, aligned, none is known before
    or needed elsewhere in the memory that its place would be, and the host reads the whole."""
    taken: set[Value] = set(program.block.last.operands) if program.block.last is not None else set()
    found = []
    for op in program.block:
        if (
            op.name == "prim.concat"
            and _is_for_host(op, kinds)
            and _may_be_placed(op, kinds, taken)
            and spend("join", op)
        ):
            taken.update(op.operands)
            found.append(op)
    return found


def offsets_in(op: Operation) -> list[int]:
    """At which byte of the whole each operand of a concatenation begins."""
    starts, start = [], 0
    for operand in op.operands:
        starts.append(start)
        start += nbytes(operand)
    return starts


def _is_for_host(op: Operation, kinds: Mapping[Operation, str]) -> bool:
    users = op.result.users
    return bool(users) and all(kinds.get(user) == HOST for user in users)


def _may_be_placed(op: Operation, kinds: Mapping[Operation, str], taken: Container[Value]) -> bool:
    shape = sizes(op.result)
    if not is_static(shape) or 0 in shape or prod(shape[: op.attributes["axis"]]) != 1:
        return False
    if len(set(op.operands)) < len(op.operands) or any(start % _ALIGNMENT for start in offsets_in(op)):
        return False
    return not any(
        x in taken or not isinstance(x, OpResult) or kinds.get(x.op) in (CONSTANT, HOST) for x in op.operands
    )
