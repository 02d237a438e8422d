"""Whether an output depends on an input, by structure: what eager code knows from its tape, for captured gradients.

While capturing, a gradient is one operation, and that it reads a value does not mean that it moves with it: the
gradient of a linear function is a constant. Here every value is a set of monomials (`monomials`) of the values that
somebody differentiates by: ``x @ y + z`` is ``{x y, z}``, ``exp(x)`` is ``{x^oo}``, a maximum of x and y is ``{x, y}``.
The monomials of a primitive come from its reverse rule: where the derivative by one operand reads another one, both
stand in one monomial, and where it reads the operand itself, the exponent is infinite. A derivative takes one off the
exponent. A product of values that want gradients, ``x * y``, counts as ``{x^oo y^oo}``, see
:data:`argosy_autograd.activity.PRODUCTS`. What is longer than can be written out, and loops and branches, may count as
depending on more than they do; so does everything where values that somebody differentiates by are many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import inf
from typing import Any

import argosy_autograd.rules  # noqa: F401  (fills the tables)
from argosy_autograd.activity import (
    PRODUCTS,
    differentiable_sources,
    has_gradient,
    has_no_derivative,
    is_passive,
    postorder,
    read_values,
)
from argosy_autograd.dialect import constants_of, custom_parts, parts
from argosy_autograd.errors import MissingRule
from argosy_autograd.monomials import (
    CONSTANT,
    Monomials,
    Still,
    atom,
    atoms_of,
    plus,
    power,
    still,
    substitute,
    times,
)
from argosy_autograd.registry import vjp
from argosy_autograd.reverse import plain_attributes
from argosy_autograd.taylor.rules import LINEAR
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir import Builder, Operation, Program, Value

__all__ = ["Dependence", "moving_targets"]

_NOTHING: Monomials = frozenset()
_MOST_POINTS = 48
"""Values that others are described by, at once: the work grows with their square."""


def moving_targets(
    outputs: Sequence[Value], targets: Iterable[Value], blockers: Sequence[Value] = (), leaves: Iterable[Value] = ()
) -> set[Value]:
    """Those of ``targets`` that one of ``outputs`` depends on; nothing goes through ``blockers``. ``leaves`` want
    gradients, too."""
    ends = [y for y in outputs if has_gradient(y)]
    wanted = list(targets)
    if len(_points(postorder(ends, None))) > _MOST_POINTS:
        return set(wanted)
    found: set[Value] = set()
    for i in range(0, len(wanted), _MOST_POINTS):
        part = wanted[i : i + _MOST_POINTS]
        dependence = Dependence(ends, part, leaves)
        found.update(v for v in part if dependence.depends(v, blockers))
    return found


def _points(order: Iterable[Operation]) -> set[Value]:
    """What gradients among the operations are by, and results with a derivative of their own."""
    inner = (each for op in order for each in (op.walk() if op.regions else (op,)))
    found: set[Value] = set()
    for op in inner:
        if op.name == "ad.gradient":
            found.update((*parts(op)[1], *constants_of(op)))
        elif op.name == "ad.custom":
            found.update(op.results)
    return found


class Dependence:
    """What ``outputs`` depend on, as far as it leads to ``targets``; ``leaves`` want gradients, too."""

    def __init__(self, outputs: Sequence[Value], targets: Iterable[Value], leaves: Iterable[Value] = ()) -> None:
        order = postorder(outputs, None)
        self._points = _points(order) | set(targets)
        self._live = self._points.union(leaves)
        """What wants gradients: a factor that does not is a constant of its product."""
        self._polynomials: dict[Value, Monomials] = {}
        self._inner: dict[Value, Monomials] = {}
        self._customs: dict[Value, tuple[list[Value], list[Monomials]]] = {}
        """Results with a derivative of their own: its inputs, and the derivatives by them."""
        self._slopes: dict[tuple[Value, Value, frozenset[Value]], Monomials] = {}
        self._outputs = outputs
        self._visit_all(order)

    def depends(self, target: Value, blockers: Sequence[Value] = ()) -> bool:
        """Whether an output depends on ``target``; nothing goes through ``blockers``."""
        seen: set[Any] = set(blockers)
        stack = [a for y in self._outputs for a in atoms_of(self._polynomial_of(y))]
        while stack:
            found: Any = stack.pop()
            found = found.value if isinstance(found, Still) else found
            if found in seen:
                continue
            if found is target:
                return True
            seen.add(found)
            stack.extend(atoms_of(self._inner.get(found, _NOTHING)))
            for x in self._customs.get(found, ((),))[0]:
                stack.extend(atoms_of(self._polynomial_of(x)))
        return False

    def powers(self) -> set[Any]:
        """What an output depends on in such a way that its derivatives of every order do."""
        return {a for y in self._outputs for m in self._polynomial_of(y) for a, exponent in m if exponent == inf}

    def _visit_all(self, order: Sequence[Operation]) -> None:
        for op in order:
            if op.results and op.results[0] not in self._polynomials:
                self._visit(op)

    def _visit(self, op: Operation) -> None:
        if not has_no_derivative(op) and not self._live.isdisjoint(read_values(op)):
            self._live.update(filter(has_gradient, op.results))
        if op.name == "ad.custom":
            self._custom(op)
            return
        made = self._gradients(op) if op.name == "ad.gradient" else self._results(op)
        for result, monomials in zip(op.results, made, strict=True):
            self._put(result, monomials if has_gradient(result) else CONSTANT)

    def _put(self, value: Value, monomials: Monomials) -> None:
        if value in self._points:
            self._inner[value] = monomials
            monomials = atom(value)
        self._polynomials[value] = monomials

    def _polynomial_of(self, value: Value) -> Monomials:
        found = self._polynomials.get(value)
        if found is None:  # an argument
            found = self._polynomials[value] = atom(value) if value in self._points else CONSTANT
        return found

    def _results(self, op: Operation) -> Sequence[Monomials]:
        if op.dialect == "phi":
            patterns = _operator_patterns(op)
        elif op.dialect == "prim":
            patterns = primitive_patterns(op)
        else:
            read = [self._polynomial_of(v) for v in read_values(op) if has_gradient(v)]
            return [reduce(times, (power(each, inf) for each in read), CONSTANT)] * len(op.results)
        operands = [self._polynomial_of(x) for x in op.operands]
        found = [substitute(pattern, operands) for pattern in patterns]
        if PRODUCTS.get(op.kind) == len(operands) and self._live.issuperset(op.operands):
            return [power(each, inf) for each in found]
        return found

    def _gradients(self, op: Operation) -> list[Monomials]:
        outputs, inputs, cotangents = parts(op)
        blockers = frozenset(constants_of(op))
        seeds = [self._polynomial_of(g) for g in cotangents] or [CONSTANT] * len(outputs)
        pairs = [(self._polynomial_of(y), seed) for y, seed in zip(outputs, seeds, strict=True) if has_gradient(y)]
        made = []
        for x in inputs:
            for value in list(self._inner) if x not in blockers else ():
                self._slope(value, x, blockers)  # in the order in which they depend on each other
            made.append(plus(*(times(self._derive(y, x, blockers), seed) for y, seed in pairs)))
        return made

    def _derive(self, y: Monomials, x: Value, blockers: frozenset[Value]) -> Monomials:
        """The derivative of ``y`` by ``x``."""
        terms = []
        for monomial in y:
            for a, exponent in monomial:
                slope = _NOTHING if isinstance(a, Still) else self._slope(a, x, blockers)  # type: ignore[arg-type]
                if slope:
                    rest = monomial - {(a, exponent)}
                    rest = rest if exponent == 1 else rest | {(a, exponent - 1)}
                    terms.append(times(frozenset([rest]), slope))
        return plus(*terms)

    def _slope(self, value: Value, x: Value, blockers: frozenset[Value]) -> Monomials:
        if value in blockers:
            return _NOTHING
        if value is x:
            return CONSTANT
        if value not in self._inner:
            return _NOTHING
        key = (value, x, blockers)
        if key not in self._slopes:
            if value in self._customs:
                inputs, by_input = self._customs[value]
                pairs = zip(inputs, by_input, strict=True)
                found = plus(*(times(g, self._derive(self._polynomial_of(v), x, blockers)) for v, g in pairs))
            else:
                found = self._derive(self._inner[value], x, blockers)
            self._slopes[key] = found
        return self._slopes[key]

    def _custom(self, op: Operation) -> None:
        """Its results are points: what they depend on is the inputs, and how, the region tells."""
        outputs, inputs = custom_parts(op)
        moving_targets = [x for x in inputs if has_gradient(x)]
        for result in op.results:
            self._inner[result] = _NOTHING
            self._polynomials[result] = atom(result)
        before = {y: self._polynomials.get(y) for y in outputs if y not in inputs}
        for y, result in zip(outputs, op.results, strict=True):
            if y in before:  # what the derivative keeps of the outputs has this derivative, too
                self._polynomials[y] = self._polynomials[result]
        last = op.regions[0].block.last
        assert last is not None
        self._visit_all(postorder(last.operands, op.regions[0].block))
        made = [self._polynomial_of(g) for g in last.operands]
        self._polynomials.update({y: given for y, given in before.items() if given is not None})
        for result in op.results:
            self._customs[result] = (
                moving_targets,
                made if "refusal" not in op.attributes else [CONSTANT] * len(moving_targets),
            )


def _operator_patterns(op: Operation) -> Sequence[Monomials]:
    """The results of an operator as monomials of the numbers of its operands. On operands that its decomposition has
    no derivative by, a floor's, it depends all the same: that derivative is zero."""
    expansion = get_operator(op.kind).expand([v.type for v in op.operands], dict(op.attributes))
    found: list[Monomials] | None = expansion.derived.get("monomials")
    if found is None:
        inputs = list(expansion.program.inputs)
        inner = Dependence(expansion.program.outputs, inputs)
        numbers = {x: atom(i) for i, x in enumerate(inputs)}
        moving_targets = [i for i, x in enumerate(inputs) if has_gradient(x)]
        found = []
        for y in expansion.program.outputs:
            listed = [
                reduce(times, (power(numbers[a], e) for a, e in m), CONSTANT)  # type: ignore[index]
                for m in inner._polynomial_of(y)
            ]
            seen = {a for m in inner._polynomial_of(y) for a, _ in m}
            rest = [still(numbers[inputs[i]]) for i in moving_targets if inputs[i] not in seen]
            found.append(plus(*listed, *rest))
        expansion.derived["monomials"] = found
    return found


