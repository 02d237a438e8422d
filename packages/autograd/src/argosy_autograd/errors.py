"""Errors of differentiation. Each refines the builtin that a caller would catch."""

from __future__ import annotations

from typing import Any


class DifferentiationError(RuntimeError):
    """A gradient was asked for that cannot be given: a graph already freed, a saved tensor overwritten, an
    unused input."""


class MissingRule(DifferentiationError, NotImplementedError):
    """An operation on the way to the gradient has no derivative rule."""


def explained(error: MissingRule, *reasons: str) -> MissingRule:
    """``error`` with where it arose: ``reasons`` that are empty, or that its text has already, are left out."""
    text = str(error)
    return type(error)("; ".join([text, *(reason for reason in reasons if reason and reason not in text)]))


def constant_gradient(name: str) -> DifferentiationError:
    """The error for a derivative ``name`` of the user's own that does not depend on the gradient it takes."""
    return DifferentiationError(
        f"{name} gives a gradient that does not depend on the one that it takes (detach(), no_grad() or numbers read "
        "on the way): there is no derivative along a direction then; compute it with operators that are recorded"
    )


class UnusedInput(DifferentiationError, ValueError):
    """A gradient was asked for with respect to a tensor that the outputs do not depend on."""


def unused_input(number: int, x: Any, name: str = "", wall: str = "") -> UnusedInput:
    """The error for input ``number`` that the outputs do not depend on, with its likely reason; ``wall`` tells which
    operation on the way has no derivative, where that is known."""
    described = f"{name + ', ' if name else ''}{x.dtype.name} {list(x.shape)}, stop_gradient={x.stop_gradient}"
    return UnusedInput(
        f"grad(): the outputs do not depend on input {number} ({described}){likely_reason(x, wall)}; pass "
        "allow_unused=True to get None for it"
    )


def likely_reason(x: Any, wall: str = "") -> str:
    """Why nothing depends on ``x``, as far as it tells, after a semicolon."""
    reason = ""
    if x.dtype.kind not in "fc":
        reason = "; it is no floating tensor: cast it before computing with it"
    elif wall:
        reason = f"; on the way, {wall}"
    elif x.stop_gradient:
        reason = "; set its stop_gradient to False before computing with it"
    return reason
