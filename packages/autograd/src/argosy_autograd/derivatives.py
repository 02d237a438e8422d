"""The eager derivative of an operator, derived from its decomposition.

For operands of given types the expansion of the operator is differentiated once into a backward program, whose
inputs are those operands, results and cotangents that it reads; so nothing else need be kept. The backward
program is itself wrapped as an operator: applied to tensors it is recorded and differentiated in the same way,
which gives every higher order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from argosy_autograd.activity import PRODUCTS, differentiable_sources, has_gradient
from argosy_autograd.algebra import zeros_like
from argosy_autograd.errors import MissingRule, asked_for, explain_error, plain_name
from argosy_autograd.insertion import erase_unused
from argosy_autograd.operator_rules import WHOLE_RULES
from argosy_autograd.tiered_program import TieredProgram, expand_custom_gradients
from argosy_autograd.transform import vjp_values
from argosy_phi_ops.bounded_cache import BoundedCache
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.expansion import Expansion
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.declare.promotion import describe, promote
from argosy_phi_ops.eager.table import ApplicationTable
from argosy_phi_ops.reference.interpreter import prepare
from argosy_pir import Builder, Program, TensorType, Value
from argosy_pir.passes import get_pass
from argosy_pir.values import OpResult
from argosy_tensorcore.dtype import default_dtype

__all__ = ["Derivative", "ProgramOperator", "derive", "operand_types"]

_cache = BoundedCache(4096)


class ProgramOperator:
    """A program of primitives as an operator that dispatch can bind: made by transforms, not declared.

    ``device`` is given where the program is long enough to be worth compiling for it. ``factors`` are the numbers of
    operands that derivatives of all orders count as depending on, whatever they read, ``also`` those that the
    results count as depending on, for each of them (all factors by default). ``source`` is what a derivative was
    derived of, for devices whose code serves all sizes.
    """

    source: DerivativeSource | None = None

    promote = "none"
    view = inplace = random = opaque = constant = False
    kernel = choose = bounds = own_bounds = refusal = None
    interpreted = True
    axes = ""

    def __init__(
        self,
        name: str,
        program: Program,
        device: Any = None,
        factors: frozenset[int] = frozenset(),
        also: Sequence[frozenset[int]] = (),
    ) -> None:
        self.name = self.__name__ = name
        self.factors = factors
        self._also = also
        self.device = device
        self.expansion = Expansion(program, bare=False, runs=expand_custom_gradients(program))
        self.applications = ApplicationTable(64)

    @cached_property
    def reads(self) -> list[frozenset[int]]:
        """For each result the numbers of the operands that it depends on differentiably."""
        program = self.expansion.program
        sources = map(differentiable_sources, program.outputs)
        also = self._also or [self.factors] * len(program.outputs)
        return [
            more.union(i for i, x in enumerate(program.inputs) if x in found)
            for found, more in zip(sources, also, strict=True)
        ]

    def expand(self, operand_types: Sequence[Any], attributes: dict[str, Any]) -> Expansion:
        """The program; it was made for operands of these types."""
        return self.expansion

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


class DerivativeSource(NamedTuple):
    """An operator with what its derivative follows from, and what came of it for ``types``."""

    op: Operator
    types: tuple[TensorType, ...]
    attributes: dict[str, Any]
    wants: tuple[bool, ...]
    present: frozenset[int] | None
    derivative: Derivative

    @property
    def key(self) -> Hashable:
        """What other derivatives of the operator are told apart by, types aside."""
        return "derivative", self.wants, self.present, self.derivative.keeps

    def program(self, types: Sequence[TensorType]) -> Program | None:
        """The backward program for other types, whose sizes may be symbols; None where it reads or gives others."""
        made, mine = _derive(self.op, list(types), self.attributes, self.wants, self.present), self.derivative
        alike = (made.keeps, made.cotangents, made.operands) == (mine.keeps, mine.cotangents, mine.operands)
        return made.operator.expansion.runs if alike else None


class Derivative:
    """How to go back through an operator for operands of given types.

    ``keeps`` are positions in (operands..., results...) whose data the backward program reads, ``cotangents``
    the results whose cotangents it reads, ``operands`` the positions of the operands that it gives gradients
    of.
    """

    __slots__ = ("_run", "cotangents", "keeps", "operands", "operator", "types")

    def __init__(
        self,
        operator: ProgramOperator,
        keeps: tuple[int, ...],
        cotangents: tuple[int, ...],
        operands: tuple[int, ...],
        types: tuple[TensorType, ...],
    ) -> None:
        self.operator = operator
        self.keeps = keeps
        self.cotangents = cotangents
        self.operands = operands
        self.types = types
        self._run: Callable[[Sequence[Any]], list[Any]] | None = None

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Gradients of ``operands`` from what ``keeps`` and ``cotangents`` name, in this order."""
        if self._run is None:
            program, device = self.operator.expansion.runs, self.operator.device
            self._run = prepare(program) if device is None else TieredProgram(program, device)
        return self._run(arrays)


