"""Symbolic sizes: integer polynomials over symbols, with floor division, modulus, minimum and maximum.

A size is a ``Dim``: an ``int`` where it is known, else a :class:`SymExpr`. Expressions are kept in one
canonical form and hash-consed, so two expressions that normalise alike are the same object and ``==`` is
``is``. Arithmetic that comes out constant gives a plain ``int``. Division follows Python: it rounds towards
minus infinity. The latest results of arithmetic are remembered; other expressions live as long as they are used.
"""

from __future__ import annotations

from _thread import allocate_lock
from functools import lru_cache
from operator import index
from weakref import WeakValueDictionary

from argosy_pir.comparisons import observers, tell_observer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    Dim: TypeAlias = "int | SymExpr"
    Monomial: TypeAlias = "tuple[Atom, ...]"
else:
    Dim = "int | SymExpr"

MAX_TERMS = 100  # larger polynomials are a mistake or an attack, never a tensor's size
MAX_DEGREE = 64
#: So many results of each kind of arithmetic are remembered: compilers ask the same of every kernel of a program.
_KEPT_RESULTS = 4096
_lock = allocate_lock()


class Atom:
    """An indivisible factor: a symbol, or one of ``floordiv``, ``mod``, ``min`` and ``max`` over
    expressions."""

    __slots__ = ("__weakref__", "arguments", "kind", "text")
    kind: str
    arguments: tuple[Any, ...]
    text: str

    def evaluate(self, values: Mapping[str, Dim]) -> Dim:
        """This factor with symbols replaced by ``values``; symbols without a value stay."""
        if self.kind == "symbol":
            return values.get(self.arguments[0], _from_atom(self))
        first, *others = (_substitute(argument, values) for argument in self.arguments)
        for other in others:
            first = _APPLY[self.kind](first, other)
        return first

    def symbols(self) -> frozenset[str]:
        """Names of the symbols in it."""
        if self.kind == "symbol":
            return frozenset(self.arguments)
        return frozenset().union(*(a.symbols for a in self.arguments if isinstance(a, SymExpr)))


