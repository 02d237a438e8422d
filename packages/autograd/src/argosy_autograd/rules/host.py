"""Derivatives of custom operators: what their users gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy_autograd.algebra import Value, zeros_like
from argosy_autograd.errors import MissingRule
from argosy_autograd.registry import jvp, vjp
from argosy_autograd.reverse import vjp_values
from argosy_phi_ops.context import context
from argosy_phi_ops.custom_ops.host_functions import find_host


def _cotangents(
    function: str, arguments: Mapping[str, Any], g: Any, results: Any, operands: Sequence[Value]
) -> list[Value | None]:
    """One cotangent for each operand, None where there is none. Raises :class:`MissingRule` without a gradient."""
    cotangents = find_host(function).cotangents
    if cotangents is None:
        name, _, part = function.partition(":")
        way = (
            f"of custom operator {name} is a function on arrays, which has no derivative: give it with .gradient"
            if part
            else f"custom operator {name} has none: give it with @{name.rpartition('.')[2]}.gradient, or keep it out "
            "of the gradient with stop_gradient"
        )
        raise MissingRule(f"gradient {way}" if part else f"a gradient was asked for, but {way}")
    several = isinstance(results, tuple)
    return cotangents(g if several else (g,), results if several else (results,), operands, arguments)


@vjp("host_call")
def _(g: Any, results: Any, *operands: Value, function: str, arguments: Mapping[str, Any]) -> tuple[Value | None, ...]:
    return tuple(_cotangents(function, arguments, g, results, operands))


@jvp("host_call")
def _(results: Any, *given: Value | None, function: str, arguments: Mapping[str, Any]) -> Any:
    """The transpose of the gradient, which is linear in the cotangents: reverse mode through it, at zero."""
    builder = context().builder
    assert builder is not None
    count = len(given) // 2
    operands = [x for x in given[:count] if x is not None]
    each = results if isinstance(results, tuple) else (results,)
    placeholders = [zeros_like(r) for r in each]
    several = isinstance(results, tuple)
    found = _cotangents(function, arguments, tuple(placeholders) if several else placeholders[0], results, operands)
    pairs = [(c, d) for c, d in zip(found, given[count:], strict=True) if c is not None and d is not None]
    tangents = vjp_values([c for c, _ in pairs], [d for _, d in pairs], placeholders, builder)
    return tuple(tangents) if isinstance(results, tuple) else tangents[0]
