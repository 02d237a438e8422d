"""The ``phi`` dialect of the IR: operators, described on demand from their declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argosy_phi_ops.declare.operator import Operator, find_operator
from argosy_phi_ops.errors import OperatorError
from argosy_pir.dialect import Dialect
from argosy_pir.opdef import PURE, OpDef
from argosy_pir.types import Type

__all__ = ["DIALECT"]


def _infer(op: Operator) -> Callable[..., Sequence[Type]]:
    names = {p.name for p in op.signature.attributes} | {"segments"}

    def infer(
        operand_types: Sequence[Type], attributes: Mapping[str, Any], regions: Sequence[Any] = ()
    ) -> Sequence[Type]:
        if unknown := attributes.keys() - names:
            raise OperatorError(f"{op.name} has no attributes {sorted(unknown)}; it has {sorted(names)}")
        return op.expand(operand_types, dict(attributes)).result_types

    return infer


def _resolve(name: str) -> OpDef | None:
    op = find_operator(name.removeprefix("phi."))
    if op is None or op.opaque:
        return None
    return OpDef(name, ("*operands",), results=None, traits=(PURE,), infer=_infer(op))


def _hint(name: str) -> str:
    """What to do about a custom operator, whose name holds its namespace."""
    custom = name.removeprefix("phi.")
    if "." not in custom:
        return ""
    return f"; {custom!r} is a custom operator: import the module that declares it with custom_op first"


DIALECT = Dialect("phi", resolve=_resolve, hint=_hint)
"""The dialect of all operators."""