class SymExpr:
    """A size known only by its formula, such as ``2*s0 + 1``; immutable, hashable by identity.

    ``terms`` maps products of atoms (sorted tuples) to integer coefficients, in canonical order.
    """

    __slots__ = ("__weakref__", "_text", "terms")
    terms: tuple[tuple[Monomial, int], ...]
    _text: str

    @staticmethod
    def symbol(name: str) -> SymExpr:
        """The expression that is just the symbol ``name`` (an identifier)."""
        if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or name in _APPLY:
            raise ValueError(f"symbol names are ASCII identifiers other than min and max, got {name!r}")
        return _from_atom(_atom("symbol", (name,)))

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols it depends on."""
        return frozenset().union(*(atom.symbols() for monomial, _ in self.terms for atom in monomial))

    @property
    def sort_key(self) -> tuple[int, str]:
        """A total order on expressions, the one in which canonical text lists them."""
        return (len(self._text), self._text)

    def substitute(self, values: Mapping[str, Dim]) -> Dim:
        """The expression with the named symbols replaced; symbols not named stay."""
        total: Dim = 0
        for monomial, coefficient in self.terms:
            product: Dim = coefficient
            for atom in monomial:
                product = product * atom.evaluate(values)
            total = total + product
        return total

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The number it stands for; raises ``ValueError`` naming the symbols that have no value."""
        result = self.substitute(values)
        if isinstance(result, SymExpr):
            missing = ", ".join(sorted(result.symbols))
            raise ValueError(f"cannot evaluate {self}: no value for {missing}")
        return result

    def __add__(self, other: Dim) -> Dim:
        return NotImplemented if not _is_dim(other) else _add(self, _as_plain(other), 1)

    __radd__ = __add__

    def __sub__(self, other: Dim) -> Dim:
        return NotImplemented if not _is_dim(other) else _add(self, _as_plain(other), -1)

    def __rsub__(self, other: Dim) -> Dim:
        return NotImplemented if not _is_dim(other) else _add(_as_plain(other), self, -1)

    def __neg__(self) -> Dim:
        return _scale(self, -1)

    def __mul__(self, other: Dim) -> Dim:
        return NotImplemented if not _is_dim(other) else _multiply(self, _as_plain(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return NotImplemented if not _is_dim(other) else floor_div(self, other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return NotImplemented if not _is_dim(other) else floor_div(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return NotImplemented if not _is_dim(other) else modulo(self, other)

    def __rmod__(self, other: Dim) -> Dim:
        return NotImplemented if not _is_dim(other) else modulo(other, self)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same expression; see :mod:`.comparisons`."""
        if self is other:
            return True
        if observers and _may_equal(self, other):
            tell_observer()
        return False

    def __hash__(self) -> int:
        if observers:
            tell_observer()
        return id(self) >> 4

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"SymExpr({self._text})"

    __array_ufunc__ = None  # numpy's integers leave arithmetic to us

    def __copy__(self) -> SymExpr:
        return self

    def __deepcopy__(self, memo: object) -> SymExpr:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (tuple((tuple(map(_pickle_atom, m)), c) for m, c in self.terms),)


def _may_equal(a: SymExpr, other: object) -> bool:
    if not isinstance(other, (int, SymExpr)):
        return False
    low, high = dim_bounds(a - other)
    return (low is None or low <= 0) and (high is None or high >= 0)


_atoms: WeakValueDictionary[tuple[Any, ...], Atom] = WeakValueDictionary()
_expressions: WeakValueDictionary[tuple[Any, ...], SymExpr] = WeakValueDictionary()


def floor_div(a: Dim, b: Dim) -> Dim:
    """``a // b``. Exact quotients of polynomials simplify, taking divisors to be non-zero."""
    return _floor_div(_as_plain(a), _as_plain(b))


@lru_cache(_KEPT_RESULTS)
def _floor_div(a: Dim, b: Dim) -> Dim:
    _check_divisor(a, b)
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    quotient, rest = _divide(a, b)
    if isinstance(rest, int) and rest == 0:
        return quotient
    if isinstance(rest, int) and isinstance(b, int):
        return quotient + rest // b
    if isinstance(b, int):
        return quotient + _from_atom(_atom("floordiv", (rest, b)))
    return _from_atom(_atom("floordiv", (a, b)))


def modulo(a: Dim, b: Dim) -> Dim:
    """``a % b``, with the sign of ``b`` as in Python; terms that ``b`` divides drop out."""
    return _modulo(_as_plain(a), _as_plain(b))


@lru_cache(_KEPT_RESULTS)
def _modulo(a: Dim, b: Dim) -> Dim:
    _check_divisor(a, b)
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    _, rest = _divide(a, b)
    if isinstance(rest, int) and rest == 0:
        return 0
    if isinstance(rest, int) and isinstance(b, int):
        return rest % b
    return _from_atom(_atom("mod", (rest if isinstance(b, int) else a, b)))


def minimum(a: Dim, b: Dim) -> Dim:
    """The smaller of two sizes."""
    return _extremum("min", _as_plain(a), _as_plain(b))


def maximum(a: Dim, b: Dim) -> Dim:
    """The larger of two sizes."""
    return _extremum("max", _as_plain(a), _as_plain(b))


_APPLY = {"floordiv": floor_div, "mod": modulo, "min": minimum, "max": maximum}


def is_static(shape: Iterable[Dim]) -> bool:
    """Whether every size in ``shape`` is a plain number."""
    return all(isinstance(size, int) for size in shape)


def dim_product(shape: Iterable[Dim]) -> Dim:
    """The product of the sizes, 1 for an empty shape."""
    total: Dim = 1
    for size in shape:
        total = total * size
    return total


def evaluate_dim(size: Dim, values: Mapping[str, int]) -> int:
    """``size`` as a number, for ints and expressions alike."""
    return size if isinstance(size, int) else size.evaluate(values)


def dim_symbols(size: Dim) -> frozenset[str]:
    """The symbols in ``size``; none for a number."""
    return frozenset() if isinstance(size, int) else size.symbols


def dim_bounds(size: Dim) -> tuple[int | None, int | None]:
    """Between which numbers ``size`` lies for all sizes of its symbols (0 and more), by interval arithmetic; None where
    no end is found.

    >>> dim_bounds(minimum(SymExpr.symbol("s0"), 2) - 1)
    (-1, 1)
    """
    ends: list[int | None] = [0, 0]
    for monomial, coefficient in _terms(size):
        of_term = _monomial_bounds(monomial)
        scaled = [None if end is None else coefficient * end for end in of_term]
        for i, end in enumerate(scaled if coefficient > 0 else reversed(scaled)):
            total = ends[i]
            ends[i] = None if end is None or total is None else total + end
    return ends[0], ends[1]


def _monomial_bounds(monomial: Monomial) -> tuple[int | None, int | None]:
    ends: list[int | None] = [1, 1]
    factors = [_atom_bounds(atom) for atom in monomial]
    if len(factors) == 1:
        return factors[0]
    for least, most in factors:
        if least is None or least < 0:
            return None, None
        ends = [None if a is None or b is None else a * b for a, b in zip(ends, (least, most), strict=True)]
    return ends[0], ends[1]


def _atom_bounds(atom: Atom) -> tuple[int | None, int | None]:
    if atom.kind == "symbol":
        return 0, None
    lows, highs = zip(*map(dim_bounds, atom.arguments), strict=True)
    if atom.kind in ("min", "max"):
        choose = min if atom.kind == "min" else max
        loose, tight = (lows, highs) if atom.kind == "min" else (highs, lows)  # the end that every operand must have
        known = [end for end in tight if end is not None]
        ends = (None if None in loose else choose(loose), choose(known) if known else None)
        return ends if atom.kind == "min" else ends[::-1]
    divisor = atom.arguments[1]
    if not isinstance(divisor, int) or divisor < 1:
        return None, None
    if atom.kind == "mod":
        return 0, divisor - 1
    return tuple(None if end is None else end // divisor for end in (lows[0], highs[0]))  # type: ignore[return-value]


def _is_dim(x: object) -> bool:
    return isinstance(x, (int, SymExpr)) or hasattr(x, "__index__")


def _as_plain(x: Dim) -> Dim:
    """Integers of other kinds, such as numpy's, as plain ones."""
    return x if isinstance(x, (int, SymExpr)) else index(x)


def _substitute(x: Dim, values: Mapping[str, Dim]) -> Dim:
    return x if isinstance(x, int) else x.substitute(values)


def _check_divisor(a: Dim, b: Dim) -> None:
    if isinstance(b, int) and b == 0:
        raise ZeroDivisionError(f"size {a} divided by zero")


def _terms(x: Dim) -> Sequence[tuple[Monomial, int]]:
    if isinstance(x, SymExpr):
        return x.terms
    return (((), index(x)),) if x else ()


@lru_cache(_KEPT_RESULTS)
def _add(a: Dim, b: Dim, sign: int) -> Dim:
    total = dict(_terms(a))
    for monomial, coefficient in _terms(b):
        total[monomial] = total.get(monomial, 0) + sign * coefficient
    return _intern(total)


def _scale(a: Dim, factor: int) -> Dim:
    return _intern({monomial: factor * coefficient for monomial, coefficient in _terms(a)})


@lru_cache(_KEPT_RESULTS)
def _multiply(a: Dim, b: Dim) -> Dim:
    total: dict[Monomial, int] = {}
    left, right = _terms(a), _terms(b)
    if len(left) * len(right) > MAX_TERMS * 16:
        raise ValueError(f"a product of {len(left)} and {len(right)} terms is too large for a size")
    for m, c in left:
        for n, d in right:
            product = tuple(sorted(m + n, key=_atom_key)) if m and n else m + n
            total[product] = total.get(product, 0) + c * d
    return _intern(total)


def _divide(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """Polynomial long division in the canonical order: ``a == quotient * b + rest``."""
    if isinstance(b, int):
        return _divide_by_number(a, b)
    lead, leading = _terms(b)[0]
    quotient: Dim = 0
    rest = a
    for _ in range(len(_terms(a)) + 8):
        head = _terms(rest)[0] if not isinstance(rest, int) or rest else None
        if head is None:
            return quotient, 0
        factor = _monomial_quotient(head[0], lead)
        if factor is None or head[1] % leading:
            break
        step = _intern({factor: head[1] // leading})
        quotient, rest = quotient + step, rest - step * b
    return (quotient, 0) if isinstance(rest, int) and rest == 0 else (0, a)


def _divide_by_number(a: Dim, b: int) -> tuple[Dim, Dim]:
    """Take out the terms that ``b`` divides, and whole multiples of it from the constant."""
    quotient, rest = {}, {}
    for monomial, coefficient in _terms(a):
        if coefficient % b == 0:
            quotient[monomial] = coefficient // b
        elif not monomial:
            quotient[monomial], rest[monomial] = divmod(coefficient, b)
        else:
            rest[monomial] = coefficient
    return _intern(quotient), _intern(rest)


def _monomial_quotient(m: Monomial, n: Monomial) -> Monomial | None:
    left = list(m)
    for atom in n:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


@lru_cache(_KEPT_RESULTS)
def _extremum(kind: str, a: Dim, b: Dim) -> Dim:
    choose = min if kind == "min" else max
    kept: list[Dim] = list(_operands_of(kind, a))
    for x in _operands_of(kind, b):  # sizes that differ by a number are ordered, whatever the symbols are
        for i, y in enumerate(kept):
            difference = x - y
            if isinstance(difference, int):
                kept[i] = y if choose(difference, 0) == 0 else x
                break
        else:
            kept.append(x)
    if len(kept) == 1:
        return kept[0]
    if len(kept) > MAX_TERMS:
        raise ValueError(f"{kind} of {len(kept)} sizes exceeds the limit of {MAX_TERMS}")
    return _from_atom(_atom(kind, tuple(sorted(kept, key=_dim_key))))


def _operands_of(kind: str, x: Dim) -> tuple[Dim, ...]:
    """The sizes under a nested minimum (maximum), so that these flatten."""
    if isinstance(x, SymExpr) and len(x.terms) == 1:
        monomial, coefficient = x.terms[0]
        if coefficient == 1 and len(monomial) == 1 and monomial[0].kind == kind:
            return monomial[0].arguments
    return (x,)


def _dim_key(x: Dim) -> tuple[int, str]:
    return (0, f"{x:+040d}") if isinstance(x, int) else x.sort_key


def _atom_key(atom: Atom) -> tuple[int, str]:
    return (len(atom.text), atom.text)


def _term_key(term: tuple[Monomial, int]) -> tuple[Any, ...]:
    return (-len(term[0]), [_atom_key(atom) for atom in term[0]])


def _from_atom(atom: Atom) -> SymExpr:
    result = _intern({(atom,): 1})
    assert isinstance(result, SymExpr)  # one term with a factor is never a number
    return result


def _intern(terms: dict[Monomial, int]) -> Dim:
    items = [term for term in terms.items() if term[1]]
    if not items:
        return 0
    if len(items) == 1 and not items[0][0]:
        return items[0][1]
    if len(items) > MAX_TERMS or len(items[0][0]) > MAX_DEGREE:
        raise ValueError(f"a size of more than {MAX_TERMS} terms or of a degree above {MAX_DEGREE}")
    if len(items) > 1:
        items.sort(key=_term_key)
    key = tuple(items)
    found = _expressions.get(key)
    if found is None:
        made = SymExpr()
        made.terms, made._text = key, _format(key)
        with _lock:
            found = _expressions.setdefault(key, made)
    return found


def _atom(kind: str, arguments: tuple[Any, ...]) -> Atom:
    key = (kind, *arguments)
    found = _atoms.get(key)
    if found is None:
        made = Atom()
        made.kind, made.arguments = kind, arguments
        made.text = _format_atom(kind, arguments)
        with _lock:
            found = _atoms.setdefault(key, made)
    return found


def _format_atom(kind: str, arguments: tuple[Any, ...]) -> str:
    if kind == "symbol":
        return str(arguments[0])
    if kind in ("min", "max"):
        return f"{kind}({', '.join(map(str, arguments))})"
    a, b = (str(x) if _is_atom(x) else f"({x})" for x in arguments)
    return f"({a} {'//' if kind == 'floordiv' else '%'} {b})"


def _is_atom(x: Dim) -> bool:
    """Whether the text of ``x`` holds together without parentheses."""
    if isinstance(x, int):
        return x >= 0
    return len(x.terms) == 1 and x.terms[0][1] == 1 and len(x.terms[0][0]) == 1


def _format(terms: tuple[tuple[Monomial, int], ...]) -> str:
    text = ""
    for monomial, coefficient in terms:
        size = abs(coefficient)
        factors = [atom.text for atom in monomial]
        if size != 1 or not factors:
            factors.insert(0, str(size))
        sign = ("-" if coefficient < 0 else "") if not text else (" - " if coefficient < 0 else " + ")
        text += sign + "*".join(factors)
    return text


def _pickle_atom(atom: Atom) -> tuple[Any, ...]:
    return (atom.kind, *atom.arguments)


def _rebuild(terms: tuple[tuple[tuple[Any, ...], int], ...]) -> Dim:
    return _intern({tuple(_atom(kind, tuple(rest)) for kind, *rest in m): c for m, c in terms})
