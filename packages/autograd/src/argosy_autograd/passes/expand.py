"""The pass ``expand-gradients``: every request for gradients or jets becomes the operations that compute it.

Requests are taken in program order, functions first, so that the outputs of one may depend on the results of an
earlier one: a gradient of a gradient meets primitives only. What is made carries the annotation ``phase``:
``"weight-gradient"`` where it serves the gradient of one program state alone, so that a schedule may put it
off, else ``"input-gradient"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

from argosy_autograd.algebra import zeros
from argosy_autograd.dialect import constants_of, custom_parts, jet_parts, parts
from argosy_autograd.errors import MissingRule, explain_error
from argosy_autograd.insertion import Insertion
from argosy_autograd.loops import check_loops
from argosy_autograd.taylor import Functional, Sweep
from argosy_autograd.transform import vjp_values
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Operation, Program, Value
from argosy_pir.passes import Pass, register_pass

__all__ = ["ExpandGradients", "expand_gradient", "expand_jet"]


@register_pass("expand-gradients")
@dataclass(frozen=True)
class ExpandGradients(Pass):
    """Expand all ``ad.gradient`` operations by reverse accumulation, and remove ``ad.custom``, which has then been
    asked. Run ``decompose`` first.

    keep_custom: leave ``ad.custom`` in a program that is still to be differentiated from outside.
    """

    keep_custom: bool = False

    def run(self, program: Program) -> bool:
        """Returns whether there were any."""
        found = _requests(program)
        orders = _orders(program) if found else {}
        states: set[Value] = {state.argument for state in program.states}
        for op in found:
            if op.name == "ad.jet":
                expand_jet(op)
            else:
                expand_gradient(op, states, orders.get(op, 1))
        custom = [] if self.keep_custom else [op for op in program.walk() if op.name == "ad.custom"]
        for op in reversed(custom):  # inner ones first
            op.replace_with(custom_parts(op)[0])
        return bool(found or custom)


def _requests(program: Program) -> list[Operation]:
    inner = [op for function in program.functions.values() for op in function.region.walk()]
    return [op for op in (*inner, *program.region.walk()) if op.name in ("ad.gradient", "ad.jet")]


def _orders(program: Program) -> dict[Operation, int]:
    """Of which order the derivatives are that requests ask for: one more than those that they depend on."""
    of_values: dict[Value, int] = {}
    found: dict[Operation, int] = {}
    for op in program.walk():
        order = max((of_values.get(v, 0) for v in op.operands), default=0)
        if op.name == "ad.gradient":
            found[op] = order = order + 1
        if order:
            of_values.update(dict.fromkeys(op.results, order))
    return found


def expand_gradient(op: Operation, states: set[Value], order: int = 1) -> None:
    """Replace one request, for a derivative of ``order``, by its expansion. ``states`` are the values whose gradients
    are weight gradients."""
    outputs, inputs, cotangents = parts(op)
    check_loops(op, outputs, inputs)
    builder = Builder.before(op)
    inserted = Insertion(builder)
    with emit_at(builder, op.location):
        seeds = cotangents or [prim.constant(1, y.dtype, y.shape) for y in outputs]
        try:
            gradients = vjp_values(outputs, seeds, inputs, builder, constants=constants_of(op))
        except MissingRule as error:
            asked = f"the gradient, a derivative of order {order}, was asked for at {op.location}"
            raise explain_error(error, asked) from None
        results = [zeros(x.shape, x.dtype) if g is None else g for x, g in zip(inputs, gradients, strict=True)]
    _tag_phases(inserted.operations(), inputs, results, states)
    op.replace_with(results)


def expand_jet(op: Operation) -> None:
    """Replace an ``ad.jet`` by one sweep of Taylor coefficients."""
    outputs, inputs, series = jet_parts(op)
    order = op.attributes["counts"][2]
    sweep = Sweep()
    with emit_at(Builder.before(op), op.location):
        sweep.add_path({x: _coefficients(series[i * order : (i + 1) * order]) for i, x in enumerate(inputs)})
        sweep.expect([Functional([((0,) * order, 1.0)])])
        try:
            made = [_derivative(sweep, y, k) for y in outputs for k in range(1, order + 1)]
        except MissingRule as error:
            asked = f"the jet, derivatives up to order {order}, was asked for at {op.location}"
            raise explain_error(error, asked) from None
    op.replace_with(made)


def _derivative(sweep: Sweep, y: Value, order: int) -> Any:
    c = sweep.coefficient(y, Functional([((0,) * order, 1.0)]))
    if c is None:
        return zeros(y.shape, y.dtype)
    return c if order == 1 else c * float(factorial(order))


def _coefficients(derivatives: Sequence[Any]) -> list[Any]:
    return [d if k == 1 else d * (1 / factorial(k)) for k, d in enumerate(derivatives, 1)]


def _tag_phases(
    operations: Sequence[Operation], inputs: Sequence[Value], results: Sequence[Value], states: set[Value]
) -> None:
    """Give each operation the set of gradients that it serves as bits, from the last to the first, and tag by it."""
    serves: dict[Value, int] = {}
    state_bits = 0
    for i, (x, g) in enumerate(zip(inputs, results, strict=True)):
        serves[g] = serves.get(g, 0) | 1 << i
        if x in states:
            state_bits |= 1 << i
    for op in reversed(operations):
        bits = 0
        for result in op.results:
            bits |= serves.get(result, 0)
        for inner in op.walk():
            for value in inner.operands:
                serves[value] = serves.get(value, 0) | bits
        one_state = bits & (bits - 1) == 0 and bits & state_bits == bits
        op.annotate(phase="weight-gradient" if one_state else "input-gradient")
