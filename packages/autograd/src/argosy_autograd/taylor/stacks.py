"""Many directions as one axis: the coefficients of one degree are one value, so that programs do not grow with them.

A *stack* of a value of shape ``shape`` holds the members of a family of functionals (:mod:`.families`) along a leading
axis; the other axes are those of ``shape``, or 1 where all elements along them are the same. A linear primitive is
applied to all members at once; products convolve whole families; an elementwise function follows the formula of Faa di
Bruno, ``f(x + h) = f(x) + f'(x) h + f''(x) h^2 / 2 + ...``, where h has the coefficients of x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from math import prod

from argosy_autograd.activity import read_values
from argosy_autograd.algebra import Value, is_complex, plus
from argosy_autograd.rules.elementwise import DIVISORS, FACTORS
from argosy_autograd.taylor.families import Families, StackingError, compositions, homogeneous
from argosy_autograd.taylor.functional import Functional, Index, close_downward
from argosy_autograd.taylor.lifting import contract, convolve, expand, lift
from argosy_autograd.taylor.rows import upstream
from argosy_autograd.taylor.rules import LINEAR, partial_derivative
from argosy_autograd.taylor.sweep import Sweep
from argosy_phi_ops import prim
from argosy_phi_ops.context import context
from argosy_pir import Dense, Operation, TensorType, encode_scalar
from argosy_pir.values import OpResult

__all__ = ["Stacks"]

Stack = Value | None
"""Members of a family along a leading axis; None where all are zero."""
Pair = Callable[[Value, Value], Value]


class Stacks:
    """The coefficients of ``families`` along the unit directions of ``sweep``; operations are emitted at the ambient
    builder."""

    def __init__(self, sweep: Sweep, families: Families) -> None:
        self._sweep = sweep
        self._families = families
        self._made: dict[tuple[Value, int], Stack] = {}
        self._powers: dict[tuple[Value, tuple[int, ...]], Stack] = {}
        self._inverses: dict[Operation, Value] = {}
        self._inner: dict[Operation, Sweep] = {}

    def coefficient(self, value: Value, functional: Functional) -> Value | None:
        """``functional``, whose terms are derivatives, of the Taylor coefficients of ``value``; None for zero.

        Raises :class:`StackingError` for operations on the way that have no rule here, and for directions that are no
        unit directions.
        """
        total: Stack = None
        for part in homogeneous(functional):
            self._make_upstream(value, part.degree)
            stack = self._made[value, part.degree]
            if stack is not None:
                member = _member(expand(stack, value.shape), self._families.place(part))
                total = plus(total, prim.reshape(member, shape=value.shape))
        return total

    def _make_upstream(self, value: Value, degree: int) -> None:
        """Make the stacks up to ``degree`` of ``value`` and of what it is made from, in program order."""

        def is_known(v: Value) -> bool:
            return not self._sweep.depends(v) or (v, degree) in self._made

        order = [result for op in upstream(value, is_known, read_values) for result in op.results]
        for each in (*order, value):
            for lower in range(1, degree + 1):
                if (each, lower) not in self._made:
                    self._made[each, lower] = self._stack(each, lower)

    def _stack_of(self, value: Value, degree: int) -> Stack:
        key = (value, degree)
        if key not in self._made:  # a value that moves along no direction, or an input
            self._made[key] = self._stack(value, degree)
        return self._made[key]

    @property
    def _highest(self) -> int:
        return max(self._families.members)

    def _size(self, degree: int) -> int:
        return len(self._families.members.get(degree, ()))

    def _stack(self, value: Value, degree: int) -> Stack:
        if not self._sweep.depends(value) or not self._size(degree):
            return None
        moves = isinstance(value, OpResult) and any(map(self._sweep.depends, read_values(value.op)))
        if self._sweep.is_seeded(value):
            if moves:
                raise StackingError("a direction of what moves along another one")
            return self._seed(value) if degree == 1 else None
        assert isinstance(value, OpResult)
        if self._sweep.base(value) is not None:
            raise StackingError("a derivative of what derivatives are part of")
        return self._propagate(value.op, degree)

    def _seed(self, value: Value) -> Stack:
        """Row i: one in the component that direction i moves, where it moves ``value``."""
        units = [self._sweep.units.get(direction, (value, -1, 0)) for direction in self._families.directions]
        rows = min((count for source, count, _ in units if source is value), default=None)
        if rows is None:
            return None
        if rows < 0:
            raise StackingError("a direction that is no unit direction")
        shape = value.shape[rows:]
        cells = [0.0] * (len(units) * prod(shape))
        for number, (source, count, component) in enumerate(units):
            if source is value:
                for cell in range(component, prod(shape), prod(value.shape[count:])):
                    cells[number * prod(shape) + cell] = 1.0
        return _constant(cells, value.dtype, (len(units), *(1,) * rows, *shape))

    def _propagate(self, op: Operation, degree: int) -> Stack:
        name = op.kind if op.dialect == "prim" else ""
        if name in ("add", "sub"):
            left, right = (self._stack_of(x, degree) for x in op.operands)
            return plus(left, right if right is None or name == "add" else -right)
        if name == "mul":
            return self._product(op.operand(0), op.operand(1), degree)
        if name == "div":
            return self._quotient(op, degree)
        if name in ("dot_general", "conv"):
            return self._contraction(op, degree)
        if name in FACTORS or name in DIVISORS:
            return self._compose(op, op.operand(0), degree)
        if name in ("pow", "atan2"):
            moving = [x for x in dict.fromkeys(op.operands) if self._sweep.depends(x)]
            if len(moving) > 1:
                return self._composed_of_two(op, moving[0], moving[1], degree)
            return self._compose(op, moving[0], degree)
        if name == "sign" and not is_complex(op.result):
            return None
        if name in ("abs", "maximum", "minimum") and not is_complex(op.result):
            stacks = ((x, self._stack_of(x, degree)) for x in dict.fromkeys(op.operands))
            return reduce(plus, (s * partial_derivative(op, x) for x, s in stacks if s is not None), None)
        if name in LINEAR or name == "cumulative":
            parts = [self._stack_of(x, degree) for x in op.operands]
            return None if all(s is None for s in parts) else lift(op, parts, self._size(degree))
        raise StackingError(f"'{op.name}' ({op.location}) has no rule for stacks of coefficients")

    def _quotient(self, op: Operation, degree: int) -> Stack:
        x, y = op.operands
        if not self._sweep.depends(y):
            stack = self._stack_of(x, degree)
            return None if stack is None else stack / y
        if op not in self._inverses:
            self._inverses[op] = prim.div(1.0, y)
        inverse = self._inverses[op]
        if (inverse, degree) not in self._made:
            self._made[inverse, degree] = self._compose(inverse.op, y, degree)
        return self._product(x, inverse, degree)

    def _product(self, x: Value, y: Value, degree: int) -> Stack:
        """The coefficients of ``x * y``, elementwise."""
        first, second = self._stack_of(x, degree), self._stack_of(y, degree)
        if x is y:
            total = None if first is None else first * x * 2.0
        else:
            total = plus(None if first is None else first * y, None if second is None else second * x)
        for lower in range(1, degree):
            left, right = (x, lower), (y, degree - lower)
            if lower > degree - lower:
                left, right = right, left
            if x is y and 2 * lower > degree:
                continue
            made = self._convolve(self._stack_of(*left), self._stack_of(*right), degree, left[1], prim.mul)
            total = plus(total, made * 2.0 if x is y and made is not None and 2 * lower < degree else made)
        return total

    def _contraction(self, op: Operation, degree: int) -> Stack:
        """The coefficients of a bilinear operation."""
        x, y = op.operands
        bilinear = contract if op.name == "prim.dot_general" else convolve
        first, second = self._stack_of(x, degree), self._stack_of(y, degree)
        total = None if first is None else bilinear(op, first, y, "left")
        total = plus(total, None if second is None else bilinear(op, x, second, "right"))
        for lower in range(1, degree):
            left, right = self._stack_of(x, lower), self._stack_of(y, degree - lower)
            if 2 * lower > degree:
                made = self._convolve(right, left, degree, degree - lower, lambda b, a: bilinear(op, a, b, "both"))
            else:
                made = self._convolve(left, right, degree, lower, lambda a, b: bilinear(op, a, b, "both"))
            total = plus(total, made)
        return total

    def _compose(self, op: Operation, x: Value, degree: int) -> Stack:
        """y = f(x) elementwise: for each way to write the degree as a sum, a derivative of f times a product."""
        factor, stack = self._factor(op, x, 1), self._stack_of(x, degree)
        total = None if factor is None or stack is None else stack * factor
        for parts, orders in compositions(degree):
            factor, power = self._factor(op, x, len(parts)), self._power(x, parts)
            if factor is not None and power is not None:
                total = plus(total, power * (factor if orders == 1 else factor * float(orders)))
        return total

    def _composed_of_two(self, op: Operation, x: Value, y: Value, degree: int) -> Stack:
        """z = f(x, y) elementwise: mixed derivatives of f times products of powers of both."""
        total: Stack = None
        for first in range(degree + 1):
            second = degree - first
            for (left, one), (right, other) in product(_compositions(first), _compositions(second)):
                power = self._powers_of_two(x, left, y, right)
                factor = None if power is None else self._mix(op, x, y, len(left), len(right))
                if power is not None and factor is not None:
                    total = plus(total, power * (factor if one * other == 1 else factor * float(one * other)))
        return total

    def _powers_of_two(self, x: Value, left: tuple[int, ...], y: Value, right: tuple[int, ...]) -> Stack:
        if not left or not right:
            return self._power(x, left) if left else self._power(y, right)
        if sum(left) > sum(right):
            x, left, y, right = y, right, x, left
        return self._convolve(self._power(x, left), self._power(y, right), sum(left + right), sum(left), prim.mul)

    def _mix(self, op: Operation, x: Value, y: Value, first: int, second: int) -> Stack:
        """``f^(first, second)(x, y) / first! / second!``: a coefficient of f where both move apart, by one each,
        whatever they are made of."""
        if op not in self._inner:
            indices = close_downward([(0,) * self._highest + (1,) * self._highest])
            self._inner[op] = self._sweep.inner_sweep({v: self._units(v, i, indices) for i, v in enumerate((x, y))}, [])
        return self._inner[op].coefficient(op.result, Functional([((0,) * first + (1,) * second, 1.0)]))

    def _units(self, x: Value, number: int, indices: Sequence[Index]) -> dict[Index, Stack]:
        one = prim.constant(1, x.dtype, x.shape)
        return {index: one if index == (number,) else None for index in indices}

    def _factor(self, op: Operation, x: Value, order: int) -> Stack:
        """``f^(order)(x) / order!``: coefficients of f itself, along one direction in which x moves by one."""
        if op not in self._inner:
            self._inner[op] = Sweep()
            self._inner[op].add_direction(x, prim.constant(1, x.dtype, x.shape))
        return self._inner[op].coefficient(op.result, Functional([((0,) * order, 1.0)]))

    def _power(self, x: Value, parts: tuple[int, ...]) -> Stack:
        """The product of as many coefficients of x as there are ``parts``, of these degrees, summed over the ways."""
        if len(parts) == 1:
            return self._stack_of(x, parts[0])
        key = (x, parts)
        if key not in self._powers:
            left, right = _halves(parts)
            first, second = self._power(x, left), self._power(x, right)
            self._powers[key] = self._convolve(first, second, sum(parts), sum(left), prim.mul)
        return self._powers[key]

    def _convolve(self, left: Stack, right: Stack, degree: int, lower: int, pair: Pair) -> Stack:
        if left is None or right is None:
            return None
        split = self._families.split(degree, lower, left is right and pair is prim.mul)
        total: Stack = None
        if split.common:
            shared = _sum(_take(right, [b for b, _ in split.common]), [c for _, c in split.common], 1)
            entries = [(member, a, 0, c) for member, a, c in split.with_common]
            total = _products(entries, left, shared, self._size(degree), pair)
        return plus(total, _products(split.products, left, right, self._size(degree), pair))


def _compositions(degree: int) -> Sequence[tuple[tuple[int, ...], int]]:
    """The ways to write ``degree`` as a sum of any number of degrees, and how many orders each has."""
    return [((), 1)] if degree == 0 else [((degree,), 1), *compositions(degree)]


def _halves(parts: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """``parts``, sorted, in two with sums as equal as may be, the smaller one first."""
    total = sum(parts)
    splits = [(parts[:i], parts[i:]) for i in range(1, len(parts))]
    left, right = min(splits, key=lambda s: abs(total - 2 * sum(s[0])))
    return (left, right) if sum(left) <= sum(right) else (right, left)


def _products(
    entries: Sequence[tuple[int, int, int, float]], left: Value, right: Value, size: int, pair: Pair
) -> Stack:
    """The stack of so many sums of products."""
    if not entries:
        return None
    members: list[list[tuple[int, int, float]]] = [[] for _ in range(size)]
    for member, a, b, c in entries:
        members[member].append((a, b, c))
    most = max(map(len, members))
    padded = [term for terms in members for term in (*terms, *[(0, 0, 0.0)] * (most - len(terms)))]
    made = pair(_take(left, [a for a, _, _ in padded]), _take(right, [b for _, b, _ in padded]))
    return _sum(made, [c for _, _, c in padded], size)


def _sum(stack: Value, factors: Sequence[float], size: int) -> Value:
    """``stack`` times ``factors``, added up to so many members in equal parts."""
    same = len(set(factors)) == 1
    if not same:
        stack = stack * _constant(factors, stack.dtype, (len(factors), *(1,) * (stack.ndim - 1)))
    if len(factors) != size:
        apart = prim.reshape(stack, shape=(size, len(factors) // size, *stack.shape[1:]))
        stack = prim.reduce_sum(apart, axes=(1,))
    return stack * factors[0] if same and factors[0] != 1 else stack


def _take(stack: Value, members: Sequence[int]) -> Value:
    """The ``members`` of ``stack``, in this order."""
    size = stack.shape[0]
    if list(members) == list(range(size)):
        return stack
    if len(set(members)) == 1:
        return prim.broadcast_to(_member(stack, members[0]), (len(members), *stack.shape[1:]))
    numbers = _constant(members, "int64", (len(members), 1))
    return prim.gather(stack, numbers, axes=(0,))


def _member(stack: Value, number: int) -> Value:
    rest = stack.shape[1:]
    return prim.slice(stack, start=(number, *(0,) * len(rest)), limit=(number + 1, *rest), stride=(1,) * stack.ndim)


def _constant(numbers: Sequence[float], dtype: str, shape: tuple[int, ...]) -> Value:
    builder = context().builder
    assert builder is not None
    type = TensorType(shape, dtype)
    return builder.constant(type, Dense(type, b"".join(encode_scalar(n, dtype) for n in numbers)), context().location)
