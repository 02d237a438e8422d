"""Patterns written as expressions: a tree of operations to find, and one to put in its place.

>>> x, p, q = any_value("x"), attribute("p"), attribute("q")
>>> rule(
...     "transpose-twice",
...     op("prim.transpose", op("prim.transpose", x, permutation=p), permutation=q),
...     op("prim.transpose", x, permutation=computed(lambda m: tuple(m["p"][i] for i in m["q"]))),
... )
<Pattern transpose-twice>

A name that occurs twice must match the same value (or equal attributes). Operands of commutative operations
match in either order. Inner operations have one result.
"""

from __future__ import annotations

from argosy_pir.attributes import attribute_key
from argosy_pir.dialect import has_trait
from argosy_pir.errors import DialectError
from argosy_pir.folding import constant_of
from argosy_pir.opdef import COMMUTATIVE
from argosy_pir.rewrite.pattern import Pattern, Rewriter
from argosy_pir.scalars import decode_scalar
from argosy_pir.values import OpResult, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from argosy_pir.attributes import Attribute
    from argosy_pir.core import Operation
    from argosy_pir.types import Type

    Match = dict[str, Any]


class _ValueVariable:
    __slots__ = ("name", "where")

    def __init__(self, name: str, where: Callable[[Value], bool] | None) -> None:
        self.name = name
        self.where = where

    def match(self, value: Value, found: Match) -> bool:
        if self.name in found:
            return found[self.name] is value
        if self.where is not None and not self.where(value):
            return False
        found[self.name] = value
        return True

    def build(self, rewriter: Rewriter, found: Match, type: Type | None) -> Value:
        value = found[self.name]
        assert isinstance(value, Value)
        return value


class _AttributeVariable:
    __slots__ = ("name", "where")

    def __init__(self, name: str, where: Callable[[Attribute], bool] | None) -> None:
        self.name = name
        self.where = where

    def match(self, value: Attribute, found: Match) -> bool:
        if self.name in found:
            return bool(attribute_key(found[self.name]) == attribute_key(value))
        if self.where is not None and not self.where(value):
            return False
        found[self.name] = value
        return True


class _ComputedAttribute:
    __slots__ = ("function",)

    def __init__(self, function: Callable[[Match], Attribute]) -> None:
        self.function = function


class _Splat:
    __slots__ = ("number",)

    def __init__(self, number: Any) -> None:
        self.number = number

    def match(self, value: Value, found: Match) -> bool:
        data = constant_of(value)
        if data is None or not data.is_splat:
            return False
        return bool(decode_scalar(data.data, data.type.dtype) == self.number)

    def build(self, rewriter: Rewriter, found: Match, type: Type | None) -> Value:
        if type is None:
            raise DialectError("a splat below the top of a replacement has no type of its own; compute it")
        return rewriter.constant(type, self.number)


class _Operation:
    __slots__ = ("attributes", "name", "operands", "type")

    def __init__(self, name: str, operands: tuple[Any, ...], attributes: Mapping[str, Any], type: Any) -> None:
        self.name = name
        self.operands = operands
        self.attributes = dict(attributes)
        self.type = type

    def match(self, value: Value, found: Match) -> bool:
        return isinstance(value, OpResult) and len(value.op.results) == 1 and self.match_operation(value.op, found)

    def match_operation(self, op: Operation, found: Match) -> bool:
        if op.name != self.name or len(op.operands) != len(self.operands):
            return False
        for name, wanted in self.attributes.items():
            if name not in op.attributes or not _match_attribute(wanted, op.attributes[name], found):
                return False
        return self._match_operands(op, op.operands, found)

    def _match_operands(self, op: Operation, operands: tuple[Value, ...], found: Match) -> bool:
        if self._match_in_order(operands, found):
            return True
        if len(operands) < 2 or not has_trait(op, COMMUTATIVE):
            return False
        return self._match_in_order((operands[1], operands[0], *operands[2:]), found)

    def _match_in_order(self, operands: tuple[Value, ...], found: Match) -> bool:
        trial = dict(found)
        if not all(p.match(v, trial) for p, v in zip(self.operands, operands, strict=True)):
            return False
        found.update(trial)
        return True

    def build(self, rewriter: Rewriter, found: Match, type: Type | None) -> Value:
        operands = [operand.build(rewriter, found, None) for operand in self.operands]
        attributes = {name: _build_attribute(value, found) for name, value in self.attributes.items()}
        own = self.type(found) if callable(self.type) else self.type
        return rewriter.create(self.name, operands, attributes, None if own is None else (own,)).result


class _Rule(Pattern):
    def __init__(
        self,
        name: str,
        match: _Operation,
        replacement: Any,
        benefit: int,
        where: Callable[[Match], bool] | None,
    ) -> None:
        self.name = name
        self.root = match.name
        self.benefit = benefit
        self._match = match
        self._replacement = replacement
        self._where = where

    def rewrite(self, op: Operation, rewriter: Rewriter) -> bool:
        found: Match = {"root": op}
        if len(op.results) != 1 or not self._match.match_operation(op, found):
            return False
        if self._where is not None and not self._where(found):
            return False
        value = self._replacement.build(rewriter, found, op.result.type)
        if value.type != op.result.type:
            raise DialectError(f"rule '{self.name}' replaces {op.result.type} by {value.type}")
        rewriter.replace(op, [value])
        return True


def any_value(name: str, where: Callable[[Value], bool] | None = None) -> _ValueVariable:
    """Any value for which ``where`` holds, known as ``name`` from then on."""
    return _ValueVariable(name, where)


def attribute(name: str, where: Callable[[Attribute], bool] | None = None) -> _AttributeVariable:
    """Any attribute value for which ``where`` holds, known as ``name`` from then on."""
    return _AttributeVariable(name, where)


def computed_attribute(function: Callable[[Match], Attribute]) -> _ComputedAttribute:
    """In a replacement: an attribute computed from what matched (names to values and attributes)."""
    return _ComputedAttribute(function)


def splat(number: Any) -> _Splat:
    """A constant whose elements are all ``number``; as a whole replacement, such a constant of the root's
    type."""
    return _Splat(number)


def op(name: str, *operands: Any, type: Any = None, **attributes: Any) -> _Operation:
    """An operation with these operands. Attributes given must match; in a replacement they are the
    attributes.

    ``type`` is for replacements of operations that do not infer theirs: a type, or a function of what
    matched.
    """
    return _Operation(name, operands, attributes, type)


def rule(
    name: str,
    match: _Operation,
    replacement: Any,
    benefit: int = 1,
    where: Callable[[Match], bool] | None = None,
) -> Pattern:
    """The pattern that replaces ``match`` by ``replacement`` where ``where`` holds for what matched.

    What matched is a dict of the names in the expression, plus ``"root"``, the operation at the top.
    """
    return _Rule(name, match, replacement, benefit, where)


def _match_attribute(wanted: Any, value: Attribute, found: Match) -> bool:
    if isinstance(wanted, _AttributeVariable):
        return wanted.match(value, found)
    return bool(attribute_key(wanted) == attribute_key(value))


def _build_attribute(value: Any, found: Match) -> Attribute:
    if isinstance(value, _AttributeVariable):
        return found[value.name]
    return value.function(found) if isinstance(value, _ComputedAttribute) else value
