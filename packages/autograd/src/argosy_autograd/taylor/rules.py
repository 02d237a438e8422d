"""How primitives propagate Taylor coefficients.

Three kinds need a rule, and no primitive more than its derivative: a *linear* primitive (for given choices: a maximum,
a gather) applies its forward-mode rule to each coefficient; a *bilinear* one convolves; for any other, the derivative
of the result along a direction is itself a value, made by the forward-mode rule, whose coefficients of lower order
give the next one of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from argosy_autograd.algebra import Value, constant_number, is_complex, plus
from argosy_autograd.errors import MissingRule
from argosy_autograd.forward import push
from argosy_autograd.registry import NOT_APPLICABLE, STRUCTURED, jvp
from argosy_autograd.reverse import plain_attributes
from argosy_autograd.rules.elementwise import DIVISORS, FACTORS
from argosy_autograd.taylor.control import through_region
from argosy_autograd.taylor.functional import Functional, Index, Split, decrement, group_terms, proper_splits
from argosy_autograd.taylor.rows import is_carried
from argosy_phi_ops import prim
from argosy_pir import Operation

if TYPE_CHECKING:
    from argosy_autograd.taylor.sweep import Sweep

Coefficient: TypeAlias = Any
"""A value, or None for zero."""

LINEAR = frozenset(
    "neg copy real imag conj complex cast add sub broadcast reshape transpose slice pad concat reverse relayout gather "
    "to_local from_local dynamic_slice dynamic_update_slice reduce_sum fft select sort maximum minimum reduce_max "
    "reduce_min all_reduce all_gather reduce_scatter all_to_all permute broadcast_rank place".split()
)
"""Primitives that are linear in their differentiable operands, given the choices they make at the point itself."""

Rule = Callable[["Sweep", Operation, Functional], Coefficient]


def propagate(sweep: Sweep, op: Operation, result: Value, functional: Functional) -> Coefficient:
    """``functional`` of the coefficients of ``result``, one of the results of ``op``, from those of its operands."""
    if is_carried(op):
        return through_region(sweep, op, result, functional)
    if op.name in STRUCTURED:
        return _by_derivative(sweep, op, result, functional)
    if op.dialect != "prim":
        raise MissingRule(f"'{op.name}' ({op.location}) is no primitive: it has no Taylor rule")
    name = op.kind
    if name in LINEAR or _acts_linearly(op, name):
        return _push_linear(sweep, op, result, functional)
    rule = SPECIAL.get(name)
    if rule is not None:
        return rule(sweep, op, functional)
    if name in FACTORS or name in DIVISORS:
        return _chain(sweep, op, functional)
    return _by_derivative(sweep, op, result, functional)


def has_rule(op: Operation) -> bool:
    """Whether coefficients can be propagated through ``op``."""
    name = op.kind
    known = name in LINEAR or name in SPECIAL or name in NOT_APPLICABLE or name in jvp
    if is_carried(op):
        return all(has_rule(inner) or inner.name in _ENDS for inner in op.walk() if inner is not op)
    return op.name in ("ad.coefficient", "builtin.constant") or (op.dialect == "prim" and known)


_ENDS = frozenset(("control.yield", "control.condition"))


def _acts_linearly(op: Operation, name: str) -> bool:
    if name == "abs":
        return not is_complex(op.operand(0))
    if name == "cumulative":
        return bool(op.attributes["kind"] == "sum")
    return name == "scatter" and op.attributes["kind"] in ("add", "set", "max", "min")


def _push_linear(sweep: Sweep, op: Operation, result: Value, functional: Functional) -> Coefficient:
    parts = [sweep.coefficient(x, functional) for x in op.operands]
    made = push(op, parts)
    for other, value in zip(op.results, made, strict=True):
        sweep.made[other, functional] = value
    return made[op.results.index(result)]


def _coefficient(sweep: Sweep, value: Value, functional: Functional) -> Coefficient:
    """``functional`` of ``value``; the sum of single coefficients where these are there already."""
    singles = [(Functional([(index, 1.0)]), c) for index, c in functional]
    if len(singles) == 1 or any((value, single) not in sweep.made for single, _ in singles):
        return sweep.coefficient(value, functional)
    total: Coefficient = None
    for single, c in singles:
        total = plus(total, _scale(sweep.made[value, single], c))
    return total


def _times(x: Coefficient, y: Coefficient) -> Coefficient:
    return None if x is None or y is None else x * y


def _scale(x: Coefficient, factor: float) -> Coefficient:
    return x if x is None or factor == 1 else x * factor


def _convolve(
    sweep: Sweep, x: Value, y: Value, functional: Functional, product: Callable[[Coefficient, Coefficient], Coefficient]
) -> Coefficient:
    """The terms of the functional of a product whose factors are both of lower order; those of one weight are added
    first. Of an elementwise square, terms that differ by the order of their factors are equal: one is taken twice.
    """
    scale, unit = functional.normalise()
    sums: dict[float, Coefficient] = {}
    square = x is y and product is _times  # a contraction of a value with itself tells left from right
    for left, right, c in _halves(unit) if square else _parts(unit):
        first, second = _coefficient(sweep, x, left), _coefficient(sweep, y, right)
        if first is not None and second is not None:
            sums[c] = plus(sums.get(c), product(first, second))
    return _weight(sums, scale)


def _weight(sums: Mapping[float, Coefficient], scale: float) -> Coefficient:
    """The sum of ``scale c sums[c]``: one multiplication for each factor, and none for the one they have in common."""
    common = min((c for c, part in sums.items() if part is not None), key=abs, default=1.0)
    total: Coefficient = None
    for c, part in sums.items():
        total = plus(total, _scale(part, c / common))
    return _scale(total, common * scale)


@cache
def _parts(functional: Functional) -> list[Split]:
    """How a product distributes ``functional`` over its factors."""
    return group_terms((a, b, c) for index, c in functional for a, b in proper_splits(index))


@cache
def _halves(functional: Functional) -> list[Split]:
    """The same for a square: of two terms that are equal one is taken twice."""
    pairs = ((a, b, c) for index, c in functional for a, b in proper_splits(index) if (len(a), a) <= (len(b), b))
    return group_terms((a, b, c if a == b else 2 * c) for a, b, c in pairs)


@cache
def _chain_terms(functional: Functional) -> list[Split]:
    """How y = f(x) distributes ``functional`` over x and the factor f'(x), see :func:`_chain`."""
    found: list[tuple[Index, Index, float]] = []
    for index, c in functional:
        direction = max(set(index), key=index.count)
        for part, rest in proper_splits(index):
            if direction in part:
                found.append((part, rest, c * part.count(direction) / index.count(direction)))
    return group_terms(found)