def derive(key: tuple[Any, ...], attributes: dict[str, Any], present: frozenset[int] | None = None) -> Derivative:
    """The derivative of an application, cached. ``key`` is (operator, (dtype, shape) of each tensor operand or
    the class of a number, attributes by :func:`argosy_phi_ops.declare.attribute_types.attribute_key`, whether each
    operand wants a gradient). ``present`` are the numbers of the results that have cotangents, by default all of them.

    Raises :class:`MissingRule` where a primitive on the way has no rule.
    """
    known = key, present, default_dtype()
    found = _cache.get(known)
    if found is None:
        op, kinds, _, wants = key
        if op.opaque:
            error = MissingRule(f"{op.name} has no gradient: it has no decomposition into primitives")
            raise explain_error(error, _order(op.name))
        try:
            found = _cache[known] = _derive(op, operand_types(op, kinds), attributes, wants, present)
        except MissingRule as error:
            raise explain_error(error, _order(op.name)) from None
    return found


def _order(name: str) -> str:
    """Which derivative of an operator was asked for, and the line that did."""
    plain, order = plain_name(name)
    return f"{asked_for(order + 1)} of {plain}"


def operand_types(op: Any, kinds: Sequence[Any]) -> list[TensorType]:
    """Types of tensor operands as they are; numbers as scalars of the dtype that they are promoted to."""
    described = [(k[0].name, bool(k[1])) if type(k) is tuple else describe(k()) for k in kinds]
    targets = promote(op.promote, op.name, described)
    return [
        TensorType(k[1], k[0].name) if type(k) is tuple else TensorType((), dtype)
        for k, dtype in zip(kinds, targets, strict=True)
    ]


def _derive(
    op: Operator,
    types: list[TensorType],
    attributes: dict[str, Any],
    wants: Sequence[bool],
    present: Collection[int] | None,
) -> Derivative:
    program = op.expand(types, attributes).program.clone()
    program.name = op.name + "_grad"
    operands, results = list(program.inputs), list(program.outputs)
    wanted = [i for i, want in enumerate(wants) if want]
    given_to = range(len(results)) if present is None else present
    ends = [i for i, value in enumerate(results) if has_gradient(value) and i in given_to]
    kept_results = [program.add_input(value.type) for value in results]
    cotangents = [program.add_input(results[i].type) for i in ends]
    factors = _factors(op, wanted)
    builder = Builder(program.block, program.block.last)
    gradients = _whole_rule(op, operands, results, cotangents, attributes, wanted, builder)
    if gradients is None:
        gradients = vjp_values([results[i] for i in ends], cotangents, [operands[i] for i in wanted], builder)
    with emit_at(builder):
        found: dict[int, Any] = dict(zip(wanted, gradients, strict=True))
        found.update((i, zeros_like(operands[i])) for i in wanted if found[i] is None and i in factors)
    given = tuple(i for i in wanted if found[i] is not None)
    _keep_gradients(program, [found[i] for i in given], zip(results, kept_results, strict=True))
    kept_values: list[Value] = [*operands, *kept_results]
    keeps = tuple(i for i, value in enumerate(kept_values) if value.has_uses or i in factors)
    read = tuple(i for i, value in zip(ends, cotangents, strict=True) if value.has_uses)
    _drop_unused_inputs(program, {operands[i] for i in factors})
    all_types = tuple(value.type for value in kept_values)
    numbers = frozenset(keeps.index(i) for i in factors)
    made = ProgramOperator(program.name, program, getattr(op, "device", None), numbers)
    derivative = Derivative(made, keeps, read, given, all_types)  # type: ignore[arg-type]
    if isinstance(op, Operator):
        chosen = None if present is None else frozenset(present)
        made.source = DerivativeSource(op, tuple(types), attributes, tuple(wants), chosen, derivative)
    return derivative


def _keep_gradients(program: Program, gradients: Sequence[Value], kept: Iterable[tuple[Value, Value]]) -> None:
    """Let the program compute ``gradients`` alone; of ``kept``, pairs of a result and an input, the inputs are read."""
    program.set_outputs(gradients)
    for value, argument in kept:
        if isinstance(value, OpResult):
            value.replace_all_uses_with(argument)
    erase_unused([op for op in program.block if op is not program.block.last])
    get_pass("cse")().run(program)


def _whole_rule(
    op: Any,
    operands: Sequence[Value],
    results: Sequence[Value],
    cotangents: Sequence[Value],
    attributes: dict[str, Any],
    wanted: Sequence[int],
    builder: Builder,
) -> list[Value | None] | None:
    """The gradients by the rule of the whole operator, where it has one."""
    rule = WHOLE_RULES.get(op.name)
    if rule is None or len(results) != 1:
        return None
    with emit_at(builder):
        made = rule(cotangents[0], results[0], *operands, **attributes)
    return None if made is None else [made[i] for i in wanted]


def _factors(op: Any, wanted: Sequence[int]) -> frozenset[int]:
    """The operands that derivatives of ``op`` keep depending on: those of a product, all of which move, and from there
    on at every order. So x t, linear in both, has a second derivative by x, zero, as have powers of x."""
    if op.name in PRODUCTS:
        return frozenset(wanted if len(wanted) == PRODUCTS[op.name] else ())
    return frozenset(getattr(op, "factors", ())) & frozenset(wanted)


def _drop_unused_inputs(program: Program, factors: Collection[Value]) -> None:
    for i in reversed(range(len(program.inputs))):
        if not program.inputs[i].has_uses and program.inputs[i] not in factors:
            program.block.erase_argument(i)
