"""The description of one kind of operation: what it takes and gives, how it is typed, checked and folded."""

from __future__ import annotations

from sys import _getframe

from argosy_pir.attributes import Dense, FrozenDict, Symbol
from argosy_pir.dims import SymExpr
from argosy_pir.errors import DialectError, VerifyError
from argosy_pir.types import Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from argosy_pir.attributes import Attribute
    from argosy_pir.core import Operation, Region

    Infer: TypeAlias = "Callable[[Sequence[Type], Mapping[str, Attribute], Sequence[Region]], Iterable[Type]]"
    Fold: TypeAlias = "Callable[[Operation], Any]"

PURE = "pure"
"""Result depends on operands and attributes only, nothing else happens: may be merged, moved or removed. For
an operation with regions this is said of the operation itself; what its regions do counts besides."""
TERMINATOR = "terminator"
"""Ends a block."""
COMMUTATIVE = "commutative"
"""The first two operands may be exchanged."""
EFFECT = "effect"
"""Does something besides its results (also the assumption for operations that lack PURE)."""
SYMBOL = "symbol"
"""Refers to functions by Symbol attributes."""
CONSTANT = "constant"
"""Its value is its attribute ``value``."""
RETURN = "builtin.return"
"""The operation that ends programs and functions."""
TRAITS = frozenset({PURE, TERMINATOR, COMMUTATIVE, EFFECT, SYMBOL, CONSTANT})

_KINDS: dict[str, Callable[[Any], bool]] = {
    "any": lambda v: True,
    "bool": lambda v: type(v) is bool,
    "int": lambda v: type(v) is int,
    "float": lambda v: type(v) is float or type(v) is int,
    "number": lambda v: type(v) in (bool, int, float, complex),
    "str": lambda v: type(v) is str,
    "bytes": lambda v: type(v) is bytes,
    "dtype": lambda v: type(v) is str and v.isidentifier(),
    "dim": lambda v: type(v) is int or type(v) is SymExpr,
    "type": lambda v: isinstance(v, Type),
    "symbol": lambda v: type(v) is Symbol,
    "dense": lambda v: type(v) is Dense,
    "mapping": lambda v: type(v) is FrozenDict,
    "tuple": lambda v: type(v) is tuple,
}
_KINDS.update(
    {
        f"{kind}s": (lambda check: lambda v: type(v) is tuple and all(map(check, v)))(_KINDS[kind])
        for kind in ("bool", "int", "float", "str", "dim", "type", "symbol")
    }
)
ATTRIBUTE_KINDS = frozenset(_KINDS)
"""Names of attribute kinds: a plural such as ``"ints"`` is a tuple of them; a final ``?`` makes one
optional."""