def _product(sweep: Sweep, op: Operation, functional: Functional) -> Coefficient:
    x, y = op.operands
    top = sweep.coefficient(x, functional)
    if x is y:
        linear = None if top is None else (top * x) * 2
    else:
        linear = plus(_times(top, y), _times(sweep.coefficient(y, functional), x))
    return plus(linear, _convolve(sweep, x, y, functional, _times))


def _quotient(sweep: Sweep, op: Operation, functional: Functional) -> Coefficient:
    """From x = r y: L(r) = (L(x) - r L(y) - terms of lower order) / y."""
    x, y = op.operands
    top = sweep.coefficient(x, functional)
    if sweep.depends(y):
        top = _minus(top, _times(sweep.coefficient(y, functional), op.result))
        top = _minus(top, _convolve(sweep, op.result, y, functional, _times))
    return None if top is None else top / y


def _minus(x: Coefficient, y: Coefficient) -> Coefficient:
    return x if y is None else -y if x is None else x - y


def _bilinear(sweep: Sweep, op: Operation, functional: Functional) -> Coefficient:
    """Contractions: a tangent that is the same for every free index of its operand is contracted once."""
    x, y = op.operands
    attributes = plain_attributes(op)
    primitive = prim.conv if op.name == "prim.conv" else prim.dot_general

    def product(left: Coefficient, right: Coefficient) -> Coefficient:
        if left is None or right is None:
            return None
        if primitive is prim.dot_general:
            small = _contract_broadcast(left, right, op)
            if small is not None:
                return small
        return primitive(left, right, **attributes)

    top = plus(product(sweep.coefficient(x, functional), y), product(x, sweep.coefficient(y, functional)))
    return plus(top, _convolve(sweep, x, y, functional, product))


