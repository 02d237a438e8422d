"""One sweep: Taylor coefficients of the values of a program, made when they are asked for and shared by all who ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from argosy_autograd.activity import has_gradient, has_no_derivative, read_values
from argosy_autograd.algebra import Value, plus, zeros_like
from argosy_autograd.forward import push
from argosy_autograd.insertion import Insertion
from argosy_autograd.registry import STRUCTURED
from argosy_autograd.taylor.functional import VALUE, Functional, Index, close_downward, lower_functionals
from argosy_autograd.taylor.rows import upstream
from argosy_autograd.taylor.rules import Coefficient, propagate
from argosy_phi_ops import prim
from argosy_phi_ops.context import context
from argosy_pir import Operation
from argosy_pir.values import OpResult

__all__ = ["Sweep"]


class Sweep:
    """Coefficients along directions that :meth:`add_direction` gives numbers to.

    Operations are emitted at the ambient builder (`argosy_phi_ops.context.emit_at`), which stands after everything
    that is asked about. None stands for a coefficient that is zero. ``made`` holds what was made so far, ``units`` the
    directions that are components of a value: ``(value, count, component)``.
    """

    def __init__(self) -> None:
        self.made: dict[tuple[Value, Functional], Coefficient] = {}
        self.partials: dict[Operation, list[tuple[Value, Value]]] = {}
        self.units: dict[int, tuple[Value, int, int]] = {}
        self._seeds: dict[Value, dict[Index, Value]] = {}
        self._directions = 0
        self._bases: dict[Value, tuple[Value, Functional]] = {}
        self._depends: dict[Value, bool] = {}
        self._tangents: dict[tuple[Operation, int], Sequence[Coefficient]] = {}
        self._own: set[Value] = set()
        self._curved = False
        self._moving: dict[tuple[Value, int], Value] = {}
        self.expected: set[Index] = set()
        """What will be asked for, as far as it is known: loops carry all of that at once."""
        self._loops: set[Operation] = set()

    def add_direction(self, value: Value, tangent: Value, unit: tuple[int, int] | None = None) -> int:
        """The number of a new direction: ``value`` moves by ``tangent`` (of its type).

        ``unit`` tells ``(count, component)`` where tangent is one in this component of what the axes from count on
        hold, and zero in others.
        """
        number = self._directions
        self._directions += 1
        self._seed(value)[(number,)] = tangent
        if unit is not None:
            self.units[number] = (value, *unit)
        return number

    def add_path(self, curves: Mapping[Value, Sequence[Value]]) -> int:
        """The number of a new direction, along which each value has the Taylor coefficients given, from the first
        on; further ones are zero."""
        number = self._directions
        self._directions += 1
        self._curved = True
        for value, coefficients in curves.items():
            self._seed(value).update(((number,) * k, c) for k, c in enumerate(coefficients, 1))
        return number

    def _seed(self, value: Value) -> dict[Index, Value]:
        if value not in self._seeds:
            self._seeds[value] = {}
            self._depends = dict.fromkeys(self._seeds, True)
        return self._seeds[value]

    def is_seeded(self, value: Value) -> bool:
        """Whether a direction moves ``value`` itself."""
        return value in self._seeds

    def seeds(self) -> list[Value]:
        """What the values that directions move move by."""
        return [tangent for each in self._seeds.values() for tangent in each.values()]

    def derivative(self, value: Value, direction: int) -> Value:
        """The derivative of ``value`` along ``direction``, a value whose own coefficients are those of ``value``."""
        found = self.coefficient(value, Functional([((direction,), 1.0)]))
        if self._curved:
            return self._move(value, direction, found)
        if found is None:
            return zeros_like(value)
        self.know(found, value, Functional([((direction,), 1.0)]))
        return found

    def _move(self, value: Value, direction: int, found: Coefficient) -> Value:
        """``found``, the derivative of ``value``, as a value of its own: along a curve it moves whatever it is made of,
        and one tensor may be the derivative of several values."""
        key = (value, direction)
        if key not in self._moving:
            self._moving[key] = made = zeros_like(value) if found is None else prim.copy(found)
            self._bases[made] = (value, Functional([((direction,), 1.0)]))
            self._depends[made] = self.depends(value)
        return self._moving[key]

    def know(self, value: Value, base: Value, functional: Functional) -> None:
        """``value`` is ``functional`` of ``base``: so are its own coefficients."""
        if value not in self._own:
            self._bases.setdefault(value, (base, functional))

    def base(self, value: Value) -> Value | None:
        """What ``value`` is a functional of, as far as is known, or None."""
        known = self._bases.get(value)
        return None if known is None else known[0]

    def coefficient(self, value: Value, functional: Functional) -> Coefficient:
        """``functional`` of the Taylor coefficients of ``value``.

        Raises :class:`MissingRule` for operations on the way that have no rule.
        """
        if functional == VALUE:
            return value
        key = (value, functional)
        if key not in self.made:
            self._make_upstream(value, functional)
            if key not in self.made:
                self.made[key] = self._make(value, functional)
        return self.made[key]

    def depends(self, value: Value) -> bool:
        """Whether ``value`` moves along any direction."""
        if value not in self._depends:
            for op in upstream(value, self._depends.__contains__, read_values):
                moves = not _is_wall(op) and any(self._depends.get(v, False) for v in read_values(op))
                for result in op.results:
                    self._depends.setdefault(result, moves and has_gradient(result))
        return self._depends.get(value, False)

    def expect(self, functionals: Iterable[Functional]) -> None:
        """Say what will be asked for."""
        self.expected.update(index for functional in functionals for index, _ in functional if index)

    def orders(self, op: Operation, index: Index) -> list[Index]:
        """What the loop or branch ``op`` should carry when ``index`` is wanted, by order: all that is expected, and
        what is below it. A derivative that this sweep made has no more than it was asked for: its coefficients of
        higher order would need the next ones of what it is a derivative of."""
        return close_downward({index} if op in self._loops else {index, *self.expected})

    def inner_sweep(self, known: Mapping[Value, Mapping[Index, Coefficient]], still: Sequence[Value]) -> Sweep:
        """The sweep of a region, of which the coefficients of some values are ``known`` and others stand ``still``."""
        return _RegionSweep(known, still)

    def tangents(self, op: Operation, direction: int) -> Sequence[Coefficient]:
        """The derivatives of the results of ``op`` along ``direction`` by its forward-mode rule."""
        key = (op, direction)
        if key not in self._tangents:
            builder = context().builder
            assert builder is not None
            inserted = Insertion(builder)
            if op.name in STRUCTURED:
                known = {v: self.derivative(v, direction) for v in read_values(op) if self.depends(v)}
                made = STRUCTURED[op.name].forward(op, known)
            else:
                made = push(op, [self.derivative(x, direction) if self.depends(x) else None for x in op.operands])
            self._loops.update(op for op in inserted.operations() if op.regions)
            self._tangents[key] = made
            self._own.update(t for t in made if t is not None)
        return self._tangents[key]

    def _make(self, value: Value, functional: Functional) -> Coefficient:
        seeds = self._seeds.get(value)
        if seeds is None:
            return self._propagate(value, functional)
        total = self._propagate(value, functional.restrict(frozenset(i for index in seeds for i in index)))
        for index, c in functional:
            if index in seeds:
                tangent = seeds[index]
                total = plus(total, tangent if c == 1 else tangent * c)
        return total

    def _propagate(self, value: Value, functional: Functional) -> Coefficient:
        if not functional.terms or not isinstance(value, OpResult) or not self.depends(value):
            return None
        known = self._bases.get(value)
        if known is not None:
            base, inner = known
            return self.coefficient(base, inner.then(functional))
        return propagate(self, value.op, value, functional)

    def _make_upstream(self, value: Value, functional: Functional) -> None:
        """Make what ``functional`` of ``value`` needs in program order: long programs need no deep recursion."""

        def reads(op: Operation) -> Sequence[Value]:
            return () if any(result in self._bases for result in op.results) else read_values(op)

        order = upstream(value, lambda v: not self.depends(v) or (v, functional) in self.made, reads)
        for each in (*lower_functionals(functional), functional):
            for op in order:
                for result in op.results:
                    if (result, each) not in self.made and self.depends(result):
                        made = self._make(result, each)
                        self.made.setdefault((result, each), made)


class _RegionSweep(Sweep):
    """The sweep of a region. Sums of coefficients are made of single ones: those are what a loop carries."""

    def __init__(self, known: Mapping[Value, Mapping[Index, Coefficient]], still: Sequence[Value]) -> None:
        super().__init__()
        self._curved = True
        self._depends = {**dict.fromkeys(still, False), **dict.fromkeys(known, True)}
        for value, coefficients in known.items():
            self.expect(Functional([(index, 1.0)]) for index in coefficients)
            self.made.update({(value, Functional([(i, 1.0)])): c for i, c in coefficients.items()})

    def coefficient(self, value: Value, functional: Functional) -> Coefficient:
        """See :class:`Sweep`."""
        if functional == VALUE:
            return value
        total: Coefficient = None
        for index, c in functional:
            found = super().coefficient(value, Functional([(index, 1.0)]))
            total = plus(total, found if found is None or c == 1 else found * c)
        return total


def _is_wall(op: Operation) -> bool:
    return op.name == "builtin.constant" or has_no_derivative(op)
