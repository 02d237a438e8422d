"""The test dialect: a few operations with known properties, so that tests of passes need no real
operators."""

from __future__ import annotations

from argosy_pir.attributes import Dense
from argosy_pir.dialect import Dialect
from argosy_pir.folding import constant_of
from argosy_pir.opdef import COMMUTATIVE, EFFECT, PURE, TERMINATOR, OpDef
from argosy_pir.scalars import decode_scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from argosy_pir.core import Operation, Region
    from argosy_pir.types import Type
    from argosy_pir.values import Value


def _same_type(types: Sequence[Type], attributes: Mapping[str, Any], regions: Sequence[Region]) -> Iterable[Type]:
    if any(type != types[0] for type in types):
        raise TypeError(f"operands should be of one type, got {', '.join(map(str, types))}")
    return types[:1]


def _splat(value: Value) -> Any:
    """The number in every element of ``value``, or None."""
    data = constant_of(value)
    return decode_scalar(data.data, data.type.dtype) if data is not None and data.is_splat else None


def _fold_add(op: Operation) -> Value | Dense | None:
    x, y = op.operands
    a, b = _splat(x), _splat(y)
    if b == 0:
        return x
    if a is None or b is None:
        return None
    constant = constant_of(x)
    assert constant is not None
    try:
        return Dense.splat(constant.type, a + b)
    except ValueError:  # an integer sum that overflows is left to run time
        return None


def _patterns() -> list[Any]:
    from argosy_pir.rewrite.declarative import any_value, op, rule

    x = any_value("x")
    return [rule("negate-twice", op("test.neg", op("test.neg", x)), x)]


DIALECT = Dialect(
    "test",
    [
        OpDef("test.add", ["x", "y"], traits=[PURE, COMMUTATIVE], infer=_same_type, fold=_fold_add),
        OpDef("test.sub", ["x", "y"], traits=[PURE], infer=_same_type),
        OpDef("test.neg", ["x"], traits=[PURE], infer=_same_type),
        OpDef("test.pure", ["*operands"], results=None, traits=[PURE], regions=None),
        OpDef("test.effect", ["*operands"], results=None, traits=[EFFECT], regions=None),
        OpDef("test.end", ["*operands"], results=0, traits=[TERMINATOR]),
        OpDef("test.typed", ["x", "y?"], {"axis": "int", "axes": "ints?", "dtype": "dtype?"}, 1, [PURE]),
    ],
    patterns=_patterns,
)