def _contract_broadcast(left: Value, right: Value, op: Operation) -> Coefficient:
    """The product for a ``left`` that is a broadcast over all its free axes: seeds of the first layer are."""
    source = left.owner if isinstance(left.owner, Operation) else None
    contract = op.attributes["lhs_contract"]
    if source is None or source.name != "prim.broadcast" or op.attributes["lhs_batch"]:
        return None
    axes = source.attributes["axes"]
    inner = source.operand(0)
    if tuple(sorted(contract)) != tuple(axes) or any(inner.shape[i] != left.shape[a] for i, a in enumerate(axes)):
        return None
    small = prim.dot_general(
        inner,
        right,
        lhs_contract=tuple(axes.index(a) for a in contract),
        rhs_contract=op.attributes["rhs_contract"],
        lhs_batch=(),
        rhs_batch=(),
        accumulate=op.attributes["accumulate"],
    )
    shape = op.result.shape
    return prim.broadcast(small, shape=shape, axes=tuple(range(len(shape) - small.ndim, len(shape))))


def _power(sweep: Sweep, op: Operation, functional: Functional) -> Coefficient:
    """Small whole exponents are products, which are right at zero, too."""
    x: Value = op.operand(0)
    exponent = constant_number(op.operand(1))
    if exponent in (0, 1):
        return None if exponent == 0 else sweep.coefficient(x, functional)
    if exponent in (2, 3, 4):
        square = x * x
        product = square if exponent == 2 else square * (x if exponent == 3 else square)
        return sweep.coefficient(product, functional)
    return _chain(sweep, op, functional)


def _chain(sweep: Sweep, op: Operation, functional: Functional) -> Coefficient:
    """Elementwise y = f(x, ...): the derivative along a direction is the sum of ``f_x dx``, factor by factor.

    With s = f_x, ``a_i y_a = sum over b of b_i x_b s_(a - b)`` for any direction i of a: the terms with b = a are
    linear in the highest coefficient of x, the others have lower ones.
    """
    total: Coefficient = None
    for x, factor in _partials(sweep, op):
        top = _times(sweep.coefficient(x, functional), factor)
        terms = _chain_terms(functional)
        common = min((c for _, _, c in terms), key=abs, default=1.0)
        lower: Coefficient = None
        for left, right, c in terms:
            moved = _scale(_coefficient(sweep, x, left), c / common)
            lower = plus(lower, _times(moved, _coefficient(sweep, factor, right)))
        total = plus(total, plus(top, _scale(lower, common)))
    return total


def _partials(sweep: Sweep, op: Operation) -> list[tuple[Value, Value]]:
    """The differentiable operands of an elementwise operation with the partial derivatives by them, made once."""
    known = sweep.partials.get(op)
    if known is not None:
        return known
    name, y = op.kind, op.result
    moving = [x for x in dict.fromkeys(op.operands) if sweep.depends(x)]
    if name in FACTORS:
        made = [(x, FACTORS[name](y, x)) for x in moving]
    elif name in DIVISORS:
        made = [(x, 1 / DIVISORS[name](y, x)) for x in moving]
    else:
        made = [(x, partial_derivative(op, x)) for x in moving]
    sweep.partials[op] = made
    return made


def partial_derivative(op: Operation, x: Value) -> Value:
    """The derivative of the result of an elementwise operation by its operand ``x``, by the forward-mode rule."""
    one = prim.constant(1, x.dtype, x.shape)
    made = push(op, [one if operand is x else None for operand in op.operands])[0]
    assert made is not None
    return made


def _by_derivative(sweep: Sweep, op: Operation, result: Value, functional: Functional) -> Coefficient:
    """Any other operation: the coefficients of the derivative of the result along one of the directions."""
    number = op.results.index(result)
    rests: dict[int, dict[Index, float]] = {}
    for index, c in functional:
        direction = max(set(index), key=index.count)
        rests.setdefault(direction, {})[decrement(index, direction)] = c / index.count(direction)
    total: Coefficient = None
    for direction, terms in rests.items():
        along = sweep.tangents(op, direction)[number]
        if along is not None:
            lowest = _scale(along, terms.pop((), 0.0)) if () in terms else None
            rest = sweep.coefficient(along, Functional(terms)) if terms else None
            total = plus(total, plus(lowest, rest))
    return total


SPECIAL: dict[str, Rule] = {
    "mul": _product,
    "div": _quotient,
    "dot_general": _bilinear,
    "conv": _bilinear,
    "pow": _power,
    **dict.fromkeys(("atan2", "rem", "floor_mod"), _chain),
}
"""Rules of their own, by primitive."""
