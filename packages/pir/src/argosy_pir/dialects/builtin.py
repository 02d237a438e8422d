"""The builtin dialect: constants, returns, calls, and casts between types that nobody has lowered yet."""

from __future__ import annotations

from argosy_pir.attributes import Dense
from argosy_pir.dialect import Dialect
from argosy_pir.errors import VerifyError
from argosy_pir.opdef import CONSTANT, PURE, SYMBOL, TERMINATOR, OpDef
from argosy_pir.program import program_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from argosy_pir.core import Operation, Region
    from argosy_pir.types import Type


def _constant_type(
    operand_types: Sequence[Type], attributes: Mapping[str, Any], regions: Sequence[Region]
) -> Iterable[Type]:
    value = attributes.get("value")
    if not isinstance(value, Dense):
        raise TypeError(f"attribute 'value' of a constant is a Dense, got {value!r}")
    return (value.type,)


def _fold_constant(op: Operation) -> Dense:
    value = op.attributes["value"]
    assert isinstance(value, Dense)
    return value


def _verify_call(op: Operation) -> None:
    """The callee's types are compared only inside a program: a call under construction has none yet."""
    program = program_of(op)
    if program is None:
        return
    name = op.attributes["callee"].name
    function = program.functions.get(name)
    if function is None:
        raise VerifyError(f"there is no function @{name} in program '{program.name}'", op)
    expected = function.type
    given = tuple(v.type for v in op.operands), tuple(r.type for r in op.results)
    if given != (expected.inputs, expected.results):
        raise VerifyError(f"@{name} has type {expected}", op)


DIALECT = Dialect(
    "builtin",
    [
        OpDef(
            "builtin.constant",
            attributes={"value": "dense"},
            traits=[PURE, CONSTANT],
            infer=_constant_type,
            fold=_fold_constant,
        ),
        OpDef("builtin.return", ["*values"], results=0, traits=[TERMINATOR]),
        OpDef(
            "builtin.call",
            ["*arguments"],
            {"callee": "symbol"},
            results=None,
            traits=[SYMBOL],
            verify=_verify_call,
        ),
        OpDef("builtin.unrealized_cast", ["*values"], results=None, traits=[PURE]),
    ],
)
