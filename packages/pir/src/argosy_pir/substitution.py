"""Other sizes in place of symbols, throughout a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy_pir.attributes import Attributes, Dense
from argosy_pir.core import Operation
from argosy_pir.dims import Dim, SymExpr
from argosy_pir.program import Program
from argosy_pir.types import TensorType, Type

__all__ = ["substitute_in_attribute", "substitute_in_operation", "substitute_in_type", "substitute_sizes"]


def substitute_sizes(program: Program, sizes: Mapping[str, Dim]) -> None:
    """Put other sizes in place of symbols, by their names, throughout ``program``."""
    for argument in program.block.arguments:
        argument.type = substitute_in_type(argument.type, sizes)
    for op in program.block:
        substitute_in_operation(op, sizes)


def substitute_in_operation(outer: Operation, sizes: Mapping[str, Dim]) -> None:
    """Put other sizes in place of symbols in the types and attributes of an operation, and within its regions."""
    for op in outer.walk():
        for result in op.results:
            result.type = substitute_in_type(result.type, sizes)
        op.attributes = Attributes(
            {name: substitute_in_attribute(value, sizes) for name, value in op.attributes.items()}
        )
        for block in (block for region in op.regions for block in region.blocks):
            for argument in block.arguments:
                argument.type = substitute_in_type(argument.type, sizes)


def substitute_in_type(type: Type, sizes: Mapping[str, Dim]) -> Type:
    """The type with other sizes in place of symbols."""
    if not isinstance(type, TensorType) or type.is_static:
        return type
    return TensorType(tuple([_in_size(n, sizes) for n in type.shape]), type.dtype)


def _in_size(n: Dim, sizes: Mapping[str, Dim]) -> Dim:
    return n.substitute(sizes) if isinstance(n, SymExpr) else n


def substitute_in_attribute(value: Any, sizes: Mapping[str, Dim]) -> Any:
    """The attribute, a size among others, with other sizes in place of symbols."""
    if isinstance(value, SymExpr):
        return value.substitute(sizes)
    if isinstance(value, (tuple, list)):
        return type(value)(substitute_in_attribute(item, sizes) for item in value)
    if isinstance(value, Dense):
        return Dense(substitute_in_type(value.type, sizes), value.data)  # type: ignore[arg-type]
    return value