def primitive_patterns(op: Operation) -> Sequence[Monomials]:
    """The results of a primitive as monomials of the numbers of its operands."""
    moving_targets = [i for i, x in enumerate(op.operands) if has_gradient(x)]
    if is_passive(op) or not moving_targets:
        return [CONSTANT] * len(op.results)
    if op.kind in LINEAR:
        return [plus(*(atom(i) for i in moving_targets))] * len(op.results)
    try:
        reads = _derivative_reads(op, moving_targets)
    except MissingRule:  # told when the derivative is made
        reads = {i: set(moving_targets) for i in moving_targets}
    groups: list[Monomials] = []
    for group in _joined_groups(reads):
        powers = (atom(i, inf if i in reads[i] else 1) for i in sorted(group) if i in reads)
        groups.append(reduce(times, powers, CONSTANT))
    found = plus(*groups) or CONSTANT
    return [found] * len(op.results)


def _joined_groups(reads: Mapping[int, set[int]]) -> list[set[int]]:
    """Operands that the derivatives by each other read."""
    groups: list[set[int]] = []
    for i, others in reads.items():
        together = {i} | others
        apart = [g for g in groups if not g & together]
        groups = [*apart, together.union(*(g for g in groups if g & together))]
    return groups


def _derivative_reads(op: Operation, moving_targets: Sequence[int]) -> dict[int, set[int]]:
    """Which operands the derivative by each operand depends on; operands without one are left out."""
    program = Program("derivative")
    operands = [program.add_input(v.type) for v in op.operands]
    copy = op.clone(dict(zip(op.operands, operands, strict=True)))
    builder = Builder.at_end(program.block)
    builder.insert(copy)
    incoming = [program.add_input(r.type) if has_gradient(r) else None for r in copy.results]
    single = len(copy.results) == 1
    with emit_at(builder):
        made = vjp.find(op.kind)(
            incoming[0] if single else tuple(incoming),
            copy.result if single else copy.results,
            *operands,
            **plain_attributes(op),
        )
    given = made if isinstance(made, tuple) else (made,)
    found = {}
    for i in moving_targets:
        if given[i] is not None:
            reached = differentiable_sources(given[i])
            found[i] = {j for j in moving_targets if operands[j] in reached}
    return found
