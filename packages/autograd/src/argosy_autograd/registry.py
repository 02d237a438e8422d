"""The tables of derivative rules: one for each kind of rule, keyed by the name of the primitive.

::

    @vjp("mul")
    def _(g, result, x, y):
        return g * conj(y), g * conj(x)

A ``vjp`` rule gets the cotangent of the result, the result and the operands, and returns one cotangent for each
operand: None stands for zero and is never materialised. A primitive of several results gets tuples ``g`` (with
None for results that nothing depends on) and ``result``. A ``jvp`` rule gets the result, the operands and then
their tangents (None for zero) and returns the tangent of the result, or a tuple. Attributes are keyword-only
parameters; a rule lists the ones it reads and ends in ``**_`` when it ignores others. Rules are written with
primitives, so every higher order follows.

For complex tensors a cotangent is the conjugate Wirtinger one: of a real loss L(a + ib) it is dL/da + i dL/db.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy_autograd.errors import MissingRule

__all__ = ["NOT_APPLICABLE", "STRUCTURED", "Rule", "RuleTable", "StructuredRule", "jvp", "structured_rule", "vjp"]

Rule = Callable[..., Any]

_INTEGERS = "gives integers or truth values, which have no derivative"
_STEPS = "is constant between its steps: the derivative is zero wherever it exists"
_NO_OPERANDS = "takes no operand"
_PAIRED = (
    "is one half of a transfer between two programs; the pass that splits a program into pipeline stages sends its "
    "gradient the other way"
)

NOT_APPLICABLE: dict[str, str] = {
    **dict.fromkeys(
        ("eq", "ne", "lt", "le", "gt", "ge", "is_finite", "is_nan", "is_inf", "argmax", "argmin"), _INTEGERS
    ),
    **dict.fromkeys(
        ("bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"), _INTEGERS
    ),
    **dict.fromkeys(("logical_not", "logical_and", "logical_or", "logical_xor", "reduce_and", "reduce_or"), _INTEGERS),
    "rng_bits": _INTEGERS,
    "check_index": "gives nothing: it refuses indices that are out of range",
    **dict.fromkeys(("floor", "ceil", "round", "trunc", "floor_div"), _STEPS),
    "nextafter": "moves to a neighbour in the floating-point grid, which is no function of real numbers",
    "bitcast": "reads bits as another type, which is no function of real numbers",
    "stop_gradient": "is a constant for differentiation: that is what it is for",
    **dict.fromkeys(("iota", "dim_size", "create_token"), _NO_OPERANDS),
    **dict.fromkeys(("send", "recv", "start_recv"), _PAIRED),
}
"""Primitives that let no gradient pass, with the reason. Closed: a test compares it with the set of primitives."""


class RuleTable:
    """The rules of one ``kind``, by primitive. Calling it with names decorates a rule for them."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.rules: dict[str, Rule] = {}

    def __call__(self, *names: str) -> Callable[[Rule], Rule]:
        """Decorator: file the rule of the primitives ``names``. Raises ``ValueError`` for a second one."""

        def register(rule: Rule) -> Rule:
            for name in names:
                self.add(name, rule)
            return rule

        return register

    def add(self, name: str, rule: Rule) -> None:
        """File ``rule`` for the primitive ``name``. Raises ``ValueError`` for a second one."""
        if name in self.rules or name in NOT_APPLICABLE:
            raise ValueError(f"primitive {name} has a {self.kind} rule already, or a reason to have none")
        self.rules[name] = rule

    def find(self, name: str) -> Rule:
        """The rule of primitive ``name``. Raises :class:`MissingRule`, which tells a way round."""
        rule = self.rules.get(name)
        if rule is None:
            raise MissingRule(
                f"primitive {name} has no {self.kind} rule. Register one with @{self.kind}({name!r}) of "
                "argosy_autograd.rules, write the computation with other primitives, or keep it out of the gradient "
                "with stop_gradient or PyLayer"
            )
        return rule

    def __contains__(self, name: str) -> bool:
        return name in self.rules

    def __iter__(self) -> Any:
        return iter(self.rules)


vjp = RuleTable("vjp")
"""Rules of reverse mode."""

jvp = RuleTable("jvp")
"""Rules of forward mode."""


class StructuredRule:
    """How to differentiate an operation that is no primitive: control flow and calls.

    ``reverse(op, cotangents of the results, active values)`` gives pairs (value that the operation reads, cotangent);
    ``forward(op, tangents by value)`` gives the tangents of the results (None for zero).
    """

    __slots__ = ("forward", "reverse")

    def __init__(self, reverse: Callable[..., Any], forward: Callable[..., Any]) -> None:
        self.reverse = reverse
        self.forward = forward


STRUCTURED: dict[str, StructuredRule] = {}
"""Derivatives of operations with regions and of calls, by operation name."""


def structured_rule(name: str, reverse: Callable[..., Any], forward: Callable[..., Any]) -> None:
    """File the derivatives of operation ``name``. Raises ``ValueError`` for a second one."""
    if name in STRUCTURED:
        raise ValueError(f"operation {name} has derivatives already")
    STRUCTURED[name] = StructuredRule(reverse, forward)