class OpDef:
    """Describes operation ``name`` (``"dialect.operation"``).

    ``operands`` names the operands; the last may be ``"*rest"`` (any number) or several last ones
    ``"maybe?"``.
    ``attributes`` maps names to kinds of :data:`ATTRIBUTE_KINDS`; further attributes are allowed and
    unchecked.
    ``results`` is their number, or None for any. ``regions`` likewise.
    ``infer(operand_types, attributes, regions)`` gives the result types; it raises ``ValueError`` or
    ``TypeError`` for operands that do not fit. ``verify(op)`` checks further and raises ``VerifyError``.
    ``fold(op)`` gives, per the single result, an attribute (a constant), an existing ``Value``, or None; for
    several results a sequence of those.
    """

    __slots__ = (
        "_kinds", "_max", "_min", "attributes", "dialect", "fold", "infer", "name", "operands", "owner",
        "regions", "results", "traits", "verify",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        operands: Sequence[str] = (),
        attributes: Mapping[str, str] | None = None,
        results: int | None = 1,
        traits: Iterable[str] = (),
        infer: Infer | None = None,
        verify: Callable[[Operation], None] | None = None,
        fold: Fold | None = None,
        regions: int | None = 0,
    ) -> None:
        self.dialect, dot, _ = name.partition(".")
        if not dot or not all(part.isidentifier() for part in name.split(".")):
            raise DialectError(f"operation names are 'dialect.operation', got {name!r}")
        self.name = name
        self.operands = tuple(operands)
        self.attributes = dict(attributes or {})
        self.results = results
        self.regions = regions
        self.traits = frozenset(traits)
        self.infer = infer
        self.verify = verify
        self.fold = fold
        self.owner = _getframe(1).f_globals.get("__name__", "?")
        self._prepare()

    def _prepare(self) -> None:
        unknown = self.traits - TRAITS
        if unknown:
            raise DialectError(f"operation '{self.name}' has unknown traits {sorted(unknown)}")
        required = [name for name in self.operands if name[0] != "*" and name[-1] != "?"]
        self._min = len(required)
        self._max = None if any(n[0] == "*" for n in self.operands) else len(self.operands)
        self._kinds = []
        for name, kind in self.attributes.items():
            plain = kind.removesuffix("?")
            if plain not in _KINDS:
                raise DialectError(f"attribute '{name}' of '{self.name}' has unknown kind {kind!r}")
            self._kinds.append((name, plain, kind != plain, _KINDS[plain]))

    def infer_types(
        self, operand_types: Sequence[Type], attributes: Mapping[str, Attribute], regions: Sequence[Region]
    ) -> list[Type]:
        """The result types for these operands; ``infer`` sees them only once numbers and attributes are
        right.

        Raises ``VerifyError`` where those are not, and whatever ``infer`` raises.
        """
        problem = self._problem(len(operand_types), attributes, len(regions))
        if problem is not None:
            raise VerifyError(f"'{self.name}' ({', '.join(map(str, operand_types))}): {problem}")
        if self.infer is not None:
            return list(self.infer(operand_types, attributes, regions))
        if self.results == 0:
            return []
        raise VerifyError(f"'{self.name}' does not infer its result types; give them")

    def check(self, op: Operation, inferred: bool = False) -> None:
        """Check the numbers of operands, results and regions, attributes, types (unless ``inferred``: they come from
        this description's own rule), and ``verify``."""
        problem = self._problem(len(op._operands), op.attributes, len(op.regions))
        if problem is not None:
            raise VerifyError(problem, op)
        if self.results is not None and len(op.results) != self.results:
            raise VerifyError(f"has {self.results} results, got {len(op.results)}", op)
        if self.infer is not None and not inferred:
            self._check_types(op)
        if self.verify is not None:
            self.verify(op)

    def _problem(self, operands: int, attributes: Mapping[str, Attribute], regions: int) -> str | None:
        """What is wrong with the number of operands or regions or with an attribute, if anything."""
        if operands < self._min or (self._max is not None and operands > self._max):
            return f"takes operands ({', '.join(self.operands)}), got {operands}"
        if self.regions is not None and regions != self.regions:
            return f"has {self.regions} regions, got {regions}"
        for name, kind, optional, accepts in self._kinds:
            value = attributes.get(name, _MISSING)
            if value is _MISSING:
                if not optional:
                    return f"needs attribute '{name}' ({kind})"
            elif not accepts(value) and not (optional and value is None):
                return f"attribute '{name}' should be {kind}, got {value!r}"
        return None

    def _check_types(self, op: Operation) -> None:
        assert self.infer is not None
        try:
            expected = list(self.infer([v.type for v in op._operands], op.attributes, op.regions))
        except VerifyError:
            raise
        except (ValueError, TypeError) as error:
            raise VerifyError(str(error), op) from error
        actual = [result.type for result in op.results]
        if expected != actual:
            given, wanted = (", ".join(map(str, types)) for types in (actual, expected))
            raise VerifyError(f"gives ({given}), expected ({wanted})", op)

    def __repr__(self) -> str:
        return f"<OpDef {self.name}>"


_MISSING = object()
